#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/certify/statement.hpp"
#include "qualify/ledger/trust.hpp"
#include "qualify/signoff/signoff.hpp"
#include "qualify/standing/people.hpp"

namespace qualify::signoff {

namespace {

using certify::Decision;
using certify::ReleaseContent;
using ledger::Record;
using ledger::RecordKind;

std::string named(const Record& record) {
  return std::string(ledger::name_of(record.kind)) + " " + record.id.substr(0, 12);
}

/// One sign-off, from the top down. Every check adds its faults; none hides another.
class Check {
 public:
  explicit Check(const Package& package) : package_(package) {}

  std::vector<Error> run() {
    const auto signoff = certify::read_signoff(package_.signoff);
    by_state(package_.signoff);
    if (!signoff) {
      add(signoff.error());
      return std::move(faults_);
    }
    signoff_ = &*signoff;
    if (signoff->verifier != package_.state_key.key_id()) {
      wrong("it names another state's key than the one that signed it", "sign-off");
    }
    if (signoff->time != package_.signoff.time) {
      wrong("the time that it names is not when it was signed", "sign-off");
    }
    if (!read_policy()) return std::move(faults_);
    cited_and_nothing_else();
    gates();
    bundles();
    approvals();
    return std::move(faults_);
  }

 private:
  void add(Error error) { faults_.push_back(std::move(error)); }
  void wrong(const std::string& what, const std::string& where) {
    add({Errc::integrity, what, where, {}, {}});
  }

  void by_state(const Record& record) {
    if (auto whole = ledger::verify_record(record); !whole) add(whole.error());
    if (record.envelope.key_id != package_.state_key.key_id()) {
      wrong("signed by a key that is not the state's", named(record));
    }
  }

  /// What was signed says which bytes qualification.yaml and the keys had.
  bool read_policy() {
    if (sha256(package_.qualification) != signoff_->qualification_file) {
      wrong("its content is not what was signed", "qualification.yaml");
    }
    std::map<std::string, Digest> keys;
    for (const auto& [file, pem] : package_.key_files) keys[file] = sha256(pem);
    for (const auto& [file, digest] : signoff_->key_files) {
      const auto found = keys.find(file);
      if (found == keys.end()) {
        wrong("the key is missing", file);
      } else if (found->second != digest) {
        wrong("its content is not what was signed", file);
      }
    }
    for (const auto& [file, digest] : keys) {
      if (!signoff_->key_files.contains(file)) wrong("no such key was signed", file);
    }
    auto read = policy::parse_qualification(package_.qualification, "qualification.yaml");
    if (!read) {
      add(read.error());
      return false;
    }
    qualification_ = std::move(*read);
    auto people =
        standing::load_people(qualification_, [&](const std::string& file) -> Result<std::string> {
          const auto found = package_.key_files.find(file);
          if (found == package_.key_files.end()) {
            return fail(Errc::not_found, "there is no such file", file);
          }
          return found->second;
        });
    if (!people) {
      add(people.error());
      return false;
    }
    people_.emplace(std::move(*people));
    if (standing::people_digest(*people_) != signoff_->content.people) {
      wrong("people, keys or roles are not those that were signed", "qualification.yaml");
    }
    return true;
  }

  const Record* find(const std::string& id, RecordKind kind, const std::string& where) {
    const auto found = package_.records.find(id);
    if (found == package_.records.end()) {
      wrong(std::string(ledger::name_of(kind)) + " " + id.substr(0, 12) + " is missing", where);
      return nullptr;
    }
    if (found->second.kind != kind) {
      wrong(named(found->second) + " stands where a " + ledger::name_of(kind) + " is cited", where);
      return nullptr;
    }
    return &found->second;
  }

