// `qualify compare` and `qualify baseline`, from argv to exit code: on files, and on the runs and
// certificates of a state that the engine wrote on a scripted cluster.
#include <gmock/gmock.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/job_plan.hpp"
#include "qualify/run/qualification.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/scheduler/fake.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kData = QUALIFY_TEST_DATA;

struct Answer {
  int exit = 0;
  std::string out;
  std::string err;
  [[nodiscard]] Json json() const { return Json::parse(out); }
};

Answer run_in(const fs::path& folder, Clock& clock, std::vector<std::string> arguments) {
  std::ostringstream out;
  std::ostringstream err;
  Session session{out,   err, clock, {},      "/nowhere/qualify", folder, "host", "user",
                  false, 80,  {},    Exit::ok};
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

class CompareFiles : public ::testing::Test {
 protected:
  Answer run(std::vector<std::string> arguments) {
    return run_in(folder.path(), clock, std::move(arguments));
  }
  test::TempFolder folder;
  test::FakeClock clock;
};

TEST_F(CompareFiles, EqualBitsDiffersAndUnprovenHaveTheirExitCodes) {
  const auto equal = run({"compare", kData + "/h200/a", kData + "/h200/b"});
  EXPECT_EQ(equal.exit, 0) << equal.out;
  EXPECT_THAT(equal.out, HasSubstr("equal at E1"));
  EXPECT_EQ(run({"compare", kData + "/h200/a", kData + "/h200/c"}).exit, 1);
  EXPECT_EQ(run({"compare", kData + "/h200/a/log.txt", kData + "/h200/b/log.txt"}).exit, 3);
}

TEST_F(CompareFiles, FormatsMayBeMixed) {
  const std::string events = kData + "/h200/b/events.out.tfevents.17960116.node.2.0";
  const auto mixed = run({"compare", kData + "/h200/a/log.txt", events, "--json"});
  EXPECT_EQ(mixed.exit, 3);
  const Json metrics = mixed.json().at("metrics");
  for (const Json& metric : metrics) {
    if (metric.at("metric") != "lm loss") continue;
    EXPECT_EQ(metric.at("differing"), 0);
    EXPECT_THAT(metric.at("why").get<std::string>(), HasSubstr("B has the bits (tensorboard)"));
  }
  EXPECT_EQ(run({"compare", kData + "/h200/c/log.txt", events}).exit, 1);
}

TEST_F(CompareFiles, ARestartIsComparedFromWhereItTookUp) {
  const std::string golden = kData + "/golden/gpt3_resume_dist_opt__";
  const auto passes = run({"compare", "--from-iteration", "51", golden + "dev_dgx_gb200.json",
                           golden + "dev_dgx_gb200_2nd.json"});
  EXPECT_EQ(passes.exit, 3) << passes.out;
  EXPECT_THAT(passes.out, HasSubstr("printed with 7 digits"));
  const auto fails = run({"compare", "--from-iteration", "51", golden + "lts_dgx_a100.json",
                          golden + "lts_dgx_a100_2nd.json"});
  EXPECT_EQ(fails.exit, 1);
  EXPECT_THAT(fails.out, HasSubstr("first at iteration 51"));
}

TEST_F(CompareFiles, TheAveragedLineAfterAResumeIsLeftOutAndNamed) {
  const auto line = [](int n, const std::string& loss) {
    return " iteration " + std::to_string(n) + "/ 9 | consumed samples: " + std::to_string(n * 8) +
           " | lm loss: " + loss + " | number of nan iterations: 0 |\n";
  };
  std::ofstream(folder / "whole.log")
      << line(1, "1.100000E+01") << line(2, "1.050000E+01") << line(3, "1.000000E+01")
      << line(4, "9.000000E+00") << line(5, "8.000000E+00");
  std::ofstream(folder / "resumed.log")
      << line(3, "1.000000E+01") << line(4, "9.500000E+00") << line(5, "8.000000E+00");
  const auto result =
      run({"compare", "--from-iteration", "3", "whole.log", "resumed.log", "--json"});
  EXPECT_EQ(result.exit, 3) << result.out;
  const Json metrics = result.json().at("metrics");
  for (const Json& metric : metrics) {
    if (metric.at("metric") != "lm loss") continue;
    EXPECT_EQ(metric.at("compared"), 2);
    EXPECT_THAT(metric.at("why").get<std::string>(),
                HasSubstr("iteration 4 left out: the second line after a start averages two"));
  }
}

TEST_F(CompareFiles, OneRunNamedTwiceIsNotTwoRuns) {
  std::ofstream(folder / "a.jsonl") << "{\"iteration\": 1, \"lm loss\": \"0x41293069\"}\n";
  const auto itself = run({"compare", "a.jsonl", "a.jsonl", "--json"});
  EXPECT_EQ(itself.exit, 3);
  EXPECT_EQ(itself.json().at("same_run_filed_twice"), true);
}

TEST_F(CompareFiles, WhatIsNeitherPathNorRunSaysWhatASideMayBe) {
  const auto nothing = run({"compare", "nowhere", kData + "/h200/a"});
  EXPECT_EQ(nothing.exit, 2);
  EXPECT_THAT(nothing.err, HasSubstr("no such file or folder"));
  EXPECT_THAT(nothing.err, HasSubstr("repeat-1/a"));
  EXPECT_EQ(run({"compare", kData + "/h200/a"}).exit, 2);
  EXPECT_EQ(run({"compare", "--from-iteration", "0", "x", "y"}).exit, 2);
  const std::string a = kData + "/h200/a";
  EXPECT_EQ(run({"compare", "--from-iteration", "9", "--to-iteration", "8", a, a}).exit, 2);
}

TEST_F(CompareFiles, APlotIsWrittenAsSvg) {
  ASSERT_EQ(run({"compare", kData + "/h200/a", kData + "/h200/c", "--plot", "p.svg"}).exit, 1);
  const auto svg = read_file(folder / "p.svg", 1U << 20U);
  ASSERT_TRUE(svg);
  EXPECT_THAT(*svg, HasSubstr("distance in ulps (log scale)"));
}

TEST_F(CompareFiles, LinesStayWithinTheTerminal) {
  for (const char* other : {"/h200/b", "/h200/c", "/h200/b/log.txt"}) {
    std::istringstream lines(run({"compare", kData + "/h200/a", kData + other}).out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  }
}

/// A state with qualifications of gate "repeat": two runs each, of the arms "det" and "other".
class CompareRuns : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(run::init_state(state_folder()));
    std::ofstream(folder / "bundle.yaml")
        << "schema_version: 1\nname: b\nrecipe: debug\nlaunch: {argv: [/bin/true]}\n"
           "arms:\n  det: {environment: {NCCL_ALGO: Ring}}\n"
           "  other: {environment: {NCCL_ALGO: Tree}, arguments: [--fast]}\n"
           "outputs: [{kind: metrics, path: metrics.jsonl}]\n";
    auto state = run::open_state(state_folder());
    ASSERT_TRUE(state);
    const auto spec = spec::read_bundle_spec(folder / "bundle.yaml");
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto bundle = store::seal(*spec, state->bundles);
    ASSERT_TRUE(bundle) << bundle.error().describe();
    request.bundle = bundle->digest;
    request.gate = test::repeat_gate();
    request.grant = test::grant_of(test::night(clock.now() - 1min, clock.now() + 12h));
  }
  fs::path state_folder() const { return folder / ".qualify"; }

  void leave(const scheduler::JobRequest& job_request, const scheduler::Job& job) {
    const bool failed = job.state == scheduler::JobState::failed;
    if (job.state != scheduler::JobState::completed && !failed) return;
    const auto plan = run::read_job_plan(job_request.plan_file).value();
    ASSERT_TRUE(make_folders(plan.folder / "output"));
    std::ofstream(plan.folder / "output" / "metrics.jsonl")
        << R"({"iteration": 1, "lm loss": ")" << loss << R"(", "time": )"
        << clock.now().time_since_epoch().count() << "}\n";
    run::Sentinel sentinel;
    sentinel.nonce = plan.nonce;
    sentinel.bundle = plan.bundle;
    sentinel.nodes = job.nodes;
    if (failed) sentinel.failure = "exit code 3";
    sentinel.host = "node-of-" + plan.run;
    sentinel.argv = {"/bin/true", "--save", (plan.folder / "output").string()};
    if (plan.arm == "other") sentinel.argv.emplace_back("--fast");
    sentinel.environment = {{"NCCL_ALGO", plan.arm == "det" ? "Ring" : "Tree"},
                            {"QUALIFY_RUN", plan.run},
                            {"SLURM_JOB_ID", "job-" + plan.run},
                            {"CACHE", (plan.folder / "output" / "cache").string()}};
    if (plan.run == "b") sentinel.environment.insert(odd_variable.begin(), odd_variable.end());
    sentinel.started = sentinel.ended = clock.now();
    const auto hashed = hash_file(plan.folder / "output" / "metrics.jsonl").value();
    sentinel.files = {{"output/metrics.jsonl", hashed.size, hashed.digest}};
    ASSERT_TRUE(write_file_atomic(plan.folder / run::kSentinelFile, to_json(sentinel).dump()));
  }

  /// Runs the gate once more.
  run::Outcome qualify(const std::string& arm = "det") {
    request.gate.arm = arm;
    auto state = run::open_state(state_folder()).value();
    const auto signer = ledger::load_key(state.paths.signing_key()).value();
    scheduler::FakeScript script = test::cluster_of(request.grant.reservation);
    scheduler::FakeJob job_end;
    job_end.end = end;
    script.jobs = {job_end};
    scheduler::Fake cluster(
        std::move(script), clock,
        [this](const auto& job_request, const auto& job) { leave(job_request, job); });
    const run::Ports ports{cluster,
                           *signer,
                           clock,
                           [] { return run::Stop::none; },
                           [](const journal::Event&) {},
                           "/usr/bin/qualify",
                           {}};
    auto outcome = run::qualify_gate(state, request, ports);
    EXPECT_TRUE(outcome) << outcome.error().describe();
    clock.advance(1min);
    return std::move(*outcome);
  }
  Answer run(std::vector<std::string> arguments) {
    return run_in(folder.path(), clock, std::move(arguments));
  }

  test::TempFolder folder;
  test::FakeClock clock;
  run::Request request;
  std::string loss = "0x41293069";
  scheduler::JobState end = scheduler::JobState::completed;
  std::map<std::string, std::string> odd_variable;
};

