#include "qualify/plan/plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/spec/placeholders.hpp"

namespace qualify::plan {

namespace {

/// Start-up and evidence collection around each run.
constexpr Duration kRunMargin = std::chrono::minutes(2);

/// Does the arm start from a checkpoint?
bool resumes(const spec::Arm& arm) {
  const auto names_it = [](const std::string& text) {
    const auto names = spec::placeholders_in(text);
    return names && std::find(names->begin(), names->end(), "checkpoint") != names->end();
  };
  return std::any_of(arm.arguments.begin(), arm.arguments.end(), names_it) ||
         std::any_of(arm.environment.begin(), arm.environment.end(),
                     [&](const auto& variable) { return names_it(variable.second); });
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

/// AB, BA, AB, …: whatever drifts with time weighs on both arms alike. The placebo pairs stand in
/// the middle of the pairs of the first look, so that they see the machine as the others do.
void add_pairs(const policy::Gate& gate, std::int64_t seed, Plan& plan) {
  const std::uint32_t middle = std::min(gate.pairs, policy::registered_looks(gate)[0].pairs) / 2;
  const auto add_placebo = [&] {
    for (std::uint32_t i = 1; i <= gate.placebo_pairs; ++i) {
      const std::string id = "placebo-" + std::to_string(i);
      add_pair({id + "-first", gate.nondeterministic_arm, gate.pairs + i, seed},
               {id + "-second", gate.nondeterministic_arm, gate.pairs + i, seed}, plan);
    }
  };
  for (std::uint32_t pair = 1; pair <= gate.pairs; ++pair) {
    if (pair == middle + 1) add_placebo();
    const Run det{"pair-" + std::to_string(pair) + "-det", gate.deterministic_arm, pair, seed};
    const Run nondet{"pair-" + std::to_string(pair) + "-nondet", gate.nondeterministic_arm, pair,
                     seed};
    const bool det_first = pair % 2 == 1;
    add_pair(det_first ? det : nondet, det_first ? nondet : det, plan);
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

Result<Plan> expand(const policy::Gate& gate, const store::Bundle& bundle,
                    const scheduler::Grant& grant) {
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
  const std::int64_t seed = bundle.seeds.empty() ? 0 : bundle.seeds.front();

  switch (gate.kind) {
    case policy::GateKind::repeatability:
      if (auto added = add_repeats(gate, bundle, seed, plan); !added) {
        return tl::unexpected(added.error());
      }
      break;
    case policy::GateKind::restart:
      if (auto added = add_restart(gate, bundle, seed, plan); !added) {
        return tl::unexpected(added.error());
      }
      break;
    case policy::GateKind::performance: {
      for (const auto& arm : {gate.deterministic_arm, gate.nondeterministic_arm}) {
        if (auto known = needs_arm(bundle, arm, gate); !known) {
          return tl::unexpected(known.error());
        }
      }
      add_pairs(gate, seed, plan);
      break;
    }
  }
  return plan;
}

std::vector<std::size_t> stages(const policy::Gate& gate, const Plan& plan) {
  std::vector<std::size_t> ends;
  if (gate.kind == policy::GateKind::performance) {
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

Json to_json(const Plan& plan) {
  // What a plan does not use is left out, so that plans recorded before it was known stay the same.
  Json runs = Json::array();
  for (const Run& run : plan.runs) {
    Json entry = {{"id", run.id},
                  {"arm", run.arm},
                  {"pair", run.pair == 0 ? Json(nullptr) : Json(run.pair)},
                  {"seed", std::to_string(run.seed)}};
    if (run.allocation != 0) entry["allocation"] = run.allocation;
    if (!run.same_nodes_as.empty()) entry["same_nodes_as"] = run.same_nodes_as;
    if (!run.other_nodes_than.empty()) entry["other_nodes_than"] = run.other_nodes_than;
    if (!run.resumes.empty()) entry["resumes"] = run.resumes;
    runs.push_back(std::move(entry));
  }
  Json json = {{"schema_version", 1},
               {"gate", plan.gate},
               {"kind", policy::name_of(plan.kind)},
               {"bundle", plan.bundle.str()},
               {"policy", plan.policy.str()},
               {"scheduler", plan.scheduler},
               {"reservation", plan.reservation},
               {"reservation_fingerprint", plan.reservation_fingerprint.str()},
               {"topology", to_json(plan.topology)},
               {"tasks_per_node", plan.tasks_per_node},
               {"run_limit_seconds",
                std::chrono::duration_cast<std::chrono::seconds>(plan.run_limit).count()},
               {"runs", std::move(runs)}};
  if (!plan.checkpoint.empty()) {
    json["checkpoint"] = plan.checkpoint;
    json["from_iteration"] = plan.from_iteration;
  }
  return json;
}

Result<Plan> plan_from_json(const Json& json) {
  const auto damaged = [](const std::string& what) {
    return fail(Errc::integrity, "a recorded plan is not well-formed: " + what);
  };
  try {
    Plan plan;
    plan.gate = json.at("gate").get<std::string>();
    const auto kind = json.at("kind").get<std::string>();
    bool known = false;
    for (const auto candidate : policy::kGateKinds) {
      if (kind == policy::name_of(candidate)) {
        plan.kind = candidate;
        known = true;
      }
    }
    if (!known) return damaged("kind '" + kind + "'");
    plan.bundle = Digest::parse(json.at("bundle").get<std::string>()).value();
    plan.policy = Digest::parse(json.at("policy").get<std::string>()).value();
    plan.scheduler = json.at("scheduler").get<std::string>();
    plan.reservation = json.at("reservation").get<std::string>();
    plan.reservation_fingerprint =
        Digest::parse(json.at("reservation_fingerprint").get<std::string>()).value();
    plan.topology = spec::topology_from_json(json.at("topology")).value();
    plan.tasks_per_node = json.at("tasks_per_node").get<std::uint32_t>();
    plan.run_limit = std::chrono::seconds(json.at("run_limit_seconds").get<std::int64_t>());
    for (const Json& entry : json.at("runs")) {
      Run run;
      run.id = entry.at("id").get<std::string>();
      run.arm = entry.at("arm").get<std::string>();
      if (!entry.at("pair").is_null()) run.pair = entry.at("pair").get<std::uint32_t>();
      run.seed = std::stoll(entry.at("seed").get<std::string>());
      run.allocation = entry.value("allocation", 0U);
      run.same_nodes_as = entry.value("same_nodes_as", "");
      run.other_nodes_than = entry.value("other_nodes_than", "");
      run.resumes = entry.value("resumes", "");
      plan.runs.push_back(std::move(run));
    }
    plan.checkpoint = json.value("checkpoint", "");
    plan.from_iteration = json.value("from_iteration", std::int64_t{0});
    return plan;
  } catch (const std::exception& error) {
    return damaged(error.what());
  }
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
