#pragma once

#include <cstdint>

#include "qualify/traces/event.hpp"

/// What one line holds. Internal to this module.
namespace qualify::traces {

enum class Schema : std::uint8_t { none, pr6610, fork };
[[nodiscard]] const char* name_of(Schema schema);

/// Memory is used again from line to line.
struct Record {
  std::int64_t iteration = -1;
  std::int64_t rank = -1;
  std::int64_t sequence = -1;
  bool has_occurrence = false;
  Schema schema = Schema::none;  ///< that its members belong to
  Events events;                 ///< the record itself, then its further values

  friend bool operator==(const Record&, const Record&) = default;
  /// What every row of a record has in common.
  void spread() {
    for (Event& event : events) {
      event.iteration = iteration;
      event.rank_seq = sequence;
    }
  }
};

/// ".begin" of a name begins something, ".end" ends it.
[[nodiscard]] inline Role role_in(std::string_view name) {
  return name.ends_with(".begin") ? Role::input
         : name.ends_with(".end") ? Role::output
                                  : Role::none;
}

}  // namespace qualify::traces
