#include "qualify/recurrence/recurrence.hpp"

#include <date/tz.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace qualify::recurrence {

namespace {

constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};
constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
/// Between two 29ths of February lie eight years where a century has none.
constexpr int kDaysAhead = 366 * 9;

constexpr const char* kForms =
    "write 'daily 02:00', 'weekly Sat 02:00', or five fields as in crontab: '0 2 * * 6'";

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> parts;
  while (true) {
    const auto begin = text.find_first_not_of(separators);
    if (begin == std::string_view::npos) return parts;
    text.remove_prefix(begin);
    const auto end = std::min(text.find_first_of(separators), text.size());
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.size() > 2) {
    return std::nullopt;
  }
  return value;
}

template <std::size_t N>
std::optional<unsigned> name(std::string_view text, const std::array<std::string_view, N>& names) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto found = std::find(names.begin(), names.end(), std::string_view(lower));
  if (found == names.end()) return std::nullopt;
  return static_cast<unsigned>(found - names.begin());
}

/// "02:00" as minutes of the day.
std::optional<unsigned> time_of_day(std::string_view text) {
  if (text.size() != 5 || text[2] != ':') return std::nullopt;
  const auto hour = number(text.substr(0, 2));
  const auto minute = number(text.substr(3));
  if (!hour || !minute || *hour > 23 || *minute > 59) return std::nullopt;
  return *hour * 60 + *minute;
}

/// One field of crontab(5) into `set`; `value` reads a number or a name. False: not one.
template <std::size_t N, class Value>
bool read_field(std::string_view text, unsigned first, unsigned last, const Value& value,
                std::bitset<N>& set) {
  if (text.front() == ',' || text.back() == ',') return false;
  for (std::string_view part : split(text, ",")) {
    unsigned step = 1;
    if (const auto slash = part.find('/'); slash != std::string_view::npos) {
      const auto read = number(part.substr(slash + 1));
      if (!read || *read == 0) return false;
      step = *read;
      part = part.substr(0, slash);
      if (part != "*" && part.find('-') == std::string_view::npos) return false;
    }
    unsigned from = first;
    unsigned to = last;
    if (part != "*") {
      const auto dash = part.find('-');
      const auto low = value(part.substr(0, dash));
      const auto high = dash == std::string_view::npos ? low : value(part.substr(dash + 1));
      if (!low || !high || *low < first || *high > last || *low > *high) return false;
      from = *low;
      to = *high;
    }
    for (unsigned i = from; i <= to; i += step) set.set(i);
  }
  return set.any();
}

Unexpected fail_form(std::string_view text, const std::string& what) {
  return fail(Errc::invalid_input, "schedule '" + std::string(text) + "': " + what, {}, kForms);
}

Result<const date::time_zone*> find_zone(std::string_view zone) {
  try {
    (void)date::get_tzdb();
  } catch (const std::exception& error) {
    return fail(Errc::unsupported, std::string("this machine has no time zones: ") + error.what(),
                {}, "install the package tzdata");
  }
  try {
    return date::locate_zone(std::string(zone));
  } catch (const std::exception&) {
    return fail(Errc::invalid_input, "no time zone '" + std::string(zone) + "'", {},
                "a name of the IANA database, such as UTC or Europe/Zurich");
  }
}

}  // namespace

Result<void> Recurrence::read_cron(std::string_view text) {
  const auto fields = split(text, " \t");
  if (fields.size() != 5) {
    return fail_form(text, std::to_string(fields.size()) + " fields where five belong");
  }
  const auto plain = [](std::string_view word) { return number(word); };
  const auto month = [](std::string_view word) {
    const auto named = name(word, kMonths);
    return named ? std::optional(*named + 1) : number(word);
  };
  std::bitset<8> weekdays;
  const auto weekday = [](std::string_view word) {
    const auto named = name(word, kWeekdays);
    return named ? named : number(word);
  };
  const auto bad = [&](std::size_t field, const char* what) {
    return fail_form(text, "'" + std::string(fields[field]) + "' is not a " + what);
  };
  if (!read_field(fields[0], 0, 59, plain, minutes_)) return bad(0, "minute (0 to 59)");
  if (!read_field(fields[1], 0, 23, plain, hours_)) return bad(1, "hour (0 to 23)");
  if (!read_field(fields[2], 1, 31, plain, days_)) return bad(2, "day of the month (1 to 31)");
  if (!read_field(fields[3], 1, 12, month, months_))
    return bad(3, "month (1 to 12, or jan to dec)");
  if (!read_field(fields[4], 0, 7, weekday, weekdays)) {
    return bad(4, "day of the week (0 to 7, or sun to sat)");
  }
  for (std::size_t i = 0; i < 8; ++i) {
    if (weekdays.test(i)) weekdays_.set(i % 7);  // 7 is Sunday too
  }
  any_day_ = fields[2].front() == '*';
  any_weekday_ = fields[4].front() == '*';
  return {};
}

