#include "nodes_for.hpp"

#include <algorithm>
#include <set>

namespace qualify::run {

namespace {

using Names = std::vector<std::string>;

/// Where a run was last; empty when nobody knows.
Names nodes_of(const QualificationState& state, const std::string& id) {
  for (const RunState& run : state.runs) {
    if (run.run.id == id && !run.attempts.empty()) return run.attempts.back().nodes;
  }
  return {};
}

/// The granted nodes but for `avoid`, in order; of them only those that can be used now.
struct Others {
  std::size_t granted = 0;
  Names usable;
};
Others others_than(const std::set<std::string>& avoid, const scheduler::Grant& grant,
                   const scheduler::Snapshot& snapshot) {
  std::set<std::string> usable;
  for (const scheduler::Node& node : snapshot.nodes) {
    if (node.usable) usable.insert(node.name);
  }
  Others others;
  for (const std::string& name : grant.reservation.nodes) {
    if (avoid.contains(name)) continue;
    ++others.granted;
    if (usable.contains(name)) others.usable.push_back(name);
  }
  return others;
}

}  // namespace

Place place_for(const QualificationState& state, const RunState& run, const scheduler::Grant& grant,
                const scheduler::Snapshot& snapshot) {
  if (!run.run.same_nodes_as.empty()) return {nodes_of(state, run.run.same_nodes_as), {}};
  const std::size_t needed = state.plan.topology.nodes;

  std::set<std::string> forbidden;
  for (std::string& name : nodes_of(state, run.run.other_nodes_than)) {
    forbidden.insert(std::move(name));
  }
  std::set<std::string> failed = forbidden;
  for (const Attempt& attempt : run.attempts) {
    if (attempt.failure_class == FailureClass::infrastructure) {
      failed.insert(attempt.nodes.begin(), attempt.nodes.end());
    }
  }
  if (!run.run.nodes.empty()) {
    const Names usable = others_than(failed, grant, snapshot).usable;
    const bool all = std::all_of(run.run.nodes.begin(), run.run.nodes.end(), [&](const auto& node) {
      return std::find(usable.begin(), usable.end(), node) != usable.end();
    });
    if (all) return {run.run.nodes, {}};
  }
  if (failed.empty()) return {};
  for (const auto& avoid : {failed, forbidden}) {
    Others others = others_than(avoid, grant, snapshot);
    if (others.usable.size() >= needed) {
      others.usable.resize(needed);
      return {std::move(others.usable), {}};
    }
  }
  if (forbidden.empty()) return {};  // no others to be had: the scheduler leaves out what is down
  const Others others = others_than(forbidden, grant, snapshot);
  return {{},
          scheduler::Fault{"no-other-nodes",
                           "run " + run.run.id + " must avoid the nodes of run " +
                               run.run.other_nodes_than + ": of the others " +
                               std::to_string(others.usable.size()) + " can be used, " +
                               std::to_string(needed) + " are needed",
                           others.granted >= needed}};
}

}  // namespace qualify::run
