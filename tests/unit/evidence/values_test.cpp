// Values against a plain map, in memory and through a spool.
#include "qualify/evidence/values.hpp"

#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <random>

#include "source.hpp"
#include "spool.hpp"
#include "support/temp_folder.hpp"

namespace qualify::evidence {
namespace {

using namespace std::string_literals;

/// Every kind of value there is, by number.
Scalar some_scalar(std::uint64_t n) {
  switch (n % 7) {
    case 0:
      return of_float32(std::bit_cast<float>(static_cast<std::uint32_t>(n * 2654435761U)));
    case 1:
      return of_float64(std::bit_cast<double>(n * 0x9E3779B97F4A7C15U));
    case 2:
      return of_integer(static_cast<std::int64_t>(n) - 1000);
    case 3:
      return parse_number("1.18" + std::to_string(n % 10000 + 10000) + "E+01").value();
    case 4:
      return parse_number("-12." + std::to_string(n % 1000)).value();
    case 5:
      return of_digest("abc" + std::to_string(n), Precision::sha256);
    default:
      return of_digest(std::string(n % 200, 'd'), Precision::weak_digest);
  }
}

std::map<std::int64_t, Scalar> walked(const Values& values) {
  std::map<std::int64_t, Scalar> all;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  for (const auto& [iteration, scalar] : values) {
    EXPECT_LT(last, iteration);
    last = iteration;
    all.emplace(iteration, scalar);
  }
  return all;
}

class ValuesAgainstAMap : public ::testing::TestWithParam<bool> {
 protected:
  /// Without a spool, or with one that keeps nothing in memory.
  Values fresh() const {
    return GetParam() ? Values(std::make_shared<Spool>(folder.path(), 0)) : Values();
  }
  test::TempFolder folder;
};
INSTANTIATE_TEST_SUITE_P(Storage, ValuesAgainstAMap, ::testing::Bool());

TEST_P(ValuesAgainstAMap, InOrderRunsOfAnyKindComeBack) {
  for (const std::uint64_t kinds : {1U, 7U}) {
    Values values = fresh();
    std::map<std::int64_t, Scalar> model;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      const auto iteration = static_cast<std::int64_t>(i < 10'000 ? i : i * 3);
      const Scalar scalar = some_scalar(kinds == 1 ? i * 7 : i);
      ASSERT_TRUE(values.insert(iteration, scalar));
      model.emplace(iteration, scalar);
    }
    EXPECT_EQ(walked(values), model);
    EXPECT_EQ(values.size(), model.size());
    EXPECT_EQ(values.first_iteration(), model.begin()->first);
    EXPECT_EQ(values.last_iteration(), model.rbegin()->first);
    for (const std::int64_t iteration : {0, 4095, 4096, 9999, 30'000, 30'001, 59'997}) {
      const auto found = model.find(iteration);
      EXPECT_EQ(values.find(iteration),
                found == model.end() ? std::nullopt : std::optional(found->second));
    }
  }
}

TEST_P(ValuesAgainstAMap, AnyOrderOfInsertsAssignsAndErasesIsTheMaps) {
  std::mt19937_64 random(7);
  for (const std::int64_t span : {50, 3'000, 100'000}) {
    Values values = fresh();
    std::map<std::int64_t, Scalar> model;
    for (int i = 0; i < 12'000; ++i) {
      const auto iteration = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(span));
      const Scalar scalar = some_scalar(random());
      switch (random() % 8) {
        case 0:
          values.erase(iteration);
          model.erase(iteration);
          break;
        case 1:
          values.insert_or_assign(iteration, scalar);
          model[iteration] = scalar;
          break;
        default: {
          Scalar found;
          const auto [at, fresh_in_model] = model.try_emplace(iteration, scalar);
          ASSERT_EQ(values.insert(iteration, scalar, &found), fresh_in_model);
          if (!fresh_in_model) {
            ASSERT_EQ(found, at->second);
          }
        }
      }
      ASSERT_EQ(values.size(), model.size());
    }
    EXPECT_EQ(walked(values), model);
    const Values copy = values;
    values.erase(model.begin()->first);
    EXPECT_EQ(walked(copy), model) << "a copy stands by itself";
  }
}

TEST_P(ValuesAgainstAMap, DescendingOrderFillsBlocksFromTheFront) {
  Values values = fresh();
  for (std::int64_t i = 30'000; i > 0; --i) ASSERT_TRUE(values.insert(i, of_integer(i)));
  std::int64_t expected = 1;
  for (const auto& [iteration, scalar] : values) {
    ASSERT_EQ(iteration, expected);
    ASSERT_EQ(scalar, of_integer(expected++));
  }
  EXPECT_EQ(expected, 30'001);
}

TEST_P(ValuesAgainstAMap, OneLongNumberShowsThatAllWerePrintedInFull) {
  Values values = fresh();
  for (std::int64_t i = 0; i < 9'000; ++i) {
    values.insert(i, parse_number(i == 8'000 ? "0.1000000000000000055" : "0.5").value());
  }
  values.insert(9'000, parse_number("nan").value());
  EXPECT_FALSE(values.all_exact());
  values.settle();
  EXPECT_EQ(values.at(3), of_float64(0.5));
  EXPECT_EQ(values.at(8'000), of_float64(0.1));
  EXPECT_EQ(values.at(9'000).precision, Precision::printed) << "text has one NaN";
  EXPECT_FALSE(values.all_exact());
  values.erase(9'000);
  EXPECT_TRUE(values.all_exact());
  values.insert(9'001, parse_number("0.25").value());
  EXPECT_EQ(values.at(9'001).precision, Precision::printed) << "a later file's values are its own";
}

TEST_P(ValuesAgainstAMap, LostZerosComeBackByTheLongest) {
  Values values = fresh();
  values.insert(1, parse_number("10.9367").value());
  values.insert(2, parse_number("10.93429").value());
  values.settle();
  EXPECT_EQ(values.at(1), parse_number("10.93670").value());
  EXPECT_EQ(values.at(1).str(), "10.93670");
  EXPECT_EQ(values.at(1).digits, 7);
}

TEST(Spool, AFolderThatIsNotThereKeepsTheValuesAndSaysSo) {
  const auto spool = std::make_shared<Spool>("/nowhere/at/all", 0);
  Values values(spool);
  for (std::int64_t i = 0; i < 10'000; ++i) values.insert(i, of_integer(i * i));
  ASSERT_TRUE(spool->error());
  EXPECT_EQ(values.at(77), of_integer(77 * 77));
}

TEST(ParseNumber, KeepsHowItWasPrinted) {
  for (const char* text :
       {"6.321", "1.186396E+01", "1.186396e-05", "-0.0", "0.000", "0.000000E+00", "9154.0", "nan",
        "inf", "-inf", "-12.50", "123456789.123456", "0.00012", "1E+05"}) {
    const auto scalar = parse_number(text);
    ASSERT_TRUE(scalar) << text;
    EXPECT_EQ(scalar->str(), text);
    EXPECT_EQ(scalar->precision, Precision::printed);
  }
  for (const char* text : {"0", "17", "-9223372036854775808", "9223372036854775807", "+5"}) {
    EXPECT_EQ(parse_number(text)->precision, Precision::integer) << text;
  }
  EXPECT_EQ(parse_number("-9223372036854775808")->bits, std::uint64_t{1} << 63U);
  EXPECT_EQ(parse_number("9223372036854775808")->precision, Precision::printed);
  EXPECT_EQ(parse_number("-0")->precision, Precision::printed) << "its sign would be lost";
  for (const char* text : {"", "-", "+", ".", "1e", "1e+", "1.2.3", "0x10", "1 ", " 1", "infinit",
                           "--1", "e5", "1e400", "nan(1)", "1,5"}) {
    EXPECT_FALSE(parse_number(text)) << text;
  }
}

TEST(ParseNumber, GivesTheBitsThatTheLibraryGives) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 200'000; ++i) {
    // Up to and beyond the 19 digits that fit in one word, leading zeros among them.
    std::string text = std::to_string(random() >> random() % 64) + ".";
    const auto zeros = random() % 8 == 0 ? random() % 12 : 0;
    text.append(zeros, '0');
    const auto decimals = random() % 18 + 1;
    for (std::uint64_t k = 0; k < decimals; ++k) {
      text += static_cast<char>('0' + random() % 10);
    }
    if (random() % 2 == 0) text += "E" + std::to_string(static_cast<int>(random() % 60) - 30);
    const auto scalar = parse_number(text);
    ASSERT_TRUE(scalar) << text;
    ASSERT_EQ(scalar->bits, std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
        << text;
  }
}

/// Decimals that are a float64, lie in the middle between two, or next to the middle.
TEST(ParseNumber, RoundsTiesAndTheirNeighboursAsTheLibraryDoes) {
  std::mt19937_64 random(12);
  for (int i = 0; i < 200'000; ++i) {
    // An odd number of 54 bits over 2^k is a tie, and has k decimals.
    const auto decimals = random() % 4 + 1;
    std::uint64_t mantissa = (std::uint64_t{1} << 53U | random() >> 11U) | 1U;
    for (std::uint64_t k = 0; k < decimals; ++k) mantissa *= 5;
    mantissa += random() % 3 - 1;
    const std::string text = std::string(random() % 2 == 0 ? "-" : "") + std::to_string(mantissa) +
                             "e-" + std::to_string(decimals);
    ASSERT_EQ(parse_number(text)->bits,
              std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)))
        << text;
  }
  // Shortest forms give back the bits, over all magnitudes.
  for (int i = 0; i < 200'000; ++i) {
    const double value =
        std::ldexp(static_cast<double>(random() >> 11U), static_cast<int>(random() % 160) - 150);
    std::array<char, 40> buffer{};
    for (const auto format :
         {std::chars_format::general, std::chars_format::scientific, std::chars_format::fixed}) {
      char* const end =
          std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
      const std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
      if (text.find_first_of(".e") == std::string_view::npos) continue;  // an integer
      ASSERT_EQ(parse_number(text)->bits, std::bit_cast<std::uint64_t>(value)) << text;
    }
  }
}

/// Where more text follows, numbers are read another way.
TEST(TakeNumber, ReadsWithinATextAsAtItsEnd) {
  std::mt19937_64 random(13);
  const auto check = [](const std::string& text, const std::string& behind) {
    const std::string longer = text + behind;
    Scalar alone;
    Scalar within;
    const auto taken = [](const std::string& whole, Scalar& to) {
      const char* const stop = take_number(whole.data(), whole.data() + whole.size(), to);
      return stop == nullptr ? -1 : stop - whole.data();
    };
    const auto end = taken(text, alone);
    ASSERT_EQ(taken(longer, within), end) << longer;
    if (end >= 0) {
      ASSERT_EQ(within, alone) << longer;
    }
  };
  const std::string room(40, ' ');
  for (const char* text : {"0",
                           "-0",
                           "0.",
                           "0.0",
                           "-0.0",
                           ".5",
                           "-.5",
                           "+5",
                           "5.",
                           "1e5",
                           "1.5e5",
                           "1.5E-30",
                           "1e400",
                           "1234567",
                           "12345678",
                           "123456789012345678901234567890",
                           "1843.9999999999999999",
                           "1844.6744073709551615",
                           "1844.0",
                           "9999.9999999999999999",
                           "0.1234567890123456",
                           "0.12345678901234567",
                           "0.00012345678901234567",
                           "0.000000000000000000001",
                           "1.2.3",
                           "1..2",
                           "-",
                           "+",
                           ".",
                           "-.",
                           "e5",
                           "1e",
                           "1e+",
                           "x",
                           "",
                           "9007199254740993.0",
                           "9223372036854775807",
                           "9223372036854775808",
                           "-9223372036854775808"}) {
    for (const char* behind : {",", "}", "\n", "x", "\xFF", "/", ":"}) check(text, behind + room);
    check(text, "," + std::string(40, '9'));
  }
  for (int i = 0; i < 200'000; ++i) {
    std::string text(random() % 4 == 0 ? "-" : "");
    text += std::to_string(random() >> random() % 64);
    if (random() % 8 != 0) {
      text += '.';
      text.append(random() % 8 == 0 ? random() % 12 : 0, '0');
      for (std::uint64_t k = random() % 20; k > 0; --k)
        text += static_cast<char>('0' + random() % 10);
    }
    if (random() % 3 == 0) text += "e" + std::to_string(static_cast<int>(random() % 60) - 30);
    check(text, ",}\n \t\r\"/:\xFF"s[random() % 10] + room);
  }
  // Ties and what is next to one, and the shortest forms of float64 of all magnitudes.
  for (int i = 0; i < 200'000; ++i) {
    std::array<char, 40> buffer{};
    const double value =
        std::ldexp(static_cast<double>(random() >> 11U), static_cast<int>(random() % 90) - 80);
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    const std::string text(buffer.data(), end);
    check(text, "," + room);
    const std::uint64_t odd = (std::uint64_t{1} << 53U | random() >> 11U) | 1U;
    const std::string halves = std::to_string(odd * 5 + random() % 3 - 1);
    const std::size_t whole = random() % 4 + 1;
    check(halves.substr(0, whole) + "." + halves.substr(whole) + "e+" +
              std::to_string(halves.size() - whole - 1 + 100).substr(1),
          "," + room);
  }
}

/// Any number of kinds in one block: one, those that a byte tells apart, and more.
TEST_P(ValuesAgainstAMap, BlocksOfManyKindsComeBack) {
  std::mt19937_64 random(14);
  for (const std::size_t kinds : {1U, 2U, 3U, 20U, 255U, 256U, 4000U}) {
    std::map<std::int64_t, Scalar> map;
    Values values = fresh();
    for (std::int64_t i = 0; i < 10'000; ++i) {
      const std::uint64_t kind = random() % kinds;
      Scalar scalar;
      scalar.bits = random() >> 12U;
      scalar.precision = Precision::printed;
      scalar.digits = static_cast<int>(kind % 200);
      scalar.last_digit = static_cast<int>(kind / 7) - 300;
      scalar.notation = static_cast<Notation>(kind % 3);
      ASSERT_TRUE(values.append_later(i, scalar));
      map.emplace(i, scalar);
    }
    ASSERT_EQ(walked(values), map) << kinds;
  }
}

}  // namespace
}  // namespace qualify::evidence
