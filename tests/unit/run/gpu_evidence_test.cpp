#include <gmock/gmock.h>

#include <fstream>

#include "qualify/run/evidence.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(GpuEvidence, HasEachGpuBeforeAndAfter) {
  const auto readings = gpu_readings(
      R"({"node": "n1", "verify": {"gpus": {"gpus": [)"
      R"({"uuid": "GPU-a", "application_sm_mhz": 1980, "power_limit_mw": 700000, "clock_limits": 1}]}},)"
      R"( "collect": {"gpus": {"gpus": [{"uuid": "GPU-a", "application_sm_mhz": null,)"
      R"( "power_limit_mw": 700000, "clock_limits": 64}]}}})"
      "\n"
      R"({"node": "n2", "verify": {"gpus": {"gpus": [{"uuid": null}]}}, "collect": null})"
      "\n");
  ASSERT_THAT(readings, SizeIs(2));
  EXPECT_EQ(readings[0].node, "n1");
  EXPECT_FALSE(readings[0].after);
  EXPECT_EQ(readings[0].application_sm_mhz, 1980U);
  EXPECT_TRUE(readings[1].after);
  EXPECT_FALSE(readings[1].application_sm_mhz);
  EXPECT_EQ(readings[1].clock_limits, 64U);
}

TEST(GpuEvidence, NodesWithoutADriverHaveNone) {
  EXPECT_THAT(gpu_readings(R"({"node": "n1", "verify": {"gpus": {"gpus": []}}, "collect": null})"),
              IsEmpty());
  EXPECT_THAT(gpu_readings(""), IsEmpty());
}

/// An attempt's folder with one output, collected and read back.
policy::RunEvidence evidence_of(const std::string& declared_format) {
  const test::TempFolder folder;
  fs::create_directories(folder / "attempt/output/metrics");
  // By its first line nothing that a reader of ours knows.
  std::ofstream(folder / "attempt/output/metrics/loss.txt") << "starting\n"
                                                               "{\"step\": 1, \"lm loss\": 0.5}\n";
  store::Bundle bundle;
  bundle.outputs.push_back({"metrics", "metrics", declared_format, true});
  EvidenceRequest request;
  request.folder = folder / "attempt";
  auto store = store::BlobStore::open(folder / "store").value();
  const auto manifest = collect(request, bundle, store).value();
  return load_evidence(store, manifest, folder / "scratch").value();
}

TEST(Evidence, IsReadAsTheBundleDeclaresIt) {
  EXPECT_TRUE(evidence_of("").metrics.series.empty());
  const auto run = evidence_of("json-lines");
  EXPECT_EQ(run.metrics.format, "json-lines");
  EXPECT_EQ(run.metrics.series.at("lm loss").values.at(1).str(), "0.5");
  EXPECT_THAT(run.metrics.sources, ElementsAre("output/metrics/loss.txt"));
  ASSERT_EQ(run.metrics.faults.size(), 1U) << "the first line, which is not passed over";
  EXPECT_EQ(run.metrics.faults[0].where, "output/metrics/loss.txt:1");
}

TEST(Evidence, EveryReaderThereIsCanBeDeclared) {
  const test::TempFolder folder;
  const auto read = [&](const std::string& format) {
    std::ofstream(folder / "bundle.yaml")
        << "schema_version: 1\nname: demo\nrecipe: debug\narms: {deterministic: }\n"
           "launch: {argv: [run]}\noutputs: [{kind: metrics, path: m, format: "
        << format << "}]\n";
    return spec::read_bundle_spec(folder / "bundle.yaml");
  };
  for (const std::string& format : evidence::format_names()) {
    const auto spec = read(format);
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(spec->outputs[0].format, format);
  }
  EXPECT_FALSE(read("parquet"));
}

}  // namespace
}  // namespace qualify::run
