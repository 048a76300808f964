#include "qualify/recurrence/recurrence.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <time.h>

namespace qualify::recurrence {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Recurrence of(const char* text, const char* zone = "UTC") {
  auto parsed = Recurrence::parse(text, zone);
  if (!parsed) throw std::runtime_error(parsed.error().describe());
  return *parsed;
}

/// The next `count` times after `after`, "2026-03-29T01:00".
std::vector<std::string> times(const Recurrence& recurrence, const char* after, int count) {
  std::vector<std::string> all;
  Time at = parse_time(after).value();
  for (int i = 0; i < count; ++i) {
    at = recurrence.next_after(at);
    all.push_back(format_time(at).substr(0, 16));
  }
  return all;
}

TEST(Recurrence, EveryDayAndEveryWeek) {
  EXPECT_THAT(times(of("daily 02:00"), "2026-11-30T02:00:00Z", 2),
              ElementsAre("2026-12-01T02:00", "2026-12-02T02:00"));
  EXPECT_THAT(times(of("weekly Sat 02:00"), "2026-11-30T12:00:00Z", 2),
              ElementsAre("2026-12-05T02:00", "2026-12-12T02:00"));
  EXPECT_THAT(times(of("0 2 * * 6"), "2026-11-30T12:00:00Z", 2),
              ElementsAre("2026-12-05T02:00", "2026-12-12T02:00"));
}

TEST(Recurrence, FieldsAreThoseOfCrontab) {
  EXPECT_THAT(times(of("*/30 9-10 * * mon-fri"), "2026-12-04T10:00:00Z", 2),
              ElementsAre("2026-12-04T10:30", "2026-12-07T09:00"));
  EXPECT_THAT(times(of("15,45 3 1 jan,JUL *"), "2026-11-30T12:00:00Z", 3),
              ElementsAre("2027-01-01T03:15", "2027-01-01T03:45", "2027-07-01T03:15"));
  EXPECT_THAT(times(of("0 0 * * 7"), "2026-11-30T12:00:00Z", 1), ElementsAre("2026-12-06T00:00"))
      << "Sunday is 0 and 7";
  EXPECT_THAT(
      times(of("0 0 13 * fri"), "2026-11-30T12:00:00Z", 4),
      ElementsAre("2026-12-04T00:00", "2026-12-11T00:00", "2026-12-13T00:00", "2026-12-18T00:00"))
      << "either, where both are given";
  EXPECT_THAT(times(of("0 0 29 2 *"), "2096-03-01T00:00:00Z", 1), ElementsAre("2104-02-29T00:00"));
}

// Central Europe 2026: 29 March 02:00 -> 03:00 (01:00 UTC), 25 October 03:00 -> 02:00 (01:00 UTC).
TEST(Recurrence, ATimeThatTheClockJumpsOverComesWhenItJumps) {
  EXPECT_THAT(times(of("daily 02:30", "Europe/Zurich"), "2026-03-28T00:00:00Z", 3),
              ElementsAre("2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"));
  EXPECT_THAT(times(of("*/20 2 * * *", "Europe/Zurich"), "2026-03-29T00:00:00Z", 2),
              ElementsAre("2026-03-29T01:00", "2026-03-30T00:00"))
      << "three times that do not exist come once";
  EXPECT_THAT(times(of("0 2,3 * * *", "Europe/Zurich"), "2026-03-29T00:00:00Z", 2),
              ElementsAre("2026-03-29T01:00", "2026-03-30T00:00"));
}

TEST(Recurrence, ATimeThatComesTwiceCountsOnce) {
  EXPECT_THAT(times(of("daily 02:30", "Europe/Zurich"), "2026-10-24T12:00:00Z", 2),
              ElementsAre("2026-10-25T00:30", "2026-10-26T01:30"));
  EXPECT_THAT(times(of("30 * * * *", "Europe/Zurich"), "2026-10-24T23:00:00Z", 3),
              ElementsAre("2026-10-24T23:30", "2026-10-25T00:30", "2026-10-25T02:30"))
      << "02:30 of the second kind is the same time of day";
}

TEST(Recurrence, MidnightMayBeMissingAndADayToo) {
  // Brazil, until 2019: the clock jumps at 00:00.
  EXPECT_THAT(times(of("daily 00:00", "America/Sao_Paulo"), "2018-11-03T12:00:00Z", 2),
              ElementsAre("2018-11-04T03:00", "2018-11-05T02:00"));
  // Samoa had no 30 December 2011.
  EXPECT_THAT(times(of("daily 12:00", "Pacific/Apia"), "2011-12-29T23:00:00Z", 2),
              ElementsAre("2011-12-30T10:00", "2011-12-30T22:00"));
}

TEST(Recurrence, TheMachinesZoneSaysNothing) {
  const auto zurich = of("daily 02:30", "Europe/Zurich");
  const auto utc = of("daily 02:30");
  const auto before = times(zurich, "2026-06-01T00:00:00Z", 1);
  ::setenv("TZ", "Pacific/Auckland", 1);
  ::tzset();
  EXPECT_EQ(times(zurich, "2026-06-01T00:00:00Z", 1), before);
  EXPECT_EQ(times(of("daily 02:30", "Europe/Zurich"), "2026-06-01T00:00:00Z", 1), before);
  EXPECT_THAT(times(utc, "2026-06-01T00:00:00Z", 1), ElementsAre("2026-06-01T02:30"));
  ::setenv("TZ", "UTC", 1);
  ::tzset();
}

TEST(Recurrence, IsShownInItsOwnZone) {
  EXPECT_EQ(of("daily 02:00", "Europe/Zurich").local(parse_time("2026-12-05T01:00:00Z").value()),
            "Sat 2026-12-05 02:00 CET");
}

TEST(Recurrence, WhatIsNoScheduleIsNamed) {
  const auto why = [](const char* text, const char* zone = "UTC") {
    const auto parsed = Recurrence::parse(text, zone);
    return parsed ? std::string("accepted") : parsed.error().describe();
  };
  EXPECT_THAT(why("weekly Sat"), HasSubstr("weekly Sat 02:00"));
  EXPECT_THAT(why("weekly Caturday 02:00"), HasSubstr("'Caturday' is not a day"));
  EXPECT_THAT(why("daily 24:00"), HasSubstr("not a time of day"));
  EXPECT_THAT(why("daily 2:00"), HasSubstr("not a time of day"));
  EXPECT_THAT(why("60 2 * * 6"), HasSubstr("'60' is not a minute"));
  EXPECT_THAT(why("0 2 * * 8"), HasSubstr("'8' is not a day of the week"));
  EXPECT_THAT(why("0 2 0 * *"), HasSubstr("'0' is not a day of the month"));
  EXPECT_THAT(why("0 5-2 * * *"), HasSubstr("'5-2' is not a hour"));
  EXPECT_THAT(why("*/0 2 * * *"), HasSubstr("is not a minute"));
  EXPECT_THAT(why("5/3 2 * * *"), HasSubstr("is not a minute"));
  EXPECT_THAT(why("0 2 * *"), HasSubstr("4 fields where five belong"));
  EXPECT_THAT(why("@daily"), HasSubstr("1 fields where five belong"));
  EXPECT_THAT(why("0 0 30 2 *"), HasSubstr("such a day never comes"));
  EXPECT_THAT(why(""), HasSubstr("nothing"));
  EXPECT_THAT(why("daily 02:00", "Europe/Zurych"), HasSubstr("no time zone 'Europe/Zurych'"));
  EXPECT_THAT(why("daily 02:00", ""), HasSubstr("no time zone ''"));
}

}  // namespace
}  // namespace qualify::recurrence
