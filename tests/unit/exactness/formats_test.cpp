#include <gmock/gmock.h>
#include <sys/stat.h>

#include <fstream>
#include <random>

#include "qualify/base/files.hpp"
#include "qualify/exactness/compare.hpp"
#include "support/temp_folder.hpp"

namespace qualify::exactness {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kData = QUALIFY_TEST_DATA;

evidence::RunMetrics read(const std::filesystem::path& path, const std::string& format = {}) {
  auto run = evidence::read_metrics(path, format);
  EXPECT_TRUE(run) << (run ? "" : run.error().describe());
  return run ? std::move(*run) : evidence::RunMetrics{};
}

const MetricComparison& metric(const Comparison& comparison, const std::string& name) {
  for (const auto& one : comparison.metrics) {
    if (one.metric == name) return one;
  }
  ADD_FAILURE() << "no metric " << name;
  static const MetricComparison none;
  return none;
}

TEST(Golden, ARestartPairThatPassesIsInconclusiveAsProof) {
  const auto a = read(kData / "golden/gpt3_resume_dist_opt__dev_dgx_gb200.json");
  const auto b = read(kData / "golden/gpt3_resume_dist_opt__dev_dgx_gb200_2nd.json");
  const auto comparison = compare(a, b, {51, {}, {}});
  EXPECT_EQ(comparison.outcome, Outcome::inconclusive);
  EXPECT_EQ(comparison.first_divergence(), nullptr);
  const auto& loss = metric(comparison, "lm loss");
  EXPECT_EQ(loss.compared, 50U);
  EXPECT_EQ(loss.differing, 0U);
  EXPECT_THAT(loss.why, HasSubstr("printed with 7 digits"));
  // Of what is stored in full, the count of zeros, equality is proven.
  EXPECT_EQ(metric(comparison, "num-zeros").outcome, Outcome::equal);
}

TEST(Golden, FromTheFirstStepOnTheMissingHalfIsNamed) {
  const auto comparison =
      compare(read(kData / "golden/gpt3_resume_dist_opt__dev_dgx_gb200.json"),
              read(kData / "golden/gpt3_resume_dist_opt__dev_dgx_gb200_2nd.json"));
  EXPECT_EQ(comparison.outcome, Outcome::inconclusive);
  EXPECT_THAT(metric(comparison, "lm loss").why, HasSubstr("iteration 1-50 only in A"));
}

TEST(Golden, ARestartPairThatFailsDiffersAtEveryStep) {
  const auto comparison =
      compare(read(kData / "golden/gpt3_resume_dist_opt__lts_dgx_a100.json"),
              read(kData / "golden/gpt3_resume_dist_opt__lts_dgx_a100_2nd.json"), {51, {}, {}});
  EXPECT_EQ(comparison.outcome, Outcome::differs);
  ASSERT_NE(comparison.first_divergence(), nullptr);
  EXPECT_EQ(comparison.first_divergence()->first->iteration, 51);
  EXPECT_EQ(metric(comparison, "lm loss").differing, 50U);
}

TEST(Golden, TwoFilesWithTheSameTimesAreOneRun) {
  const auto comparison = compare(read(kData / "golden/hybrid_tp1_pp4__dev_dgx_a100.json"),
                                  read(kData / "golden/hybrid_tp1_pp4__lts_dgx_a100.json"));
  EXPECT_TRUE(comparison.same_run_filed_twice);
  EXPECT_EQ(comparison.outcome, Outcome::inconclusive);
}

TEST(Golden, OrdinaryFilesAreReadWithoutFault) {
  for (const char* name : {"deepseek_proxy_fsdp_ep2_fsdp2__dev_dgx_gb200.json",
                           "nemotron3_5_lightning__dev_dgx_gb200.json"}) {
    const auto run = read(kData / "golden" / name);
    EXPECT_TRUE(run.faults.empty()) << name << ": " << run.faults.front().message;
    EXPECT_TRUE(run.series.contains("lm loss"));
    EXPECT_EQ(run.format, "golden-values");
  }
}

TEST(Golden, OtherSchemasAndEmptyFilesAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {"OTHER_SCHEMA_inference__hybrid_2B_logitsmatch__dev_dgx_h100.json", "inference"},
      {"OTHER_SCHEMA_bridge__deepseek_recipes_pretrain_fsdp_gb200.json", "Bridge"},
      {"EMPTY_0_byte__gpt3_ep4_memory_speed__dev_dgxh100_dgxc.json", "empty"}};
  for (const auto& [name, word] : cases) {
    const auto run = evidence::read_metrics(kData / "golden" / name);
    ASSERT_FALSE(run) << name;
    EXPECT_THAT(run.error().message, HasSubstr(word));
  }
}

