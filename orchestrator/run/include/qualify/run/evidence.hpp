#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/policy/judge.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/sentinel.hpp"
#include "qualify/scheduler/types.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::run {

/// What an attempt's end means: scheduler and sentinel must agree on success. Pure.
struct Assessment {
  bool complete = false;
  std::string failure;
  FailureClass failure_class = FailureClass::none;
};
[[nodiscard]] Assessment assess(const scheduler::Job& job, const std::optional<Sentinel>& sentinel,
                                const std::string& nonce, const Digest& bundle);

/// One run's evidence as it lies in the evidence store: a manifest (canonical JSON blob) that cites
/// every file by digest.
struct EvidenceRequest {
  std::string qualification;
  std::string gate;
  plan::Run run;
  Attempt attempt;
  std::filesystem::path folder;  ///< attempt folder
  Digest plan;
};

/// Asked again and again while evidence is read, at least once for each MiB: a checkpoint takes
/// minutes. An error of its ends the reading. None: nobody asks.
using KeepOn = std::function<Result<void>()>;

/// Copies metrics, traces and logs into `store`, hashed while copied and compared with what the job
/// itself hashed; checkpoints are recorded by digest only. Missing required outputs and checksum
/// differences make the evidence incomplete, with the reason; they are no errors.
/// Returns the manifest's digest. Errors: io, no_space, those of `keep_on`.
[[nodiscard]] Result<Digest> collect(const EvidenceRequest& request, const store::Bundle& bundle,
                                     store::BlobStore& store, const KeepOn& keep_on = {});

/// Re-hashes the manifest and every stored file that it cites. Errors: integrity, not_found, io.
[[nodiscard]] Result<void> verify_evidence(const store::BlobStore& store, const Digest& manifest);

/// Reads a run back from its manifest, for judging: only from the evidence store, never from the
/// run folder. `scratch` is a folder for a view by file names; what is made there is removed again.
/// Errors: integrity, not_found, io, those of `keep_on`.
[[nodiscard]] Result<policy::RunEvidence> load_evidence(const store::BlobStore& store,
                                                        const Digest& manifest,
                                                        const std::filesystem::path& scratch,
                                                        const KeepOn& keep_on = {});

/// Fills `traces` of each run from its evidence, and holds them against those of the reference run
/// (policy/localization.hpp). For gates of kind localization. Every value is compared, not the
/// roots alone. What is wrong with traces is a finding of the run, no error. Errors: integrity and
/// not_found (the store's), io.
[[nodiscard]] Result<void> load_traces(const store::BlobStore& store, const policy::Gate& gate,
                                       const std::filesystem::path& scratch,
                                       std::vector<policy::RunEvidence>& runs,
                                       const KeepOn& keep_on = {});

/// The GPUs in the records of an attempt's nodes (nodes.jsonl, node.hpp), before and after.
/// Throws what the JSON library throws on records that are not as nodes write them.
[[nodiscard]] std::vector<policy::GpuReading> gpu_readings(const std::string& nodes_jsonl);

/// What the job captured, out of an evidence manifest and the lines of its nodes.jsonl, if there is
/// one: "env.NAME" for each variable of the workload, "argv", "host", "nodes"; "task.NAME" for what
/// the first node's first task really got, the scheduler's own variables left out; "gpu.driver",
/// "gpu.cuda", "gpu.name", "gpu.vbios", "gpu.ecc", "gpu.mig", "system.kernel" and "system.cpu",
/// each with every value that some node has. The attempt's own folder, which is another one in each
/// run, is "{attempt}" in them. Null when the workload was never started. Errors: integrity.
[[nodiscard]] Result<std::optional<exactness::Environment>> captured_environment(
    const Json& manifest, std::string_view node_lines = {});

/// Names of captured_environment() that an arm sets by itself; of two arms of one bundle, either's
/// may differ. Empty for an arm that the bundle does not have.
[[nodiscard]] std::vector<std::string> arm_settings(const store::Bundle& bundle,
                                                    const std::string& arm);

/// Names of captured_environment() in which two arms are declared to differ, of one bundle or of
/// two: variables that they set otherwise, and "argv" where their arguments differ. Sorted.
[[nodiscard]] std::vector<std::string> declared_differences(const store::Bundle& bundle_a,
                                                            const spec::Arm& arm_a,
                                                            const store::Bundle& bundle_b,
                                                            const spec::Arm& arm_b);

}  // namespace qualify::run