  void cited_and_nothing_else() {
    std::set<std::string> cited;
    for (const std::string& id : signoff_->content.records()) cited.insert(id);
    for (const std::string& id : signoff_->approvals) cited.insert(id);
    for (const auto& [id, record] : package_.records) {
      if (!cited.contains(id)) wrong("the sign-off does not cite it", named(record));
      if (id != record.id) wrong("it is not the record that its name says", id.substr(0, 12));
      if (record.index >= package_.signoff.index) {
        wrong("it came into the log after the sign-off that cites it", named(record));
      }
      if (record.time > package_.signoff.time) {
        wrong("it is younger than the sign-off that cites it", named(record));
      }
    }
    for (const std::string& id : cited) {
      if (!package_.records.contains(id)) {
        wrong("record " + id.substr(0, 12) + " is cited and missing", "sign-off");
      }
    }
    // The log's time never goes back.
    std::map<std::int64_t, const Record*> in_order;
    for (const auto& [id, record] : package_.records) {
      if (!in_order.emplace(record.index, &record).second) {
        wrong("another record has its place in the log", named(record));
      }
    }
    Time latest{};
    for (const auto& [index, record] : in_order) {
      if (record->time < latest)
        wrong("it is dated before what the log had already", named(*record));
      latest = std::max(latest, record->time);
    }
  }

  void gates() {
    const policy::Release* release = qualification_.release(signoff_->content.release);
    if (release == nullptr) {
      return wrong("the release '" + signoff_->content.release + "' is not declared",
                   "qualification.yaml");
    }
    std::vector<std::string> have;
    for (const ReleaseContent::Gate& gate : signoff_->content.gates) have.push_back(gate.gate);
    if (have != release->gates) {
      wrong("its gates are not those of the release '" + release->name + "'", "sign-off");
    }
    for (const ReleaseContent::Gate& closed : signoff_->content.gates) {
      const policy::Gate* gate = qualification_.gate(closed.gate);
      if (gate == nullptr) {
        wrong("is not declared", "gate " + closed.gate);
        continue;
      }
      if (policy_digest(*gate) != closed.policy) {
        wrong("its policy is not the one that was signed", "gate " + closed.gate);
      }
      close(*gate, closed);
    }
  }

  /// By exactly one of: a certificate, decisions, waivers.
  void close(const policy::Gate& gate, const ReleaseContent::Gate& closed) {
    const std::string where = "gate " + closed.gate;
    const int ways = static_cast<int>(!closed.certificate.empty()) +
                     static_cast<int>(!closed.decisions.empty()) +
                     static_cast<int>(!closed.waivers.empty());
    if (ways != 1) wrong("is not closed by exactly one of certificate, decision and waiver", where);
    if (!closed.certificate.empty()) {
      by_certificate(gate, closed);
    } else if (!closed.decisions.empty()) {
      decided(gate, closed.policy, closed.decisions, where);
    } else if (!closed.waivers.empty()) {
      by_waiver(gate, closed);
    }
  }

  void by_certificate(const policy::Gate& gate, const ReleaseContent::Gate& closed) {
    const std::string where = "gate " + closed.gate;
    const Record* top = find(closed.certificate, RecordKind::certificate, where);
    if (top == nullptr) return;
    if (top->gate != gate.name) {
      wrong(named(*top) + " is of gate " + top->gate, where);
    }
    if (!policy::is_composite(gate.kind) && gate.max_age > Duration::zero() &&
        top->time + gate.max_age <= package_.signoff.time) {
      wrong(named(*top) + " was too old at the sign-off", where);
    }
    std::set<std::string> below;
    followed_.clear();
    follow(*top, &gate, below);
    for (const std::string& id : closed.rests_on) {
      if (below.erase(id) == 0) {
        wrong("record " + id.substr(0, 12) + " is said to be below it and is not", where);
      }
    }
    for (const std::string& id : below) {
      wrong("rests on record " + id.substr(0, 12) + ", which is not said", where);
    }
  }

