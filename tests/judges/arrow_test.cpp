#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "npm_packages.hpp"
#include "qualify/traces/seal.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "support/temp_folder.hpp"
#include "support/trace_generator.hpp"

/// A sealed trace, read by Arrow libraries that share no code with us or each other.
namespace qualify::traces {
namespace {

struct Library {
  const char* name;
  const char* first_line;      ///< part of what it prints of the columns
  bool reads_binaries = true;  ///< digest_tail
};

class ArrowJudge : public ::testing::TestWithParam<Library> {
 protected:
  void SetUp() override { test::need_npm_packages(); }
  std::vector<std::string> read(const fs::path& file) {
    // Through a file: the output may be larger than a pipe.
    const auto script = fs::path(JUDGES_SOURCE) / (std::string(GetParam().name) + ".mjs");
    const auto ran = test::run_program({NODE_PROGRAM, script.string(), file.string()});
    std::istringstream lines(ran.output);
    std::vector<std::string> all;
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    return all;
  }
  void judge(const fs::path& path);
  test::TempFolder folder_;
};

template <class T>
Json number(T value, T null) {
  return value == null ? Json(nullptr) : Json(std::to_string(value));
}
Json text(std::string_view value) {
  return value.empty() ? Json(nullptr) : Json(value);
}
template <class Enum>
Json name(Enum value) {
  return value == Enum::none ? Json(nullptr) : Json(name_of(value));
}

constexpr std::size_t kDigestTail = 21;

/// The row as the judge must print it.
Json row_of(std::int64_t rank, const Event& e, const Strings& s) {
  const bool digest = e.has_digest();
  const bool valued = e.value_type != ValueType::none;
  return Json::array({std::to_string(rank),
                      std::to_string(e.iteration),
                      number(e.microbatch, -1),
                      number(e.vpp_chunk, std::int16_t{-1}),
                      s.text(e.phase),
                      s.text(e.site),
                      text(s.text(e.op)),
                      name_of(e.kind),
                      std::to_string(e.occurrence),
                      std::to_string(e.rank_seq),
                      text(s.text(e.group)),
                      number(e.group_seq, std::int64_t{-1}),
                      name(e.role),
                      number(e.peer, -1),
                      text(s.text(e.shape)),
                      text(s.text(e.dtype)),
                      number(e.bytes, std::int64_t{-1}),
                      valued ? Json(std::to_string(e.value_bits)) : Json(nullptr),
                      name(e.value_type),
                      digest ? Json(std::to_string(e.digest_lo)) : Json(nullptr),
                      digest ? Json(std::to_string(e.digest_hi)) : Json(nullptr),
                      e.algorithm == Algorithm::sha256 ? Json(to_hex(e.tail)) : Json(nullptr),
                      name(e.algorithm),
                      e.has_multiset ? Json(std::to_string(e.multiset)) : Json(nullptr),
                      name_of(e.coverage),
                      std::to_string(e.flags),
                      number(e.time_ns, kNoTime),
                      number(e.duration_ns, kNoTime)});
}

void ArrowJudge::judge(const fs::path& path) {
  const auto lines = read(path);
  const auto file = SealedFile::open(path).value();
  Strings strings;
  const Events events = file.read_all(strings).value();
  ASSERT_EQ(lines.size(), events.size() + 1) << ::testing::PrintToString(lines);
  EXPECT_THAT(lines[0], ::testing::HasSubstr(GetParam().first_line));
  for (std::size_t i = 0; i < events.size(); ++i) {
    Json row = row_of(file.rank(), events[i], strings);
    if (!GetParam().reads_binaries) row[kDigestTail] = nullptr;
    EXPECT_EQ(Json::parse(lines[i + 1]), row) << i;
  }
}

TEST_P(ArrowJudge, ReadsEveryValueOfAGeneratedTrace) {
  test::TraceShape shape;
  shape.iterations = 40;  // several record batches
  test::write_trace(folder_ / "raw", shape);
  SealOptions options;
  options.to = folder_ / "sealed";
  ASSERT_TRUE(seal(folder_ / "raw", options));
  for (const char* name : {"rank_000000.iter_0000000.arrow", "rank_000013.iter_0000000.arrow"}) {
    judge(folder_ / "sealed" / name);
  }
}

TEST_P(ArrowJudge, ReadsTheSamplesOfBothSchemas) {
  for (const char* name : {"pr6610_v1/run_a", "fork_v1/run_a"}) {
    SealOptions options;
    options.to = folder_ / "samples" / name;
    ASSERT_TRUE(seal(fs::path(JUDGES_SOURCE) / "../data/traces" / name, options));
    judge(options.to / "rank_000001.iter_0000000.arrow");
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, ArrowJudge,
                         ::testing::Values(Library{"arrow", "iteration: Int64; microbatch: Int32"},
                                           Library{"polars", "iteration microbatch", false}),
                         [](const auto& library) { return std::string(library.param.name); });

}  // namespace
}  // namespace qualify::traces
