#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qualify/traces/event.hpp"
#include "qualify/traces/manifest.hpp"

/// Numbers of a rank's texts, through a few words of memory: the same texts come in the same places
/// of every line. Internal to this module.
namespace qualify::traces {

class TextNumbers {
 public:
  TextNumbers(const Manifest& manifest, Strings& strings)
      : manifest_(manifest), strings_(strings) {}

  [[nodiscard]] std::uint32_t of(std::string_view text);
  /// Of a group, with its ranks where the manifest knows them.
  [[nodiscard]] std::uint32_t of_group(std::string_view name);

 private:
  const Manifest& manifest_;
  Strings& strings_;
  struct Known {
    std::string text;
    std::uint32_t id = 0;
  };
  std::vector<Known> recent_{256};
  std::unordered_map<std::string, std::uint32_t> groups_;
  std::string last_group_;
  std::uint32_t last_group_id_ = 0;
};

}  // namespace qualify::traces
