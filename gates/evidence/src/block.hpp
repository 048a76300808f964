#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qualify/evidence/values.hpp"

/// Runs of values as they are kept: open, where they can be changed, or packed into bytes, in
/// memory or in a spool.
namespace qualify::evidence {

class Spool;

enum class Settled : std::uint8_t { no, float64, decimals };

/// Everything of a scalar but its bits, in one word.
inline std::uint32_t packed(const Scalar& scalar) {
  const auto digits = static_cast<std::uint32_t>(std::clamp(scalar.digits, 0, 255));
  const auto last = static_cast<std::uint16_t>(std::clamp(scalar.last_digit, -32000, 32000));
  return static_cast<std::uint32_t>(scalar.precision) |
         static_cast<std::uint32_t>(scalar.notation) << 3U | digits << 5U |
         static_cast<std::uint32_t>(last) << 13U;
}

inline Precision precision_of(std::uint32_t word) {
  return static_cast<Precision>(word & 7U);
}
inline Notation notation_of(std::uint32_t word) {
  return static_cast<Notation>(word >> 3U & 3U);
}
inline int digits_of(std::uint32_t word) {
  return static_cast<int>(word >> 5U & 255U);
}
inline int last_digit_of(std::uint32_t word) {
  return static_cast<std::int16_t>(word >> 13U & 0xFFFFU);
}
inline bool is_digest(Precision precision) {
  return precision == Precision::sha256 || precision == Precision::weak_digest;
}
inline bool is_finite(std::uint64_t bits) {
  constexpr std::uint64_t exponent = 0x7FF0000000000000U;
  return (bits & exponent) != exponent;
}

struct OpenBlock {
  struct Item {
    std::int64_t iteration = 0;
    std::uint64_t bits = 0;  ///< of a digest: its place in `texts`
    std::uint32_t word = 0;
  };
  std::vector<Item> items;
  std::vector<std::string> texts;

  [[nodiscard]] std::size_t size() const { return items.size(); }
  Item item(std::int64_t iteration, const Scalar& scalar) {
    const bool text = is_digest(scalar.precision);
    return {iteration, text ? keep(scalar.text) : scalar.bits, packed(scalar)};
  }
  /// Not within append(), of which nearly no value is a digest.
  [[gnu::noinline]] std::uint64_t keep(const std::string& text) {
    texts.push_back(text);
    return texts.size() - 1;
  }
  void append(std::int64_t iteration, const Scalar& scalar) {
    items.push_back(item(iteration, scalar));
  }
  void insert(std::size_t at, std::int64_t iteration, const Scalar& scalar) {
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), item(iteration, scalar));
  }
  void erase(std::size_t at) { items.erase(items.begin() + static_cast<std::ptrdiff_t>(at)); }
  void copy(std::size_t at, Scalar& to) const {
    const Item& from = items[at];
    to.precision = precision_of(from.word);
    to.notation = notation_of(from.word);
    to.digits = digits_of(from.word);
    to.last_digit = last_digit_of(from.word);
    if (is_digest(to.precision)) {
      to.bits = 0;
      to.text = texts[from.bits];
    } else {
      to.bits = from.bits;
      if (!to.text.empty()) to.text.clear();
    }
  }
  [[nodiscard]] std::size_t lower_bound(std::int64_t iteration) const {
    const auto found = std::lower_bound(
        items.begin(), items.end(), iteration,
        [](const Item& item, std::int64_t wanted) { return item.iteration < wanted; });
    return static_cast<std::size_t>(found - items.begin());
  }
  /// The upper half.
  OpenBlock split() {
    OpenBlock upper;
    const std::size_t half = size() / 2;
    Scalar scalar;
    for (std::size_t i = half; i < size(); ++i) {
      copy(i, scalar);
      upper.append(items[i].iteration, scalar);
    }
    items.resize(half);
    return upper;
  }
};

struct Block {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::uint32_t count = 0;
  std::uint32_t packed_size = 0;
  std::string bytes;                   ///< when not spooled
  std::optional<std::uint64_t> place;  ///< in the spool
  int decimals = 0;                    ///< for Settled::decimals
  Settled settled = Settled::no;
  bool has_printed = false;  ///< finite ones
  bool has_inexact = false;  ///< others that are not exact: weak digests, a printed NaN
};

/// Packed, in the spool if there is one and it has room.
[[nodiscard]] Block sealed(const OpenBlock& open, Spool* spool);
/// The values of a block in place of what `open` held, as they are settled.
void unpack(const Block& block, const Spool* spool, OpenBlock& open);

}  // namespace qualify::evidence