TEST_F(CompareRuns, RunsAreTakenFromTheEvidenceByQualificationOrGate) {
  const auto outcome = qualify();
  ASSERT_EQ(outcome.judgement.verdict, policy::Verdict::pass) << outcome.judgement.reasons.front();
  for (const auto& [a, b] :
       {std::pair("repeat-1/a", "repeat-1/b"), std::pair("repeat/a", "repeat/b")}) {
    const auto result = run({"compare", a, b, "--json"});
    EXPECT_EQ(result.exit, 0) << result.out << result.err;
    EXPECT_EQ(result.json().at("a"), "run a of repeat-1");
    EXPECT_EQ(result.json().at("level"), "E1");
    // Host, job id, run and the attempt's folder: they tell runs apart, and nothing else.
    const Json differences = result.json().at("environment").at("differences");
    for (const Json& difference : differences) {
      EXPECT_EQ(difference.at("class"), "identity") << difference;
    }
  }
  EXPECT_EQ(run({"compare", "repeat/a", "repeat-1/a"}).exit, 3) << "one run is not two";
}

TEST_F(CompareRuns, CertificatesEvidenceDigestsAndFilesMayBeMixed) {
  const auto first = qualify();
  const auto second = qualify();
  const auto both = run({"compare", first.certificate.substr(0, 12), second.certificate});
  EXPECT_EQ(both.exit, 0) << both.out << both.err;
  EXPECT_EQ(run({"compare", first.certificate, first.state.runs[1].evidence->str()}).exit, 0);
  std::ofstream(folder / "file.jsonl") << "{\"iteration\": 1, \"lm loss\": \"0x4129306A\"}\n";
  const auto file = run({"compare", second.certificate, "file.jsonl"});
  EXPECT_EQ(file.exit, 1);
  EXPECT_THAT(file.out, HasSubstr("(1 ulp)"));
}

