// Every sample behaves as the line about it in tests/data/README.md says: pairs as a table, and
// single files as another.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/exactness/compare.hpp"

namespace qualify::exactness {
namespace {

using ::testing::HasSubstr;

const std::filesystem::path kData = QUALIFY_TEST_DATA;

struct Sample {
  const char* a;
  const char* b;
  std::int64_t from;  ///< first iteration to compare; 0 = all
  Outcome outcome;
  const char* first;     ///< "metric@iteration" where they part, or empty
  const char* why;       ///< part of some reason, or empty
  bool one_run = false;  ///< one run filed twice
};

void PrintTo(const Sample& sample, std::ostream* out) {
  *out << sample.a << " and " << sample.b;
}

constexpr auto kEqual = Outcome::equal;
constexpr auto kDiffers = Outcome::differs;
constexpr auto kOpen = Outcome::inconclusive;

const Sample kSamples[] = {
    {"h200/a", "h200/b", 0, kEqual, "", ""},
    {"h200/a", "h200/c", 0, kDiffers, "num-zeros@1", ""},
    {"h200/b", "h200/c", 0, kDiffers, "num-zeros@1", ""},
    {"h200/a/log.txt", "h200/b/log.txt", 0, kOpen, "",
     "the TensorBoard files beside them have the bits: "},
    {"h200/a/log.txt", "h200/c/log.txt", 0, kDiffers, "", ""},
    {"golden/gpt3_resume_dist_opt__dev_dgx_gb200.json",
     "golden/gpt3_resume_dist_opt__dev_dgx_gb200_2nd.json", 51, kOpen, "", "printed with 7 digits"},
    {"golden/gpt3_resume_dist_opt__dev_dgx_gb200.json",
     "golden/gpt3_resume_dist_opt__dev_dgx_gb200_2nd.json", 0, kOpen, "",
     "iteration 1-50 only in A"},
    {"golden/gpt3_resume_dist_opt__lts_dgx_a100.json",
     "golden/gpt3_resume_dist_opt__lts_dgx_a100_2nd.json", 51, kDiffers, "lm loss@51", ""},
    {"golden/hybrid_tp1_pp4__dev_dgx_a100.json", "golden/hybrid_tp1_pp4__lts_dgx_a100.json", 0,
     kOpen, "", "one run filed twice", true},
    {"tb_synthetic/run_a", "tb_synthetic/run_b_identical", 0, kOpen, "", "one run filed twice",
     true},
    {"tb_synthetic/run_a", "tb_synthetic/run_c_1ulp_lm_loss_step37", 0, kDiffers, "lm loss@37", ""},
    {"traces/pr6610_v1/run_a", "traces/pr6610_v1/run_b_identical", 0, kOpen, "", "grad_norm"},
    {"traces/pr6610_v1/run_a", "traces/pr6610_v1/run_c_rank1_iter2_diverges", 0, kDiffers,
     "decoder.layer0.input (forward, rank 1, microbatch 0)@2", ""},
    {"traces/fork_v1/run_a", "traces/fork_v1/run_b_iter2_rank1_diverges", 0, kDiffers, "", ""},
};

class Samples : public ::testing::TestWithParam<Sample> {};
INSTANTIATE_TEST_SUITE_P(OfTheIndex, Samples, ::testing::ValuesIn(kSamples));

TEST_P(Samples, BehaveAsTheIndexSays) {
  const Sample& sample = GetParam();
  const auto a = evidence::read_metrics(kData / sample.a);
  const auto b = evidence::read_metrics(kData / sample.b);
  ASSERT_TRUE(a && b);
  Options options;
  if (sample.from > 0) options.from_iteration = sample.from;
  for (const bool swapped : {false, true}) {
    const auto comparison = swapped ? compare(*b, *a, options) : compare(*a, *b, options);
    EXPECT_EQ(comparison.outcome, sample.outcome) << to_json(comparison).dump(1);
    EXPECT_EQ(comparison.same_run_filed_twice, sample.one_run);
    EXPECT_EQ(comparison.level.has_value(), sample.outcome == Outcome::equal);
    const auto* first = comparison.first_divergence();
    EXPECT_EQ(first != nullptr, sample.outcome == Outcome::differs);
    if (*sample.first != '\0' && first != nullptr) {
      EXPECT_EQ(first->metric + "@" + std::to_string(first->first->iteration), sample.first);
    }
    if (*sample.why != '\0' && !swapped) {
      EXPECT_THAT(to_json(comparison).at("reasons").dump(-1, ' ', false), HasSubstr(sample.why));
    }
  }
}

struct File {
  const char* name;
  const char* format;  ///< as told by content; empty: refused
  const char* detail;  ///< a metric that it has, or part of why it is refused
};

void PrintTo(const File& file, std::ostream* out) {
  *out << file.name;
}

const File kFiles[] = {
    {"golden/deepseek_proxy_fsdp_ep2_fsdp2__dev_dgx_gb200.json", "golden-values", "lm loss"},
    {"golden/nemotron3_5_lightning__dev_dgx_gb200.json", "golden-values", "lm loss"},
    {"golden/EMPTY_0_byte__gpt3_ep4_memory_speed__dev_dgxh100_dgxc.json", "", "empty"},
    {"golden/OTHER_SCHEMA_inference__hybrid_2B_logitsmatch__dev_dgx_h100.json", "", "inference"},
    {"golden/OTHER_SCHEMA_bridge__deepseek_recipes_pretrain_fsdp_gb200.json", "", "Bridge"},
    {"tables/gpt3_weekly_tp2pp2_gb200.csv", "csv", "num-zeros"},
    {"logs/real_log_lines.txt", "megatron-log", "lm loss"},
    {"steps/dsv3_proxy_gb200_release.csv", "csv", "iteration-time"},
    {"steps/gpt3_weekly_tp2pp2_gb200.csv", "csv", "iteration-time"},
    {"h200/c/log.txt", "megatron-log", "grad-norm"},
    // Recipes: settings, in which numbers stand by name as in a log, and no metrics.
    {"model_config/checkpoint_consistency__gpt3_mcore_reruns_resume_check_grads.yaml", "",
     "no metrics"},
    {"model_config/deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_sm.yaml", "", "no metrics"},
    {"model_config/"
     "gpt3_mcore_te_tp1_pp4_vp1_resume_torch_dist_dist_optimizer_overlap_grad_reduce.yaml",
     "", "no metrics"},
    {"model_config/hybrid_nemotron_v3_pico_7b_a1b_tp1_ep8_QAD_dgx_h100_1N8G.yaml", "",
     "no metrics"},
    {"model_config/nemotron3_super_release_gb200_sm.yaml", "", "no metrics"},
};

class Files : public ::testing::TestWithParam<File> {};
INSTANTIATE_TEST_SUITE_P(OfTheIndex, Files, ::testing::ValuesIn(kFiles));

TEST_P(Files, AreReadOrRefusedAsTheIndexSays) {
  const File& file = GetParam();
  const auto run = evidence::read_metrics(kData / file.name);
  if (*file.format == '\0') {
    ASSERT_FALSE(run);
    EXPECT_THAT(run.error().message, HasSubstr(file.detail));
    return;
  }
  ASSERT_TRUE(run) << run.error().describe();
  EXPECT_EQ(run->format, file.format);
  EXPECT_TRUE(run->series.contains(file.detail));
}

TEST(SampleData, HasARowForEveryFile) {
  std::vector<std::string> rows;
  for (const Sample& sample : kSamples) {
    rows.emplace_back(sample.a);
    rows.emplace_back(sample.b);
  }
  for (const File& file : kFiles) rows.emplace_back(file.name);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kData)) {
    const std::string name = entry.path().lexically_relative(kData).generic_string();
    if (!entry.is_regular_file() || name.ends_with("README.md")) continue;
    // No runs: older schemas of the state's own database, and a file of gates.
    if (name.starts_with("databases/") || name.starts_with("gates/")) continue;
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const std::string& row) {
      return name == row || name.starts_with(row + "/");
    })) << name;
  }
}

#ifdef QUALIFY_SAMPLE_DATA
/// Where the samples themselves lie beside the sources, what is kept here is what they are.
TEST(SampleData, IsWhatTheTestsKeepOfIt) {
  const std::filesystem::path samples = QUALIFY_SAMPLE_DATA;
  std::size_t compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(samples)) {
    auto relative = entry.path().lexically_relative(samples);
    // Of the tables one is kept as it is; steps/ has them in a form of its own.
    if (*relative.begin() == "steps") relative = "tables" / relative.filename();
    if (!entry.is_regular_file() || !std::filesystem::is_regular_file(kData / relative)) continue;
    EXPECT_EQ(read_file(entry.path()).value(), read_file(kData / relative).value()) << relative;
    ++compared;
  }
  EXPECT_GT(compared, 30U);
}
#endif

}  // namespace
}  // namespace qualify::exactness