TEST(Golden, FullPrecisionIsExact) {
  const test::TempFolder folder;
  std::ofstream(folder / "a.json")
      << R"({"lm loss": {"start_step": 1, "end_step": 1, "step_interval": 1, "value_precision": "full", "values": {"1": 10.574319839477539}}})";
  std::ofstream(folder / "b.json")
      << R"({"lm loss": {"start_step": 1, "end_step": 1, "step_interval": 1, "value_precision": "full", "values": {"1": 10.574318885803223}}})";
  EXPECT_EQ(compare(read(folder / "a.json"), read(folder / "a.json")).outcome, Outcome::equal);
  EXPECT_EQ(compare(read(folder / "a.json"), read(folder / "b.json")).outcome, Outcome::differs);
}

TEST(Csv, ARealRunAgainstItselfIsNoSecondRun) {
  const auto run = read(kData / "tables/gpt3_weekly_tp2pp2_gb200.csv");
  EXPECT_EQ(run.format, "csv");
  EXPECT_EQ(run.series.at("num-zeros").values.at(2).precision, evidence::Precision::integer);
  EXPECT_EQ(run.series.at("lm loss").values.at(2).digits, 7);
  EXPECT_EQ(run.series.at("iteration-time").kind, evidence::MetricKind::wall_clock);
  EXPECT_TRUE(run.faults.empty());
  EXPECT_TRUE(compare(run, run).same_run_filed_twice);
}

TEST(Csv, RaggedAndCutRowsAreFaults) {
  const test::TempFolder folder;
  std::ofstream(folder / "a") << "step,lm_loss,grad_norm\n1,2.5,1\n2,2.5\n3,2.5,1";
  const auto run = read(folder / "a");
  ASSERT_EQ(run.faults.size(), 2U);
  EXPECT_EQ(run.faults[0].code, "malformed");
  EXPECT_EQ(run.faults[1].code, "truncated");
}

TEST(JsonLines, DigitsAndBitsDecideWhatIsProven) {
  const test::TempFolder folder;
  std::ofstream(folder / "a")
      << R"({"iteration": 1, "full": 10.574319839477539, "short": 10.57432, "bits": "0x41293069", "count": 9007199254740993, "nan": NaN, "time": 5})"
      << "\n";
  const auto run = read(folder / "a");
  using evidence::Precision;
  EXPECT_EQ(run.format, "json-lines");
  EXPECT_EQ(run.series.at("full").values.at(1).precision, Precision::float64_bits);
  EXPECT_EQ(run.series.at("short").values.at(1).precision, Precision::printed);
  EXPECT_EQ(run.series.at("bits").values.at(1).precision, Precision::float32_bits);
  EXPECT_EQ(run.series.at("count").values.at(1).bits, 9007199254740993U);
  EXPECT_TRUE(run.series.contains("nan"));
  EXPECT_TRUE(run.faults.empty()) << run.faults[0].message;
}

