#include "qualify/base/clock.hpp"

#include <fmt/format.h>
#include <time.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>

namespace qualify {

namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::hours;
using std::chrono::microseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// Reads exactly `width` decimal digits at `position`; -1 when they are not there.
int digits_at(std::string_view text, std::size_t position, std::size_t width) {
  if (position + width > text.size()) return -1;
  int value = 0;
  for (std::size_t i = position; i < position + width; ++i) {
    if (text[i] < '0' || text[i] > '9') return -1;
    value = value * 10 + (text[i] - '0');
  }
  return value;
}

}  // namespace

Time SystemClock::now() const {
  return floor<microseconds>(std::chrono::system_clock::now());
}

void SystemClock::sleep_for(Duration duration) {
  if (duration <= Duration::zero()) return;
  const auto whole = floor<seconds>(duration);
  timespec wait{};
  wait.tv_sec = whole.count();
  wait.tv_nsec = (duration - whole).count() * 1000;
  // EINTR is the wanted early return: the caller looks at what the signal asked for.
  clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, nullptr);
}

std::string format_time(Time time) {
  const auto day = floor<days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z", static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                     clock.hours().count(), clock.minutes().count(), clock.seconds().count(),
                     clock.subseconds().count());
}

Result<Time> parse_time(std::string_view text) {
  const auto bad = [&] {
    return fail(Errc::invalid_input, "not a time: '" + std::string(text) + "'", {},
                "expected RFC 3339 in UTC, such as 2026-11-30T04:45:05Z");
  };
  constexpr std::string_view shape = "0000-00-00T00:00:00";
  if (text.size() < shape.size() + 1 || text.back() != 'Z') return bad();
  for (const std::size_t i : {4U, 7U}) {
    if (text[i] != '-') return bad();
  }
  if (text[10] != 'T' || text[13] != ':' || text[16] != ':') return bad();
  const int year = digits_at(text, 0, 4);
  const int month = digits_at(text, 5, 2);
  const int day = digits_at(text, 8, 2);
  const int hour = digits_at(text, 11, 2);
  const int minute = digits_at(text, 14, 2);
  const int second = digits_at(text, 17, 2);
  if (year < 0 || month < 0 || day < 0) return bad();
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 ||
      second > 59) {
    return bad();
  }
  std::int64_t micros = 0;
  const std::string_view fraction = text.substr(19, text.size() - 20);
  if (!fraction.empty()) {
    if (fraction[0] != '.' || fraction.size() < 2 || fraction.size() > 7) return bad();
    const int value = digits_at(fraction, 1, fraction.size() - 1);
    if (value < 0) return bad();
    micros = value;
    for (std::size_t i = fraction.size(); i < 7; ++i) micros *= 10;
  }
  return Time(std::chrono::sys_days(date) + hours(hour) + minutes(minute) + seconds(second) +
              microseconds(micros));
}

std::string format_duration(Duration duration) {
  if (duration < Duration::zero()) return "-" + format_duration(-duration);
  const auto total = duration.count();
  if (total < 1'000'000) return fmt::format("{} ms", total / 1000);
  if (total < 60'000'000) return fmt::format("{:.1f} s", static_cast<double>(total) / 1e6);
  const auto whole = total / 1'000'000;
  if (whole < 3600) return fmt::format("{}m {:02}s", whole / 60, whole % 60);
  return fmt::format("{}h {:02}m", whole / 3600, whole / 60 % 60);
}

namespace {

std::optional<Duration> unit_of(char letter) {
  switch (letter) {
    case 's':
      return seconds(1);
    case 'm':
      return minutes(1);
    case 'h':
      return hours(1);
    case 'd':
      return days(1);
    default:
      return std::nullopt;
  }
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  const auto bad = [&] {
    return fail(Errc::invalid_input, "not a duration: '" + std::string(text) + "'", {},
                "expected whole numbers with units, such as 90s, 15m, 4h or 1h30m");
  };
  constexpr Duration kLongest = days(3660);
  Duration total{};
  const char* at = text.data();
  const char* const end = at + text.size();
  if (at == end) return bad();
  while (at != end) {
    std::uint32_t count = 0;
    const auto [next, error] = std::from_chars(at, end, count);
    if (error != std::errc() || next == end) return bad();
    const auto unit = unit_of(*next);
    if (!unit) return bad();
    if (count > (kLongest - total) / *unit) {
      return fail(Errc::invalid_input, "the duration '" + std::string(text) + "' is too long", {},
                  "at most 3660d, ten years");
    }
    total += count * *unit;
    at = next + 1;
  }
  if (total == Duration::zero()) {
    return fail(Errc::invalid_input, "the duration '" + std::string(text) + "' is none", {},
                "at least 1s");
  }
  return total;
}

}  // namespace qualify