  /// A certificate and what it rests on. `gate`: that it closes as it is declared; null for what a
  /// baseline once was.
  void follow(const Record& record, const policy::Gate* gate, std::set<std::string>& below) {
    by_state(record);
    const auto says = standing::read_certificate(record, package_.state_key);
    if (!says.fault.empty()) return wrong(says.fault, named(record));
    if (says.verdict != "pass") wrong("it is no pass", named(record));
    if (gate != nullptr) {
      if (says.policy != policy_digest(*gate)) {
        wrong("it is of another version of gate " + record.gate, named(record));
      }
      for (const auto& [name, bundle] : says.bundles) of_bundle(name, bundle, named(record));
      for (const policy::GatePart& part : policy::parts_of(*gate)) {
        const bool there =
            std::any_of(says.rests_on.begin(), says.rests_on.end(), [&](const std::string& id) {
              const auto found = package_.records.find(id);
              return found != package_.records.end() && found->second.gate == part.gate;
            });
        if (!there) wrong("nothing in it closes " + part.name, named(record));
      }
    }
    const bool composite = gate != nullptr && policy::is_composite(gate->kind);
    if (composite) parts_by_decision(record);
    for (const std::string& id : says.rests_on) {
      below.insert(id);
      // As a part it has more to be than as what a baseline once was.
      if (!followed_.insert({id, composite}).second) continue;
      const auto found = package_.records.find(id);
      if (found == package_.records.end()) continue;  // named already: cited and missing
      const Record& next = found->second;
      if (composite && gate->max_age > Duration::zero() &&
          next.time + gate->max_age <= package_.signoff.time) {
        wrong("it was too old for gate " + gate->name + " at the sign-off", named(next));
      }
      if (next.kind == RecordKind::certificate) {
        follow(next, composite ? qualification_.gate(next.gate) : nullptr, below);
      } else if (next.kind == RecordKind::decision) {
        const auto decision = certify::read_decision(next);
        if (!decision) {
          add(decision.error());
        } else {
          (void)said(next, policy::role::kDecide, decision->person);
        }
      } else if (next.kind == RecordKind::baseline) {
        by_state(next);
      } else {
        wrong("nothing can rest on it", named(next));
      }
    }
  }

  /// Parts that people closed: by as many as the role needs, on one result of the part's own gate.
  void parts_by_decision(const Record& composite) {
    const auto statement = parse_json(composite.envelope.payload, named(composite));
    const auto says = certify::read_certified(
        statement ? statement->value("predicate", Json::object()) : Json::object());
    if (!says) return add(says.error());
    for (const certify::PartCitation& part : says->parts) {
      if (part.decisions.empty()) continue;
      const policy::Gate* gate = qualification_.gate(part.gate);
      if (gate == nullptr) {
        wrong("gate " + part.gate + " of part " + part.name + " is not declared", named(composite));
        continue;
      }
      decided(*gate, policy_digest(*gate), part.decisions, "part " + part.name);
    }
  }

  void of_bundle(const std::string& name, const Digest& bundle, const std::string& where) {
    const auto found = signoff_->content.bundles.find(name);
    if (found == signoff_->content.bundles.end()) {
      wrong("it is for bundle '" + name + "', which is not among those signed", where);
    } else if (found->second != bundle) {
      wrong("it is for another bundle '" + name + "' (" + bundle.brief() + ") than was signed (" +
                found->second.brief() + ")",
            where);
    }
    spoken_of_.insert(name);
  }

  /// Who said it, if it counts; a fault otherwise.
  std::optional<std::string> said(const Record& record, const char* role,
                                  const std::string& named_in_it) {
    auto person = people_->signer_of(record, role);
    if (person && *person == named_in_it) return std::move(*person);
    if (person) {
      wrong(*person + " signed it in the name of " + named_in_it, named(record));
      return std::nullopt;
    }
    add({Errc::integrity, person.error().message, named(record), {}, {}});
    return std::nullopt;
  }

  void enough(const std::set<std::string>& people, const char* role, const std::string& where) {
    const policy::Role* declared = qualification_.role(role);
    const std::uint32_t needed = declared == nullptr ? 1 : declared->needed;
    if (people.size() >= needed) return;
    wrong(std::to_string(people.size()) + " of " + std::to_string(needed) +
              " people with the role " + role,
          where);
  }

