#include "qualify/base/clock.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace qualify {
namespace {

using namespace std::chrono_literals;

TEST(Clock, TimeTextRoundTrips) {
  for (const std::int64_t micros : {0LL, 1LL, -1LL, 1767225600'000000LL, 1732941905'123456LL}) {
    const Time time{Duration(micros)};
    EXPECT_EQ(parse_time(format_time(time)).value(), time) << format_time(time);
  }
  EXPECT_EQ(format_time(Time(1767225600s + 5us)), "2026-01-01T00:00:00.000005Z");
}

TEST(Clock, ReadsShortFractions) {
  EXPECT_EQ(parse_time("2026-01-01T00:00:00Z").value(), Time(1767225600s));
  EXPECT_EQ(parse_time("2026-01-01T00:00:00.25Z").value(), Time(1767225600s + 250ms));
}

TEST(Clock, RefusesWhatIsNotATime) {
  for (const char* text : {"", "Z", "2026-01-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z",
                           "2026-01-01T24:00:00Z", "2026-01-01T00:00:00+01:00",
                           "2026-01-01T00:00:00.Z", "2026-01-01T00:00:00.1234567Z"}) {
    EXPECT_FALSE(parse_time(text)) << text;
  }
}

TEST(Clock, ReadsDurations) {
  EXPECT_EQ(parse_duration("90s").value(), 90s);
  EXPECT_EQ(parse_duration("1h30m").value(), 90min);
  EXPECT_EQ(parse_duration("2d").value(), 48h);
  for (const char* text : {"", "0s", "5", "-5s", "1.5h", "5x", "m"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
  EXPECT_EQ(parse_duration("3660d").value(), 24h * 3660);
  for (const char* text : {"3661d", "3660d1s", "300000000d", "4294967295d4294967295d"}) {
    EXPECT_THAT(parse_duration(text).error().describe(), ::testing::HasSubstr("too long")) << text;
  }
}

TEST(Clock, DurationsReadWell) {
  EXPECT_EQ(format_duration(350ms), "350 ms");
  EXPECT_EQ(format_duration(12400ms), "12.4 s");
  EXPECT_EQ(format_duration(200s), "3m 20s");
  EXPECT_EQ(format_duration(62min), "1h 02m");
}

}  // namespace
}  // namespace qualify
