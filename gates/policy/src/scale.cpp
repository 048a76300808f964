#include <map>
#include <set>

#include "equality.hpp"

namespace qualify::policy {

namespace {

std::string nodes_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " node" : " nodes");
}

/// The nodes that really ran, by both accounts, and the GPUs that their drivers told of.
void weigh_size(const Gate& gate, const RunEvidence& run, Findings& findings) {
  if (!run.complete) return;  // a doubt already
  const Scale& scale = gate.scale;
  const auto doubt = [&](const std::string& what) {
    findings.doubts.push_back("run " + run.run + " " + what + ", the gate speaks of exactly " +
                              scale.str());
  };
  if (run.seen_nodes.size() != scale.nodes) {
    doubt("ran on " + nodes_text(run.seen_nodes.size()) + " by their own account");
  }
  if (run.nodes.size() != scale.nodes) {
    doubt("had " + nodes_text(run.nodes.size()) + " by the scheduler's word");
  }
  if (run.seen_nodes.size() == run.nodes.size() && run.seen_nodes != run.nodes) {
    findings.doubts.push_back("run " + run.run +
                              ": the nodes that answered are not those of the scheduler");
  }
  std::map<std::string, std::set<std::string>> gpus;
  for (const GpuReading& gpu : run.gpus) gpus[gpu.node].insert(gpu.uuid);
  for (const auto& [node, ids] : gpus) {
    if (ids.size() < scale.gpus_per_node) {
      doubt("saw " + std::to_string(ids.size()) + " GPUs on node " + node);
      break;  // one is enough to say
    }
  }
}

bool all_gpus_told(const Gate& gate, const std::vector<RunEvidence>& runs) {
  for (const RunEvidence& run : runs) {
    std::set<std::string> nodes;
    for (const GpuReading& gpu : run.gpus) nodes.insert(gpu.node);
    if (nodes.size() < gate.scale.nodes) return false;
  }
  return true;
}

}  // namespace

Judgement judge_scale(const Gate& gate, const std::vector<RunEvidence>& runs) {
  Findings findings;
  for (const RunEvidence& run : runs) weigh_size(gate, run, findings);
  std::vector<PairJudgement> pairs = weigh_repeats(gate, runs, findings);
  Judgement judgement = conclude(std::to_string(runs.size()) + " runs of arm '" + gate.arm +
                                     "' at " + gate.scale.str() + " are equal",
                                 std::move(findings), std::move(pairs));
  limit_by_places(runs, judgement);
  if (judgement.verdict == Verdict::pass && gate.scale.gpus_per_node > 0 &&
      !all_gpus_told(gate, runs)) {
    judgement.limits.emplace_back(
        "GPUs per node by the scheduler's word: not every node's driver told of them");
  }
  return judgement;
}

}  // namespace qualify::policy
