#pragma once

#include <array>
#include <bitset>
#include <string>
#include <string_view>

#include "qualify/base/clock.hpp"

namespace qualify::recurrence {

/// When a gate is due, again and again: "daily 02:00", "weekly Sat 02:00", or the five fields of
/// crontab(5) ("0 2 * * 6": minute, hour, day of month, month, day of week; lists, ranges, steps,
/// three-letter names; day of month or day of week where both are given), in a time zone of the
/// IANA database. Whatever the zone of the machine is, says nothing.
///
/// Clocks that are put forward: a time of day that does not exist comes at the moment when the
/// clock jumps; several of them come once. Clocks that are put back: a time of day that exists
/// twice comes the first time only.
///
/// A value; thread-safe. The zone's rules are those of the machine's tzdata.
class Recurrence {
 public:
  /// Errors: invalid_input (syntax, a zone that is not known, a date that never comes),
  /// unsupported (no tzdata on this machine).
  [[nodiscard]] static Result<Recurrence> parse(std::string_view text, std::string_view zone);

  /// The first time after `time`.
  [[nodiscard]] Time next_after(Time time) const;
  /// "Sat 2026-12-05 02:00 CET".
  [[nodiscard]] std::string local(Time time) const;

 private:
  Recurrence() = default;
  [[nodiscard]] bool on_day(std::chrono::year_month_day day) const;
  Result<void> read_cron(std::string_view text);

  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;     ///< of the month, from 1
  std::bitset<13> months_;   ///< from 1
  std::bitset<7> weekdays_;  ///< from Sunday
  bool any_day_ = true;      ///< the day of the month is not restricted
  bool any_weekday_ = true;
  const void* zone_ = nullptr;  ///< date::time_zone, which lives for ever
};

}  // namespace qualify::recurrence
