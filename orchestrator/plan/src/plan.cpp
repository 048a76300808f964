#include "qualify/plan/plan.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace qualify::plan {

namespace {

/// Start-up and evidence collection around each run.
constexpr Duration kRunMargin = std::chrono::minutes(2);

Result<void> needs_arm(const store::Bundle& bundle, const std::string& arm,
                       const policy::Gate& gate) {
  if (bundle.arm(arm) != nullptr) return {};
  std::string known;
  for (const spec::Arm& candidate : bundle.arms) {
    known += (known.empty() ? "" : ", ") + candidate.name;
  }
  return fail(Errc::invalid_input,
              "gate '" + gate.name + "' asks for arm '" + arm + "', which bundle " +
                  bundle.digest.brief() + " does not declare",
              {}, "arms of this bundle: " + known);
}

/// "a" … "z", then "run-27" and on.
std::string run_name(std::uint32_t index) {
  if (index < 26) return std::string(1, static_cast<char>('a' + index));
  return "run-" + std::to_string(index + 1);
}

/// AB, BA, AB, …: whatever drifts with time weighs on both arms alike. The placebo pairs stand in
/// the middle of the pairs of the first look, so that they see the machine as the others do.
void add_pairs(const policy::Gate& gate, std::int64_t seed, Plan& plan) {
  const std::uint32_t middle = std::min(gate.pairs, policy::registered_looks(gate)[0].pairs) / 2;
  const auto add_placebo = [&] {
    for (std::uint32_t i = 1; i <= gate.placebo_pairs; ++i) {
      for (const char* half : {"-first", "-second"}) {
        plan.runs.push_back({"placebo-" + std::to_string(i) + half, gate.nondeterministic_arm,
                             gate.pairs + i, seed});
      }
    }
  };
  for (std::uint32_t pair = 1; pair <= gate.pairs; ++pair) {
    if (pair == middle + 1) add_placebo();
    const Run det{"pair-" + std::to_string(pair) + "-det", gate.deterministic_arm, pair, seed};
    const Run nondet{"pair-" + std::to_string(pair) + "-nondet", gate.nondeterministic_arm, pair,
                     seed};
    const bool det_first = pair % 2 == 1;
    plan.runs.push_back(det_first ? det : nondet);
    plan.runs.push_back(det_first ? nondet : det);
  }
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
    case policy::GateKind::repeatability: {
      if (auto known = needs_arm(bundle, gate.arm, gate); !known) {
        return tl::unexpected(known.error());
      }
      if (gate.allocation == policy::Allocation::same) {
        return fail(Errc::unsupported, "runs inside one allocation cannot be planned",
                    "gate '" + gate.name + "'", "write allocation: separate");
      }
      for (std::uint32_t i = 0; i < gate.runs; ++i) {
        plan.runs.push_back({run_name(i), gate.arm, 0, seed});
      }
      break;
    }
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

Json to_json(const Plan& plan) {
  Json runs = Json::array();
  for (const Run& run : plan.runs) {
    runs.push_back({{"id", run.id},
                    {"arm", run.arm},
                    {"pair", run.pair == 0 ? Json(nullptr) : Json(run.pair)},
                    {"seed", std::to_string(run.seed)}});
  }
  return {{"schema_version", 1},
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
    for (const auto candidate : {policy::GateKind::repeatability, policy::GateKind::performance}) {
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
      plan.runs.push_back(std::move(run));
    }
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