/// A reader knows a layout again; lines whose spaces vary are each read as if they were the first.
TEST(JsonLines, ALayoutThatRepeatsMeansWhatItMeansOnce) {
  const test::TempFolder folder;
  std::mt19937_64 random(20261130);
  const auto pick = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
  const std::vector<std::string> numbers{"0",
                                         "-0",
                                         "17",
                                         "-3",
                                         "0.5",
                                         "10.574319839477539",
                                         "1e-05",
                                         "2E+10",
                                         "1e400",
                                         "1.",
                                         "+5",
                                         "1.2.3",
                                         "9007199254740993",
                                         "nan",
                                         "true",
                                         "\"nan\"",
                                         "\"0x41293069\"",
                                         "[1, 2]",
                                         "1.5E-30",
                                         "18446744073709551616"};
  std::string dense;
  std::string spaced;
  for (int line = 1; line <= 3000; ++line) {
    const std::vector<std::pair<std::string, std::string>> members{
        {"step", pick(50) == 0 ? "1.5" : std::to_string(pick(40) == 0 ? line / 2 : line)},
        {"lm loss", pick(4) == 0 ? numbers[pick(numbers.size())] : std::to_string(line) + ".25"},
        {pick(3) == 0 ? "validation" : "grad-norm", numbers[pick(6)]},
        {"timestamp", std::to_string(1764475654.5 + line)},
        {"iteration-time", "0.1" + std::to_string(pick(1000))}};
    std::string text = "{";
    std::string wide = "{";
    for (std::size_t i = 0; i < members.size(); ++i) {
      text += (i == 0 ? "\"" : ", \"") + members[i].first + "\": " + members[i].second;
      wide += (i == 0 ? "\"" : ",\"") + members[i].first +
              "\":" + std::string(static_cast<std::size_t>(line % 97) + i, ' ') + members[i].second;
    }
    const std::string end = pick(60) == 0 ? "" : pick(60) == 0 ? "} x" : "}";
    dense += text + end + "\n";
    spaced += wide + end + "\n";
  }
  std::ofstream(folder / "a") << dense;
  std::ofstream(folder / "b") << spaced;
  const auto a = read(folder / "a", "json-lines");
  const auto b = read(folder / "b", "json-lines");
  EXPECT_EQ(a.wall_clock_marks, b.wall_clock_marks);
  ASSERT_EQ(a.series.size(), b.series.size());
  for (const auto& [name, series] : a.series) {
    const auto& other = b.series.at(name).values;
    EXPECT_TRUE(std::equal(series.values.begin(), series.values.end(), other.begin(), other.end()))
        << name;
  }
  EXPECT_GT(a.faults.size(), 100U);
  ASSERT_EQ(a.faults.size(), b.faults.size());
  for (std::size_t i = 0; i < a.faults.size(); ++i) {
    EXPECT_EQ(a.faults[i].code, b.faults[i].code) << i;
    EXPECT_EQ(a.faults[i].message, b.faults[i].message) << i;
    EXPECT_EQ(a.faults[i].metric, b.faults[i].metric) << i;
    EXPECT_EQ(a.faults[i].iteration, b.faults[i].iteration) << i;
  }
}

