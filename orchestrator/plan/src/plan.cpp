#include "qualify/plan/plan.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "qualify/spec/placeholders.hpp"

namespace qualify::plan {

namespace {

/// Start-up and evidence collection around each run.
constexpr Duration kRunMargin = std::chrono::minutes(2);

using Variables = std::map<std::string, std::string>;

/// Does any of the arguments and values use the placeholder?
bool uses(const std::string& placeholder, const std::vector<std::string>& arguments,
          const Variables& environment) {
  const auto names_it = [&](const std::string& text) {
    const auto names = spec::placeholders_in(text);
    return names && std::find(names->begin(), names->end(), placeholder) != names->end();
  };
  return std::any_of(arguments.begin(), arguments.end(), names_it) ||
         std::any_of(environment.begin(), environment.end(),
                     [&](const auto& variable) { return names_it(variable.second); });
}

/// Does the arm start from a checkpoint?
bool resumes(const spec::Arm& arm) {
  return uses("checkpoint", arm.arguments, arm.environment);
}

/// Where data lies is not in a bundle: one that was imported knows it only once its spec was sealed
/// here too.
Result<void> data_is_here(const store::Bundle& bundle) {
  for (const store::SealedData& data : bundle.data) {
    if (!data.path.empty()) continue;
    const std::string name = "data." + data.name;
    const bool used = uses(name, bundle.launch.argv, bundle.environment) ||
                      std::any_of(bundle.arms.begin(), bundle.arms.end(), [&](const auto& arm) {
                        return uses(name, arm.arguments, arm.environment);
                      });
    if (!used) continue;
    return fail(
        Errc::refused,
        "it is not known where data '" + data.name + "' lies here, and {" + name + "} is used",
        "bundle " + bundle.digest.brief() + " " + bundle.name,
        "an import brings no data: seal the bundle's spec here, with the same data in its "
        "place; the digest is the same");
  }
  return {};
}

Result<void> needs_arm(const store::Bundle& bundle, const std::string& name,
                       const policy::Gate& gate, bool resumed = false) {
  const spec::Arm* arm = bundle.arm(name);
  if (arm == nullptr) {
    std::string known;
    for (const spec::Arm& candidate : bundle.arms) {
      known += (known.empty() ? "" : ", ") + candidate.name;
    }
    return fail(Errc::invalid_input,
                "gate '" + gate.name + "' asks for arm '" + name + "', which bundle " +
                    bundle.digest.brief() + " does not declare",
                {}, "arms of this bundle: " + known);
  }
  if (resumes(*arm) == resumed) return {};
  if (resumed) {
    return fail(Errc::invalid_input,
                "gate '" + gate.name + "' resumes arm '" + name +
                    "', which does not say how it finds the checkpoint",
                {}, "use {checkpoint}, and {checkpoint_iteration}, in the arm's arguments");
  }
  return fail(
      Errc::invalid_input,
      "arm '" + name + "' starts from {checkpoint}, and gate '" + gate.name + "' has none for it",
      {}, "only a gate of kind restart resumes runs");
}

/// "a" … "z", then "run-27" and on.
std::string run_name(std::uint32_t index) {
  if (index < 26) return std::string(1, static_cast<char>('a' + index));
  return "run-" + std::to_string(index + 1);
}

/// Two runs that are compared step by step are on the same nodes: no two nodes are equally fast.
void add_pair(Run first, Run second, Plan& plan) {
  second.same_nodes_as = first.id;
  plan.runs.push_back(std::move(first));
  plan.runs.push_back(std::move(second));
}

/// An arm of pairs, and what its runs are called by.
struct PairedArm {
  std::string arm;
  const char* word;
};

/// AB, BA, AB, …: whatever drifts with time weighs on both arms alike. The placebo pairs, of arm B,
/// stand in the middle of the pairs of the first look, so that they see the machine as the others
/// do.
void add_pairs(const policy::Gate& gate, const PairedArm& a, const PairedArm& b, std::int64_t seed,
               Plan& plan) {
  const std::uint32_t middle = std::min(gate.pairs, policy::registered_looks(gate)[0].pairs) / 2;
  const auto add_placebo = [&] {
    for (std::uint32_t i = 1; i <= gate.placebo_pairs; ++i) {
      const std::string id = "placebo-" + std::to_string(i);
      add_pair({id + "-first", b.arm, gate.pairs + i, seed},
               {id + "-second", b.arm, gate.pairs + i, seed}, plan);
    }
  };
  for (std::uint32_t pair = 1; pair <= gate.pairs; ++pair) {
    if (pair == middle + 1) add_placebo();
    const std::string id = "pair-" + std::to_string(pair) + "-";
    const Run of_a{id + a.word, a.arm, pair, seed};
    const Run of_b{id + b.word, b.arm, pair, seed};
    const bool a_first = pair % 2 == 1;
    add_pair(a_first ? of_a : of_b, a_first ? of_b : of_a, plan);
  }
}

Result<void> add_repeats(const policy::Gate& gate, const store::Bundle& bundle, std::int64_t seed,
                         Plan& plan) {
  if (auto known = needs_arm(bundle, gate.arm, gate); !known) return known;
  for (std::uint32_t i = 0; i < gate.runs; ++i) {
    Run run{run_name(i), gate.arm, 0, seed};
    if (gate.allocation == policy::Allocation::same) {
      run.allocation = 1;
    } else if (i > 0 && gate.nodes == policy::NodeChoice::same) {
      run.same_nodes_as = run_name(0);
    } else if (i > 0 && gate.nodes == policy::NodeChoice::disjoint) {
      run.other_nodes_than = run_name(0);
    }
    plan.runs.push_back(std::move(run));
  }
  return {};
}

/// The run that is not interrupted comes first: the others start from what it left on the way.
Result<void> add_restart(const policy::Gate& gate, const store::Bundle& bundle, std::int64_t seed,
                         Plan& plan) {
  if (auto known = needs_arm(bundle, gate.arm, gate); !known) return known;
  for (const auto& arm : {gate.resumed_arm, gate.broken_arm}) {
    if (auto known = needs_arm(bundle, arm, gate, true); !known) return known;
  }
  std::vector<std::string> checkpoints;
  for (const spec::Output& output : bundle.outputs) {
    if (output.kind == "checkpoint") checkpoints.push_back(output.path);
  }
  if (checkpoints.size() != 1) {
    return fail(Errc::invalid_input,
                "gate '" + gate.name + "' resumes from a checkpoint, and bundle " +
                    bundle.digest.brief() + " declares " +
                    (checkpoints.empty() ? "none" : "more than one") + " among its outputs",
                {}, "outputs: [{kind: checkpoint, path: NAME}]");
  }
  plan.checkpoint = checkpoints.front();
  plan.from_iteration = gate.from_iteration;
  plan.runs.push_back({"uninterrupted", gate.arm, 0, seed});
  for (const auto& [id, arm] :
       {std::pair{"resumed", gate.resumed_arm}, {"broken", gate.broken_arm}}) {
    Run run{id, arm, 0, seed};
    run.resumes = "uninterrupted";
    plan.runs.push_back(std::move(run));
  }
  return {};
}

std::string words(const spec::Topology& topology) {
  std::string text = policy::Scale{topology.nodes, topology.gpus_per_node}.str();
  for (const auto& [name, size] : {std::pair{" TP ", topology.tensor_parallel},
                                   {" PP ", topology.pipeline_parallel},
                                   {" EP ", topology.expert_parallel},
                                   {" CP ", topology.context_parallel},
                                   {" DP ", topology.data_parallel}}) {
    if (size != 1) text += name + std::to_string(size);
  }
  return text;
}

/// The runs may be compared with the baseline's at all: the same number of nodes in the same
/// layout, from the same seed. Whatever else differs is what the gate is to find out.
Result<void> bind_baseline(const policy::Gate& gate, const store::Bundle& bundle,
                           const std::optional<Established>& established, Plan& plan) {
  const std::string where = "gate '" + gate.name + "'";
  if (!established) {
    return fail(Errc::invalid_input, "baseline '" + gate.baseline + "' is not there", where,
                "set it with: qualify baseline set " + gate.baseline + " CERTIFICATE");
  }
  const std::string baseline = "baseline '" + gate.baseline + "'";
  if (to_json(established->topology) != to_json(bundle.topology)) {
    return fail(Errc::invalid_input,
                baseline + " was made with another topology than bundle " + bundle.digest.brief() +
                    " has: " + words(established->topology) + ", not " + words(bundle.topology),
                where, "results of two topologies are not comparable bit for bit");
  }
  if (established->seed != seed_of(bundle)) {
    return fail(Errc::invalid_input,
                baseline + " was made with seed " + std::to_string(established->seed) +
                    ", bundle " + bundle.digest.brief() + " has " + std::to_string(seed_of(bundle)),
                where, "seal the bundle with the baseline's seed first in 'seeds'");
  }
  plan.baseline = established->baseline;
  return {};
}

/// What the gate asks of the bundle, before anything of it runs.
Result<void> must_fit(const policy::Gate& gate, const store::Bundle& bundle) {
  const std::string where = "gate '" + gate.name + "'";
  if (policy::is_composite(gate.kind)) {
    return fail(Errc::invalid_input,
                std::string("a gate of kind ") + policy::name_of(gate.kind) +
                    " has no runs: it rests on other gates",
                where, "judge it by what they came to: qualify run " + gate.name);
  }
  if (!policy::suffices(bundle.recipe, gate.recipe)) {
    return fail(Errc::refused,
                std::string("a ") + name_of(bundle.recipe) +
                    " recipe never closes a gate that asks for " + name_of(gate.recipe) +
                    ": bundle " + bundle.digest.brief() + " " + bundle.name,
                where, std::string("run it on a bundle whose recipe is ") + name_of(gate.recipe));
  }
  if (gate.kind == policy::GateKind::scale &&
      (bundle.topology.nodes != gate.scale.nodes ||
       bundle.topology.gpus_per_node != gate.scale.gpus_per_node)) {
    const policy::Scale its{bundle.topology.nodes, bundle.topology.gpus_per_node};
    return fail(Errc::refused,
                "it speaks of exactly " + gate.scale.str() + ", and bundle " +
                    bundle.digest.brief() + " has " + its.str(),
                where,
                "a smaller pass is evidence, never proof: seal a bundle of that topology, or name "
                "another gate");
  }
  return {};
}

/// What planted divergences and traces need; each planted run is held against the first traced one.
/// They come first, so that no timed run is the first of all.
Result<void> add_localization(const policy::Gate& gate, const store::Bundle& bundle,
                              std::int64_t seed, Plan& plan) {
  const policy::LocalizationCriteria& own = gate.localization;
  std::vector<std::string> arms;
  if (own.capture) {
    arms = {own.capture->arm_a, own.capture->arm_b};
  } else {
    arms = {own.traced_arm, own.untraced_arm};
    for (const policy::Plant& plant : own.planted) arms.push_back(plant.arm);
  }
  for (const std::string& arm : arms) {
    if (auto known = needs_arm(bundle, arm, gate); !known) return known;
  }
  const auto outputs = std::count_if(bundle.outputs.begin(), bundle.outputs.end(),
                                     [](const auto& output) { return output.kind == "trace"; });
  if (outputs != 1) {
    return fail(Errc::invalid_input,
                "gate '" + gate.name + "' reads traces, and bundle " + bundle.digest.brief() +
                    " declares " + (outputs == 0 ? "none" : "more than one") + " among its outputs",
                {}, "outputs: [{kind: trace, path: NAME, required: false}]");
  }
  if (own.capture) {
    // A node that is at fault shows it again only where it takes part.
    plan.runs.push_back({"a", own.capture->arm_a, 0, seed, 0, own.capture->nodes_a});
    plan.runs.push_back({"b", own.capture->arm_b, 0, seed, 0, own.capture->nodes_b});
    return {};
  }
  for (const spec::Output& output : bundle.outputs) {
    if (output.kind != "trace" || !output.required) continue;
    return fail(Errc::invalid_input,
                "bundle " + bundle.digest.brief() + " requires traces at '" + output.path +
                    "', and the untraced arm of gate '" + gate.name + "' leaves none",
                {}, "say required: false for that output; the gate itself asks for the traces");
  }
  const std::uint64_t tasks = std::uint64_t{plan.topology.nodes} * plan.tasks_per_node;
  if (own.ranks < tasks) {
    return fail(Errc::invalid_input,
                "gate '" + gate.name + "' asks for traces of " + std::to_string(own.ranks) +
                    " ranks, and bundle " + bundle.digest.brief() + " starts " +
                    std::to_string(tasks) + " tasks",
                {}, "every task is a rank or more: 'ranks' is how many of them leave traces");
  }
  for (std::size_t i = 0; i < own.planted.size(); ++i) {
    plan.runs.push_back({"planted-" + std::to_string(i + 1), own.planted[i].arm, 0, seed});
  }
  add_pairs(gate, {own.traced_arm, "traced"}, {own.untraced_arm, "untraced"}, seed, plan);
  return {};
}

Result<void> add_runs(const policy::Gate& gate, const store::Bundle& bundle, std::int64_t seed,
                      const std::optional<Established>& established, Plan& plan) {
  switch (gate.kind) {
    case policy::GateKind::repeatability:
    case policy::GateKind::scale:
      return add_repeats(gate, bundle, seed, plan);
    case policy::GateKind::baseline:
      if (auto bound = bind_baseline(gate, bundle, established, plan); !bound) return bound;
      return add_repeats(gate, bundle, seed, plan);
    case policy::GateKind::restart:
      return add_restart(gate, bundle, seed, plan);
    case policy::GateKind::performance:
      for (const auto& arm : {gate.deterministic_arm, gate.nondeterministic_arm}) {
        if (auto known = needs_arm(bundle, arm, gate); !known) return known;
      }
      add_pairs(gate, {gate.deterministic_arm, "det"}, {gate.nondeterministic_arm, "nondet"}, seed,
                plan);
      return {};
    case policy::GateKind::localization:
      return add_localization(gate, bundle, seed, plan);
    case policy::GateKind::coverage:
    case policy::GateKind::enablement:
      break;
  }
  return fail(Errc::invalid_input, "gate '" + gate.name + "' has no runs");
}

}  // namespace

Duration Plan::duration(std::size_t first, std::size_t last) const {
  last = std::min(last, runs.size());
  return static_cast<Duration::rep>(last - std::min(first, last)) * (run_limit + kRunMargin);
}

double Plan::gpu_hours() const {
  const double hours = std::chrono::duration<double, std::ratio<3600>>(run_limit).count();
  return hours * static_cast<double>(runs.size()) * topology.nodes * topology.gpus_per_node;
}

const Run* Plan::run(const std::string& id) const {
  for (const Run& candidate : runs) {
    if (candidate.id == id) return &candidate;
  }
  return nullptr;
}

std::int64_t seed_of(const store::Bundle& bundle) {
  return bundle.seeds.empty() ? 0 : bundle.seeds.front();
}

Result<Plan> expand(const policy::Gate& gate, const store::Bundle& bundle,
                    const scheduler::Grant& grant, const std::optional<Established>& established) {
  if (auto fit = must_fit(gate, bundle); !fit) return tl::unexpected(fit.error());
  if (auto here = data_is_here(bundle); !here) return tl::unexpected(here.error());
  Plan plan;
  plan.gate = gate.name;
  plan.kind = gate.kind;
  plan.bundle = bundle.digest;
  plan.policy = policy::policy_digest(gate);
  plan.scheduler = grant.scheduler;
  plan.reservation = grant.reservation.name;
  plan.reservation_fingerprint = scheduler::fingerprint(grant.reservation);
  plan.topology = bundle.topology;
  plan.tasks_per_node = bundle.launch.tasks_per_node;
  plan.run_limit = gate.run_limit;
  const std::int64_t seed = seed_of(bundle);
  if (auto added = add_runs(gate, bundle, seed, established, plan); !added) {
    return tl::unexpected(added.error());
  }
  return plan;
}

std::vector<std::size_t> stages(const policy::Gate& gate, const Plan& plan) {
  std::vector<std::size_t> ends;
  if (gate.kind == policy::GateKind::performance ||
      (gate.kind == policy::GateKind::localization && !gate.localization.capture)) {
    for (const statistics::Look& look : policy::registered_looks(gate)) {
      // Pairs stand in the order of their numbers, the placebo among those of the first look.
      std::size_t end = 0;
      for (std::size_t i = 0; i < plan.runs.size(); ++i) {
        if (plan.runs[i].pair <= look.pairs) end = i + 1;
      }
      if (end > 0 && end < plan.runs.size()) ends.push_back(end);
    }
  }
  ends.push_back(plan.runs.size());
  return ends;
}

std::size_t allocation_end(const Plan& plan, std::size_t index) {
  std::size_t end = index + 1;
  const std::uint32_t shared = plan.runs.at(index).allocation;
  while (shared != 0 && end < plan.runs.size() && plan.runs[end].allocation == shared) ++end;
  return end;
}

Digest plan_digest(const Plan& plan) {
  return digest_of(to_json(plan));
}

scheduler::Requirement requirement(const Plan& plan, std::size_t first, std::size_t last) {
  scheduler::Requirement needed;
  needed.nodes = plan.topology.nodes;
  needed.gpus_per_node = plan.topology.gpus_per_node;
  needed.duration = plan.duration(first, last);
  return needed;
}

}  // namespace qualify::plan