  /// Decisions of enough people on one result of this version of the gate, none of them against it.
  void decided(const policy::Gate& gate, const Digest& policy,
               const std::vector<std::string>& decisions, const std::string& where) {
    std::set<std::string> people;
    std::optional<Decision> first;
    for (const std::string& id : decisions) {
      const Record* record = find(id, RecordKind::decision, where);
      if (record == nullptr) continue;
      const auto decision = certify::read_decision(*record);
      if (!decision) {
        add(decision.error());
        continue;
      }
      if (decision->gate != gate.name || decision->policy != policy) {
        wrong("it is on another gate, or another version of it", named(*record));
      }
      if (decision->what == Decision::What::reject) wrong("it rejects", named(*record));
      const bool convergence = decision->what == Decision::What::convergence;
      if (convergence != (gate.kind == policy::GateKind::baseline) ||
          convergence != decision->convergence.has_value() ||
          convergence == decision->interval.has_value()) {
        wrong("it answers another question than this gate's", named(*record));
      }
      of_bundle(decision->bundle_name, decision->bundle, named(*record));
      if (!first) first = *decision;
      if (first->qualification != decision->qualification ||
          first->judgement != decision->judgement || first->interval != decision->interval ||
          first->bundle != decision->bundle) {
        wrong("it is on another result than the first", named(*record));
      }
      if (auto person = said(*record, policy::role::kDecide, decision->person))
        people.insert(*person);
    }
    enough(people, policy::role::kDecide, where);
  }

  void by_waiver(const policy::Gate& gate, const ReleaseContent::Gate& closed) {
    const std::string where = "gate " + closed.gate;
    std::set<std::string> people;
    std::optional<certify::Waiver> first;
    for (const std::string& id : closed.waivers) {
      const Record* record = find(id, RecordKind::waiver, where);
      if (record == nullptr) continue;
      const auto waiver = certify::read_waiver(*record);
      if (!waiver) {
        add(waiver.error());
        continue;
      }
      if (waiver->gate != gate.name || waiver->policy != closed.policy) {
        wrong("it is of another gate, or another version of it", named(*record));
      }
      if (waiver->bundle) of_bundle(waiver->bundle_name, *waiver->bundle, named(*record));
      if (!first) first = *waiver;
      if (first->until != waiver->until || first->bundle != waiver->bundle) {
        wrong("it waives something else than the first", named(*record));
      }
      if (waiver->until <= package_.signoff.time) {
        wrong("it had ended before the sign-off", named(*record));
      }
      if (auto person = said(*record, policy::role::kWaive, waiver->person)) people.insert(*person);
    }
    enough(people, policy::role::kWaive, where);
  }

  void bundles() {
    for (const auto& [name, bundle] : signoff_->content.bundles) {
      if (!spoken_of_.contains(name)) {
        wrong("nothing that it rests on speaks of bundle '" + name + "'", "sign-off");
      }
    }
  }

  void approvals() {
    std::set<std::string> people;
    for (const std::string& id : signoff_->approvals) {
      const Record* record = find(id, RecordKind::approval, "sign-off");
      if (record == nullptr) continue;
      const auto approval = certify::read_approval(*record);
      if (!approval) {
        add(approval.error());
        continue;
      }
      if (approval->content != signoff_->content) {
        wrong("it approves something else than was signed off", named(*record));
        continue;
      }
      const auto person = said(*record, policy::role::kSign, approval->person);
      if (!person) continue;
      if (!people.insert(*person).second) {
        wrong(*person + " signed already and counts once", named(*record));
      }
    }
    enough(people, policy::role::kSign, "sign-off");
    const policy::Role* sign = qualification_.role(policy::role::kSign);
    if (sign == nullptr) {
      wrong("no role 'sign' is declared", "qualification.yaml");
    } else if (signoff_->needed != sign->needed) {
      wrong("the number of people who are needed is not the one declared", "sign-off");
    }
    if (people != std::set<std::string>(signoff_->people.begin(), signoff_->people.end())) {
      wrong("the people that it names are not those who signed", "sign-off");
    }
  }

  const Package& package_;
  const certify::SignOff* signoff_ = nullptr;
  policy::Qualification qualification_;
  std::optional<ledger::Trust> people_;
  std::set<std::string> spoken_of_;                  ///< names of bundles
  std::set<std::pair<std::string, bool>> followed_;  ///< ids, and whether as a part
  std::vector<Error> faults_;
};

}  // namespace

std::vector<Error> check(const Package& package) {
  return Check(package).run();
}

}  // namespace qualify::signoff