/// What each line of a file gives when it stands among lines that repeat a layout must be what it
/// gives where nothing repeats: there each line has spaces of its own.
TEST(JsonLines, ALineThatNearlyRepeatsIsReadAsItStands) {
  const std::vector<std::string> odd{
      R"({"grad-norm": 2.5, "lm loss": 7.25, "step": 5})",             // other order
      R"({"step": 5, "lm lo\u0073s": 7.25, "grad-norm": 2.5})",        // an escaped key
      R"({"step": 5, "lm loss": 7.25, "lm loss": 2.5})",               // a key twice
      R"({"step": 5, "lm loss": 7.25, "grad-norm": 2.5, "step": 6})",  // the step twice
      R"({"step": 5, "lm los": 7.25, "grad-norm": 2.5})",              // the begin of one known
      R"({"step": 5, "lm loss!": 7.25, "grad-norm": 2.5})",            // and more than one
      R"({"step": 5, "lm loss": 7.25, "grad-norm": 2.5}})",
      R"({"step": 5, "lm loss": 7.25, "grad-norm": 2.5} {"step": 6})",
      R"({"step": 5, "lm loss": 7.25, "grad-norm": 2.5)",
      R"({"step": 5, "lm loss": 7.25, "grad-norm": })",
      R"({"step": 5.0, "lm loss": 7.25, "grad-norm": 2.5})",
      R"({"step": 5e0, "lm loss": 7.25, "grad-norm": 2.5})",
      R"({"step": -5, "lm loss": 7.25, "grad-norm": 2.5})",
      R"({"step": 4, "lm loss": 7.25, "grad-norm": 2.5})",  // again
      R"({"step": 5, "lm loss": "nan", "grad-norm": 2.5})",
      R"({"step": 5, "lm loss": 7.25, "grad-norm": 2.5, "lm loss": 3})",
      "{\"step\": 5, \"lm loss\": 7.25, \"grad-norm\": 2.5}\r",
      "{\"step\": 5, \"lm loss\": 7.25, \"grad-n\xFFrm\": 2.5}",
      "{\"step\": 5, \"lm loss\": 7.25, \"grad-norm\": 2.5}\xC3",
      "{\"step\": 5, \"lm loss\": 7.25, \"grad-norm\": 2.5}" + std::string(1, '\0'),
      "",
      "\r",
      "{\"step\": 5, \"lm loss\": 7." + std::string(300'000, '2') + ", \"grad-norm\": 2.5}",
      "{\"step\": 5, \"lm loss\": 7.25, \"grad-norm\": 2.5" + std::string(600'000, ' ') + "}",
  };
  const test::TempFolder folder;
  for (const std::string& line : odd) {
    for (const char* ends : {"\n", "\r\n"}) {
      for (const bool last : {false, true}) {
        // Alone: every other line is made with spaces that no other has.
        std::string known;
        std::string alone;
        for (int step = 1; step <= 8; ++step) {
          if (step == 5) {
            known += line + "\n";
            alone += line + "\n";
            if (last) break;
            continue;
          }
          const auto text = [&](const std::string& space) {
            return "{\"step\": " + space + std::to_string(step) + ", \"lm loss\": " + space +
                   std::to_string(step) + ".125, \"grad-norm\": " + space + "0.5}" + ends;
          };
          known += text("");
          alone += text(std::string(static_cast<std::size_t>(step), ' '));
        }
        if (last) {  // without its newline
          known.pop_back();
          alone.pop_back();
        }
        // One name for both, since faults say where they are.
        std::ofstream(folder / "a", std::ios::binary) << known;
        const auto a = read(folder / "a", "json-lines");
        std::ofstream(folder / "a", std::ios::binary) << alone;
        const auto b = read(folder / "a", "json-lines");
        const std::string shown = line.substr(0, 80) + (last ? ", last" : "");
        ASSERT_EQ(a.series.size(), b.series.size()) << shown;
        for (const auto& [name, series] : a.series) {
          const auto& other = b.series.at(name).values;
          EXPECT_TRUE(
              std::equal(series.values.begin(), series.values.end(), other.begin(), other.end()))
              << shown;
        }
        ASSERT_EQ(a.faults.size(), b.faults.size()) << shown;
        for (std::size_t i = 0; i < a.faults.size(); ++i) {
          EXPECT_EQ(a.faults[i].code, b.faults[i].code) << shown;
          EXPECT_EQ(a.faults[i].message, b.faults[i].message) << shown;
          EXPECT_EQ(a.faults[i].where, b.faults[i].where) << shown;
        }
      }
    }
  }
}

/// Lines are counted through those that repeat, over the ends of what is read at a time.
TEST(JsonLines, AFaultBehindLinesThatRepeatSaysItsLine) {
  const test::TempFolder folder;
  std::string text;
  std::vector<std::string> where;
  for (int line = 1; line <= 40'000; ++line) {
    if (line % 7'919 == 0) {
      text += "{\"step\": oops}\n";
      where.push_back((folder / "a").string() + ":" + std::to_string(line));
    } else {
      text += "{\"step\": " + std::to_string(line) + ", \"lm loss\": 0." +
              std::to_string(line * 37) + "}\n";
    }
  }
  std::ofstream(folder / "a") << text;
  const auto run = read(folder / "a");
  ASSERT_EQ(run.faults.size(), where.size());
  for (std::size_t i = 0; i < where.size(); ++i) EXPECT_EQ(run.faults[i].where, where[i]);
  EXPECT_EQ(run.series.at("lm loss").values.size(), 40'000 - where.size());
  EXPECT_EQ(run.series.at("lm loss").values.last_iteration(), 40'000);
}

TEST(JsonLines, CutAndBrokenLinesAreFaults) {
  const test::TempFolder folder;
  std::ofstream(folder / "a") << "{\"step\": 1, \"loss\": 1.5}\nnonsense\n{\"step\": 3, \"lo";
  const auto run = read(folder / "a");
  ASSERT_EQ(run.faults.size(), 2U);
  EXPECT_EQ(run.faults[0].code, "malformed");
  EXPECT_EQ(run.faults[1].code, "truncated");
  EXPECT_EQ(run.faults[1].where, (folder / "a").string() + ":3");
}

TEST(Traces, EqualRunsAreEqualAndTheDivergingEventIsNamed) {
  const auto a = read(kData / "traces/pr6610_v1/run_a");
  EXPECT_EQ(a.format, "trace-pr6610");
  EXPECT_TRUE(a.faults.empty()) << a.faults[0].message;
  const auto same = compare(a, read(kData / "traces/pr6610_v1/run_b_identical"));
  // The fields are printed; the tensors' digests cover every byte.
  EXPECT_EQ(metric(same, "lm loss (train, rank 0)").level, Level::e4);
  EXPECT_EQ(metric(same, "grad_norm (train, rank 0)").outcome, Outcome::inconclusive);
  const auto other = compare(a, read(kData / "traces/pr6610_v1/run_c_rank1_iter2_diverges"));
  EXPECT_EQ(other.outcome, Outcome::differs);
  ASSERT_NE(other.first_divergence(), nullptr);
  EXPECT_EQ(other.first_divergence()->metric,
            "decoder.layer0.input (forward, rank 1, microbatch 0)");
  EXPECT_EQ(other.first_divergence()->first->iteration, 2);
}

TEST(Traces, TheForksSchemaToo) {
  const auto a = read(kData / "traces/fork_v1/run_a");
  EXPECT_EQ(a.format, "trace-fork");
  EXPECT_TRUE(a.faults.empty()) << a.faults[0].message;
  const auto other = compare(a, read(kData / "traces/fork_v1/run_b_iter2_rank1_diverges"));
  EXPECT_EQ(other.outcome, Outcome::differs);
  ASSERT_NE(other.first_divergence(), nullptr);
  EXPECT_THAT(other.first_divergence()->metric,
              HasSubstr("data_parallel.grad_reduce.bucket_0.end"));
  EXPECT_THAT(other.first_divergence()->metric, HasSubstr("rank 1"));
  EXPECT_EQ(other.first_divergence()->first->iteration, 2);
}

class CheckpointFolder : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) {
    ASSERT_TRUE(make_folders((folder / name).parent_path()));
    std::ofstream(folder / name, std::ios::binary) << content;
  }
  test::TempFolder folder;
};

TEST_F(CheckpointFolder, EqualBytesAreEqualAtE4AndOneByteDiffers) {
  for (const char* side : {"a", "b", "c"}) {
    const std::string root = side;
    write(root + "/latest_checkpointed_iteration.txt", "10");
    write(root + "/iter_0000010/metadata.json", "{}");
    write(root + "/iter_0000010/__0_0.distcp", root == "c" ? "weightz" : "weights");
  }
  const auto a = read(folder / "a");
  const auto same = compare(a, read(folder / "b"));
  EXPECT_EQ(same.outcome, Outcome::equal);
  EXPECT_EQ(same.level, Level::e4);
  const auto other = compare(a, read(folder / "c"));
  EXPECT_EQ(other.outcome, Outcome::differs);
  EXPECT_EQ(other.first_divergence()->metric, "checkpoint/__0_0.distcp");
  EXPECT_EQ(other.first_divergence()->first->iteration, 10);
}

TEST_F(CheckpointFolder, WithoutTheFileThatIsWrittenLastItIsIncomplete) {
  write("latest_checkpointed_iteration.txt", "10");
  write("iter_0000010/__0_0.distcp", "weights");
  const auto run = read(folder.path());
  ASSERT_EQ(run.faults.size(), 1U);
  EXPECT_EQ(run.faults[0].code, "incomplete-checkpoint");
  EXPECT_EQ(compare(run, run).outcome, Outcome::inconclusive);
}

TEST_F(CheckpointFolder, ATrackerThatNamesAnotherIterationIsAFault) {
  write("latest_checkpointed_iteration.txt", "20");
  write("iter_0000010/mp_rank_00/model_optim_rng.pt", "weights");
  EXPECT_EQ(read(folder.path()).faults.size(), 1U);
}

TEST(ReadMetrics, AFormatCanBeForcedAndAnUnknownOneIsRefused) {
  EXPECT_FALSE(evidence::read_metrics(kData / "h200/a/log.txt", "csv"));
  const auto unknown = evidence::read_metrics(kData / "h200/a", "parquet");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, Errc::usage);
}

TEST(ReadMetrics, APipeIsRefusedNotWaitedFor) {
  const test::TempFolder folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const auto pipe = evidence::read_metrics(folder / "pipe");
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().message, HasSubstr("neither a file nor a folder"));
  EXPECT_FALSE(evidence::read_metrics(folder.path())) << "in a folder it is passed over";
}