TEST_F(CompareRuns, WhatTheArmsDeclareMayDiffer) {
  (void)qualify("det");
  (void)qualify("other");
  const auto result = run({"compare", "repeat-1/a", "repeat-2/a", "--json"});
  EXPECT_EQ(result.exit, 0) << result.out << result.err;
  std::map<std::string, std::string> classes;
  const Json differences = result.json().at("environment").at("differences");
  for (const Json& difference : differences) {
    classes[difference.at("name")] = difference.at("class");
  }
  EXPECT_EQ(classes["env.NCCL_ALGO"], "declared");
  EXPECT_EQ(classes["argv"], "declared");
}

TEST_F(CompareRuns, AnUndeclaredVariableMakesVerdictAndComparisonInconclusiveByName) {
  odd_variable = {{"NCCL_PROTO", "LL"}};
  const auto outcome = qualify();
  EXPECT_EQ(outcome.judgement.verdict, policy::Verdict::inconclusive);
  EXPECT_THAT(outcome.judgement.reasons.front(), HasSubstr("env.NCCL_PROTO"));
  EXPECT_TRUE(outcome.certificate.empty());
  const auto result = run({"compare", "repeat/a", "repeat/b"});
  EXPECT_EQ(result.exit, 3);
  EXPECT_THAT(result.out, HasSubstr("(not set) against LL"));
}

TEST_F(CompareRuns, ADifferenceOfValuesStaysDefinitiveWhateverTheEnvironment) {
  (void)qualify();
  loss = "0x4129306A";
  odd_variable = {{"NCCL_PROTO", "LL"}};
  (void)qualify();
  EXPECT_EQ(run({"compare", "repeat-1/b", "repeat-2/b"}).exit, 1);
}