Result<Recurrence> Recurrence::parse(std::string_view text, std::string_view zone) {
  const auto found = find_zone(zone);
  if (!found) return tl::unexpected(found.error());
  Recurrence recurrence;
  recurrence.zone_ = *found;
  const auto words = split(text, " \t");
  if (words.empty()) return fail_form(text, "nothing");
  if (words[0] == "daily" || words[0] == "weekly") {
    const bool weekly = words[0] == "weekly";
    if (words.size() != (weekly ? 3U : 2U)) return fail_form(text, "not of this form");
    const auto time = time_of_day(words.back());
    if (!time) {
      return fail_form(text,
                       "'" + std::string(words.back()) + "' is not a time of day (00:00 to 23:59)");
    }
    recurrence.hours_.set(*time / 60);
    recurrence.minutes_.set(*time % 60);
    recurrence.days_.set();
    recurrence.months_.set();
    if (weekly) {
      const auto day = name(words[1], kWeekdays);
      if (!day) return fail_form(text, "'" + std::string(words[1]) + "' is not a day (Mon to Sun)");
      recurrence.weekdays_.set(*day);
      recurrence.any_weekday_ = false;
    } else {
      recurrence.weekdays_.set();
    }
    return recurrence;
  }
  if (auto read = recurrence.read_cron(text); !read) return tl::unexpected(read.error());
  const Time any(std::chrono::sys_days(std::chrono::year(2000) / 1 / 1));
  if (recurrence.next_after(any) == Time::max()) return fail_form(text, "such a day never comes");
  return recurrence;
}

bool Recurrence::on_day(std::chrono::year_month_day day) const {
  if (!months_.test(static_cast<unsigned>(day.month()))) return false;
  const bool by_date = days_.test(static_cast<unsigned>(day.day()));
  const bool by_weekday =
      weekdays_.test(std::chrono::weekday(std::chrono::sys_days(day)).c_encoding());
  // crontab(5): where both are restricted, one of them suffices.
  return any_day_ || any_weekday_ ? by_date && by_weekday : by_date || by_weekday;
}

Time Recurrence::next_after(Time time) const {
  const auto* zone = static_cast<const date::time_zone*>(zone_);
  const auto local_now = zone->to_local(time).time_since_epoch();
  auto day = std::chrono::sys_days(std::chrono::floor<std::chrono::days>(local_now));
  for (int ahead = 0; ahead < kDaysAhead; ++ahead, day += std::chrono::days(1)) {
    if (!on_day(day)) continue;
    for (unsigned hour = 0; hour < hours_.size(); ++hour) {
      if (!hours_.test(hour)) continue;
      for (unsigned minute = 0; minute < minutes_.size(); ++minute) {
        if (!minutes_.test(minute)) continue;
        const date::local_seconds label(day.time_since_epoch() + std::chrono::hours(hour) +
                                        std::chrono::minutes(minute));
        const date::local_info info = zone->get_info(label);
        // Unique or twice: by the first offset. Not at all: when the clock jumps.
        const Time at = info.result == date::local_info::nonexistent
                            ? Time(info.first.end)
                            : Time(label.time_since_epoch() - info.first.offset);
        if (at > time) return at;
      }
    }
  }
  return Time::max();
}

std::string Recurrence::local(Time time) const {
  const auto* zone = static_cast<const date::time_zone*>(zone_);
  return date::format("%a %F %H:%M %Z",
                      date::make_zoned(zone, std::chrono::floor<std::chrono::seconds>(time)));
}

}  // namespace qualify::recurrence
