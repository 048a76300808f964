// `qualify trace` and `qualify localize`, from argv to exit code.
#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app.hpp"
#include "qualify/base/files.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"
#include "support/trace_generator.hpp"

namespace qualify::cli {
namespace {

using test::Planted;
using ::testing::HasSubstr;
using ::testing::Not;

struct Answer {
  int exit = 0;
  std::string out;
  std::string err;
};

class Traces : public ::testing::Test {
 protected:
  Answer run(std::vector<std::string> arguments) {
    std::ostringstream out;
    std::ostringstream err;
    Session session{out,   err, clock, {},      "/nowhere/qualify", folder.path(), "host", "user",
                    false, 200, {},    Exit::ok};
    CLI::App app;
    describe_program(app, session);
    std::reverse(arguments.begin(), arguments.end());
    try {
      app.parse(arguments);
    } catch (const CLI::ParseError& error) {
      return {static_cast<int>(Exit::usage), out.str(), error.what()};
    }
    return {static_cast<int>(session.exit), out.str(), err.str()};
  }
  void write(const char* name, const std::vector<test::Plant>& plants) {
    test::write_trace(folder / name, test::TraceShape{}, plants);
  }
  test::TempFolder folder{test::memory_folder()};
  test::FakeClock clock;
};

TEST_F(Traces, FromRawTracesToTheAnswerInWords) {
  write("a", {});
  write("b", {{Planted::collective_bit, 2, 5, 1, 1}});
  for (const char* run_name : {"a", "b"}) {
    const Answer sealed = run({"trace", "seal", run_name});
    EXPECT_EQ(sealed.exit, 0) << sealed.err;
    EXPECT_THAT(sealed.out, HasSubstr("16 files written"));
  }
  const Answer info = run({"trace", "info", "a.sealed", "--check"});
  EXPECT_EQ(info.exit, 0) << info.err;
  EXPECT_THAT(info.out, HasSubstr("ranks       0-15"));
  EXPECT_THAT(info.out, HasSubstr("every row hashed again"));

  const Answer found = run({"localize", "a.sealed", "b.sealed"});
  EXPECT_EQ(found.exit, 1) << found.err;
  EXPECT_THAT(found.out,
              HasSubstr("first divergence: iteration 2, forward, decoder.layers.1.attention.proj "
                        "output, all-reduce #"));
  EXPECT_THAT(found.out, HasSubstr("of tp.2, microbatch 1"));
  EXPECT_THAT(found.out, HasSubstr("ranks 4-5: equal inputs and different outputs: the collective "
                                   "itself [collective]"));
  EXPECT_THAT(found.out,
              HasSubstr("last equal boundary: forward, decoder.layers.1.attention.proj input"));
  EXPECT_THAT(found.out, HasSubstr("14 other ranks differ and follow from it"));
  EXPECT_THAT(found.out, HasSubstr("capture next: nothing; the interval of doubt is one event"));

  const Answer json = run({"localize", "a", "b.sealed", "--json"});
  EXPECT_EQ(json.exit, 1);
  const Json record = Json::parse(json.out);
  EXPECT_EQ(record["classification"], "collective");
  EXPECT_EQ(record["frontier"][0]["ranks"], "4-5");
  EXPECT_TRUE(record["interval"]["one_event"].get<bool>());
  EXPECT_TRUE(record["capture_plan"].is_null());
}

TEST_F(Traces, EqualRunsAreZeroAndIncompleteOnesThree) {
  write("a", {});
  write("b", {});
  EXPECT_EQ(run({"localize", "a", "b"}).exit, 0);
  EXPECT_EQ(run({"localize", "a", "b", "--full"}).exit, 0);
  fs::remove(folder / "b/rank_000007.jsonl");
  const Answer sealed = run({"trace", "seal", "b", "--json"});
  EXPECT_EQ(sealed.exit, 3);
  EXPECT_FALSE(Json::parse(sealed.out)["complete"].get<bool>());
  const Answer found = run({"localize", "a", "b.sealed"});
  EXPECT_EQ(found.exit, 3) << found.out;
  EXPECT_THAT(found.out, HasSubstr("no trace of ranks 7"));
}

TEST_F(Traces, WritesThePlanOfWhatToCaptureNext) {
  write("a", {});
  write("b", {{Planted::routing, 2, 3, 0, 0}});
  const Answer found = run({"localize", "a", "b", "--write-plan", "next.json"});
  EXPECT_EQ(found.exit, 1);
  EXPECT_THAT(found.out, HasSubstr("capture next: L2 on ranks 3, iteration 2, forward"));
  const Json plan = Json::parse(read_file(folder / "next.json").value());
  EXPECT_EQ(plan["level"], "L2");
  EXPECT_EQ(plan["first_iteration"], 2);
}

TEST_F(Traces, RefusesOtherRunsAndNamesWhatDiffers) {
  write("a", {});
  write("b", {});
  Json manifest = Json::parse(read_file(folder / "b/manifest.json").value());
  manifest["seed"] = "99";
  ASSERT_TRUE(write_file_atomic(folder / "b/manifest.json", manifest.dump()));
  const Answer refused = run({"localize", "a", "b"});
  EXPECT_EQ(refused.exit, 3);
  EXPECT_THAT(refused.err, HasSubstr("seed: 1234 against 99"));
  EXPECT_EQ(run({"localize", "a", "b", "--allow", "seed"}).exit, 0);
  EXPECT_EQ(run({"localize", "a", "b", "--allow", "groups"}).exit, 2);
}

TEST_F(Traces, UsageFaultsAreTwo) {
  write("a", {});
  EXPECT_EQ(run({"trace", "seal", "nowhere"}).exit, 2);
  EXPECT_EQ(run({"trace", "seal", "a", "--running"}).exit, 2);
  EXPECT_EQ(run({"trace", "seal", "a", "--ranks", "x"}).exit, 2);
  EXPECT_EQ(run({"localize", "a", "nowhere"}).exit, 2);
}

TEST_F(Traces, ExportsBothRunsSideBySideWithTheDivergenceMarked) {
  write("a", {});
  write("b", {{Planted::tensor_bit, 2, 5, 1, 1}});
  const Answer written =
      run({"trace", "export", "a", "--with", "b", "--ranks", "4-5", "--from-iteration", "2",
           "--to-iteration", "2", "--output", "t.json"});
  ASSERT_EQ(written.exit, 0) << written.err;
  const Json timeline = Json::parse(read_file(folder / "t.json").value());
  std::size_t spans = 0;
  std::size_t marks = 0;
  std::size_t red = 0;
  std::vector<std::string> names;
  for (const Json& event : timeline["traceEvents"]) {
    if (event["ph"] == "X") {
      ++spans;
      EXPECT_EQ(event["args"]["iteration"], 2);
      EXPECT_GE(event["ts"].get<double>(), 0.0);
      red += event.contains("cname") ? 1 : 0;
    } else if (event["ph"] == "i") {
      ++marks;
      EXPECT_EQ(event["name"], "first divergence: decoder.layers.1.attention output");
    } else if (event["name"] == "process_name") {
      names.push_back(event["args"]["name"]);
    }
  }
  EXPECT_THAT(names,
              ::testing::UnorderedElementsAre("rank 4, A", "rank 4, B", "rank 5, A", "rank 5, B"));
  EXPECT_EQ(marks, 2U);  // on rank 5 of either run
  EXPECT_EQ(red, 2U);
  EXPECT_GT(spans, 100U);
  EXPECT_EQ(run({"trace", "export", "a", "--ranks", "99", "--output", "no.json"}).exit, 2);
  EXPECT_FALSE(fs::exists(folder / "no.json"));
  EXPECT_FALSE(fs::exists(folder / "no.json.part"));
}

TEST_F(Traces, SamplesOfBothSchemasAreLocalised) {
  const std::string data = QUALIFY_TEST_DATA "/traces/";
  const Answer one =
      run({"localize", data + "pr6610_v1/run_a", data + "pr6610_v1/run_c_rank1_iter2_diverges"});
  EXPECT_EQ(one.exit, 1);
  EXPECT_THAT(one.out, HasSubstr("iteration 2"));
  EXPECT_THAT(one.out, HasSubstr("rank 1"));
  const Answer other =
      run({"localize", data + "fork_v1/run_a", data + "fork_v1/run_b_iter2_rank1_diverges"});
  EXPECT_EQ(other.exit, 1);
  EXPECT_THAT(other.out, HasSubstr("iteration 2"));
  EXPECT_EQ(run({"localize", data + "pr6610_v1/run_a", data + "pr6610_v1/run_b_identical"}).exit,
            0);
}

}  // namespace
}  // namespace qualify::cli
