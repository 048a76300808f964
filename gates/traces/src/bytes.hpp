#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

/// Little-endian fields of fixed width, as all supported machines have them. Internal to this
/// module.
namespace qualify::traces::bytes {

template <class T>
void put(std::string& to, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  char raw[sizeof value];
  std::memcpy(raw, &value, sizeof value);
  to.append(raw, sizeof value);
}

inline void put_text(std::string& to, std::string_view text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  to += text;
}

/// Reads what the functions above wrote; past the end `good` is false and everything is 0.
struct Cursor {
  std::string_view rest;
  bool good = true;

  template <class T>
  T get() {
    T value{};
    if (rest.size() < sizeof value) {
      good = false;
      return value;
    }
    std::memcpy(&value, rest.data(), sizeof value);
    rest.remove_prefix(sizeof value);
    return value;
  }
  std::string_view text() {
    const auto size = get<std::uint32_t>();
    if (rest.size() < size) {
      good = false;
      return {};
    }
    const std::string_view found = rest.substr(0, size);
    rest.remove_prefix(size);
    return found;
  }
};

}  // namespace qualify::traces::bytes