TEST(ReadMetrics, TheEventFileBesideALogIsNamed) {
  const test::TempFolder folder;
  const std::string log = (folder / "a/log.txt").string();
  for (const char* side : {"a", "b"}) {
    std::filesystem::create_directories(folder / side / "tensorboard");
    std::filesystem::copy_file(kData / "h200" / side / "log.txt", folder / side / "log.txt");
  }
  const auto why = [&](const std::filesystem::path& a, const std::filesystem::path& b) {
    return metric(compare(read(a), read(b)), "lm loss").why;
  };
  EXPECT_THAT(why(log, folder / "b/log.txt"), HasSubstr("the runs' TensorBoard event files"));
  // Of several the one that holds more than a header, in the log's folder or in one beside it.
  const std::string events = (folder / "a/tensorboard/events.out.tfevents.2.node.1.0").string();
  std::ofstream(folder / "a/tensorboard/events.out.tfevents.1.node.1.0") << "head";
  std::ofstream(events) << "head and scalars";
  EXPECT_THAT(why(log, folder / "b/log.txt"), HasSubstr("beside A has the bits: " + events));
  EXPECT_THAT(why(folder / "b/log.txt", log), HasSubstr("beside B has the bits: " + events));
  std::filesystem::copy_file(folder / "b/log.txt", folder / "a/second.txt");
  EXPECT_THAT(why(log, folder / "a/second.txt"), HasSubstr("has the bits of one: " + events));
  std::ofstream(folder / "b/events.out.tfevents.3.node.1.0") << "head and scalars";
  EXPECT_THAT(why(log, folder / "b/log.txt"), HasSubstr("beside them have the bits: " + events));
}

TEST(ReadMetrics, JunkBesideARunIsPassedOver) {
  const test::TempFolder folder;
  std::filesystem::copy(kData / "h200/a", folder / "run", std::filesystem::copy_options::recursive);
  std::ofstream(folder / "settings.json") << "{\"x\": 1}";
  std::ofstream(folder / "empty");
  std::ofstream(folder / "noise", std::ios::binary) << std::string("\x00\xFF\x10 iteration", 14);
  std::filesystem::create_symlink(".", folder / "loop");
  std::filesystem::create_symlink("/nowhere", folder / "dangling");
  const auto run = read(folder.path());
  EXPECT_TRUE(run.faults.empty()) << run.faults.front().message;
  EXPECT_EQ(compare(run, read(kData / "h200/b")).outcome, Outcome::equal);
}

}  // namespace
}  // namespace qualify::exactness