TEST_F(CompareRuns, RunsThatBrokeOffAreNotEqualWhateverTheyLeft) {
  end = scheduler::JobState::failed;
  (void)qualify();
  const auto result = run({"compare", "repeat/a", "repeat/b"});
  EXPECT_EQ(result.exit, 3) << result.out << result.err;
  EXPECT_THAT(result.out, HasSubstr("A did not complete"));
  loss = "0x4129306A";
  (void)qualify();
  EXPECT_EQ(run({"compare", "repeat-1/a", "repeat-2/a"}).exit, 1) << "a difference is definitive";
}

TEST_F(CompareRuns, UnknownRunsAreNamedWithThoseThereAre) {
  (void)qualify();
  const auto wrong = run({"compare", "repeat/z", "repeat/a"});
  EXPECT_EQ(wrong.exit, 2);
  EXPECT_THAT(wrong.err, HasSubstr("repeat-1/a, repeat-1/b"));
  EXPECT_EQ(run({"compare", "nothing/z", "repeat/a"}).exit, 2);
}

TEST_F(CompareRuns, ABaselineBindsANameToBundleAndCertificate) {
  EXPECT_THAT(run({"baseline", "list"}).out, HasSubstr("No baseline"));
  const auto first = qualify();
  const auto set = run({"baseline", "set", "prod", first.certificate.substr(0, 8), "--json"});
  ASSERT_EQ(set.exit, 0) << set.err;
  EXPECT_EQ(set.json().at("certificate"), first.certificate);
  EXPECT_EQ(set.json().at("bundle"), request.bundle.str());
  EXPECT_EQ(set.json().at("set_by"), "user");
  EXPECT_THAT(run({"baseline", "list"}).out, HasSubstr("prod"));

  (void)qualify();
  const auto equal = run({"compare", "--baseline", "prod", "repeat/a", "--json"});
  EXPECT_EQ(equal.exit, 0) << equal.out << equal.err;
  EXPECT_EQ(equal.json().at("a"), "run a of baseline prod");
  EXPECT_EQ(equal.json().at("baseline"), "prod");
  loss = "0x4129306A";
  (void)qualify();
  EXPECT_EQ(run({"compare", "--baseline", "prod", "repeat/a"}).exit, 1);
  EXPECT_EQ(run({"compare", "--baseline", "prod", "repeat/a", "repeat/b"}).exit, 2);
  EXPECT_EQ(run({"compare", "--baseline", "none", "repeat/a"}).exit, 2);
}

TEST_F(CompareRuns, ABaselineThatIsSetAgainKeepsItsPastOnTheRecord) {
  const auto first = qualify();
  const auto second = qualify();
  ASSERT_EQ(run({"baseline", "set", "prod", first.certificate}).exit, 0);
  ASSERT_EQ(run({"baseline", "set", "prod", second.certificate}).exit, 0);
  ASSERT_EQ(run({"baseline", "set", "prod", second.certificate}).exit, 0) << "again: no change";
  const auto shown = run({"baseline", "show", "prod", "--json"}).json();
  EXPECT_EQ(shown.at("certificate"), second.certificate);
  ASSERT_EQ(shown.at("earlier").size(), 1U);
  EXPECT_EQ(shown.at("earlier")[0].at("certificate"), first.certificate);
  EXPECT_EQ(run({"baseline", "show", "none"}).exit, 2);
}

TEST_F(CompareRuns, ABaselineNeedsAStandingCertificateAndAPlainName) {
  const auto outcome = qualify();
  EXPECT_EQ(run({"baseline", "set", "a b", outcome.certificate}).exit, 2);
  EXPECT_EQ(run({"baseline", "set", "prod", "abcdef12"}).exit, 2);
  auto state = run::open_state(state_folder()).value();
  const auto signer = ledger::load_key(state.paths.signing_key()).value();
  const Json revocation = {
      {"_type", "https://in-toto.io/Statement/v1"},
      {"subject",
       Json::array({{{"name", "certificate"}, {"digest", {{"sha256", outcome.certificate}}}}})},
      {"predicateType", "urn:qualify:predicate:revocation:v1"},
      {"predicate", {{"revokes", outcome.certificate}, {"operator", "user"}}}};
  ASSERT_TRUE(ledger::Ledger(state.database)
                  .append(*signer, ledger::RecordKind::revocation, "repeat", Digest(), clock.now(),
                          revocation));
  const auto refused = run({"baseline", "set", "prod", outcome.certificate});
  EXPECT_EQ(refused.exit, 3);
  EXPECT_THAT(refused.err, HasSubstr("revoked"));
}

}  // namespace
}  // namespace qualify::cli
