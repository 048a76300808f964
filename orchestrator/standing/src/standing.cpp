#include "qualify/standing/standing.hpp"

#include <array>
#include <set>

#include "gate_standing.hpp"
#include "qualify/recurrence/recurrence.hpp"

namespace qualify::standing {

namespace {

constexpr std::array kStatuses = {"open",         "armed",          "running", "pass",  "fail",
                                  "inconclusive", "needs-decision", "blocked", "stale", "waived"};

/// Parts before what rests on them; each gate once.
class Standings {
 public:
  Standings(const policy::Qualification& qualification, const Facts& facts, Time now)
      : qualification_(qualification), counted_(facts), now_(now) {}

  const Standing& of(const std::string& name) {
    if (const auto known = known_.find(name); known != known_.end()) return known->second;
    const policy::Gate* gate = qualification_.gate(name);
    if (gate == nullptr || !under_way_.insert(name).second) {
      Standing none;
      none.gate = name;
      none.reasons.emplace_back(gate == nullptr ? "no such gate is declared" : "rests on itself");
      return known_.emplace(name, std::move(none)).first->second;
    }
    Standing made =
        policy::is_composite(gate->kind)
            ? of_composite(*gate, counted_, now_,
                           [&](const std::string& part) -> const Standing& { return of(part); })
            : of_running(*gate, true, counted_, now_);
    return known_.insert_or_assign(name, std::move(made)).first->second;
  }

  std::vector<Standing> all() {
    std::vector<Standing> list;
    for (const policy::Gate& gate : qualification_.gates) list.push_back(of(gate.name));
    for (const auto& [name, facts] : counted_.facts().gates) {
      if (qualification_.gate(name) != nullptr) continue;
      const policy::Gate* recorded = facts.finished ? &facts.finished->gate
                                     : facts.later  ? &facts.later->gate
                                     : facts.armed  ? &facts.armed->gate
                                                    : nullptr;
      if (recorded == nullptr) continue;
      list.push_back(of_running(*recorded, qualification_.gates.empty(), counted_, now_));
    }
    add_supporting(list);
    return list;
  }

 private:
  /// A smaller pass says something of a larger gate, and closes nothing.
  void add_supporting(std::vector<Standing>& list) const {
    for (Standing& larger : list) {
      const policy::Gate* gate = qualification_.gate(larger.gate);
      if (gate == nullptr || gate->kind != policy::GateKind::scale) continue;
      const std::uint64_t wanted = std::uint64_t{gate->scale.nodes} * gate->scale.gpus_per_node;
      for (const Standing& smaller : list) {
        if (smaller.status != Status::pass || smaller.certificate.empty() ||
            smaller.gate == larger.gate ||
            (smaller.kind != policy::GateKind::scale &&
             smaller.kind != policy::GateKind::repeatability)) {
          continue;
        }
        const auto facts = counted_.facts().gates.find(smaller.gate);
        if (facts == counted_.facts().gates.end() || !facts->second.finished) continue;
        const auto& topology = facts->second.finished->plan.topology;
        if (std::uint64_t{topology.nodes} * topology.gpus_per_node >= wanted) continue;
        larger.supporting.push_back(smaller.gate + " passed on " +
                                    policy::Scale{topology.nodes, topology.gpus_per_node}.str() +
                                    " (" + brief(smaller.certificate) + ")");
      }
    }
  }

  const policy::Qualification& qualification_;
  Counted counted_;
  Time now_;
  std::map<std::string, Standing> known_;
  std::set<std::string> under_way_;
};

}  // namespace

const char* name_of(Status status) {
  return kStatuses[static_cast<std::size_t>(status)];
}

bool is_closed(Status status) {
  return status == Status::pass || status == Status::waived;
}

std::optional<Time> next_of(const daemon::Armed& armed) {
  if (!armed.recurrent() || armed.due) return std::nullopt;
  const auto recurrence = recurrence::Recurrence::parse(armed.schedule, armed.time_zone);
  if (!recurrence) return std::nullopt;
  return recurrence->next_after(armed.handled);
}

std::string describe(const daemon::Armed& armed) {
  std::string why = !armed.file.empty()            ? "judged by what its parts came to"
                    : armed.reservation == "local" ? "this machine"
                                                   : "reservation " + armed.reservation;
  if (armed.recurrent()) {
    const auto recurrence = recurrence::Recurrence::parse(armed.schedule, armed.time_zone);
    if (!recurrence) {
      why += "; " + recurrence.error().message;
    } else if (armed.due) {
      why += "; due " + recurrence->local(*armed.due);
    } else {
      why += "; next " + recurrence->local(*next_of(armed));
    }
    if (armed.missed && recurrence) {
      why +=
          "; missed " + recurrence->local(armed.missed->last) +
          (armed.missed->count > 1 ? " and " + std::to_string(armed.missed->count - 1) + " before"
                                   : "") +
          ": " + armed.missed->why;
    }
  }
  for (std::size_t i = 0; i < armed.waiting_for.size(); ++i) {
    why += (i == 0 ? " waits for: " : "; ") + armed.waiting_for[i];
  }
  return why;
}

const Standing* find(const std::vector<Standing>& all, const std::string& gate) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Standing& each) { return each.gate == gate; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<Standing> standings(const policy::Qualification& qualification, const Facts& facts,
                                Time now) {
  return Standings(qualification, facts, now).all();
}

}  // namespace qualify::standing
