#include <algorithm>
#include <array>
#include <set>

#include "counted.hpp"
#include "qualify/standing/people.hpp"

namespace qualify::standing {

namespace {

using certify::ReleaseContent;
using Status = ReleaseStanding::Status;

constexpr std::array kStatuses = {"open", "ready", "signed-off", "stale"};

/// Everything that a certificate rests on, however deep.
std::vector<std::string> all_below(const Facts& facts, const std::string& certificate) {
  std::set<std::string> below;
  std::vector<std::string> open{certificate};
  while (!open.empty()) {
    const auto found = facts.certificates.find(open.back());
    open.pop_back();
    if (found == facts.certificates.end()) continue;
    for (const std::string& id : found->second.rests_on) {
      if (below.insert(id).second) open.push_back(id);
    }
  }
  return {below.begin(), below.end()};
}

class OneRelease {
 public:
  OneRelease(const policy::Release& release, const Counted& counted,
             const std::vector<Standing>& all)
      : release_(release), counted_(counted), all_(all) {
    to_.release = release.name;
    to_.content.release = release.name;
    if (counted.facts().people) to_.content.people = people_digest(*counted.facts().people);
  }

  ReleaseStanding standing() {
    take_gates();
    if (to_.reasons.empty()) hear_people();
    look_back();
    return std::move(to_);
  }

 private:
  void take_gates() {
    std::size_t closed = 0;
    std::vector<std::string> missing;
    for (const std::string& name : release_.gates) {
      const Standing* of = find(all_, name);
      if (of == nullptr || !is_closed(of->status)) {
        missing.push_back(
            name + " is " +
            (of == nullptr ? "not declared" : name_of(of->status) + (": " + of->reasons.front())));
        if (to_.next.empty() && of != nullptr) to_.next = of->next;
        continue;
      }
      ++closed;
      take(*of);
    }
    for (const auto& [name, digests] : bundles_) {
      if (digests.size() == 1) {
        to_.content.bundles.emplace(name, digests.begin()->first);
        continue;
      }
      std::string which;
      for (const auto& [digest, gate] : digests) {
        which += (which.empty() ? "" : ", ") + digest.brief() + " in gate " + gate;
      }
      missing.push_back("bundle " + name + " is not one and the same in all gates: " + which);
    }
    if (missing.empty()) return;
    to_.reasons.push_back(std::to_string(closed) + " of " + std::to_string(release_.gates.size()) +
                          " gates are closed");
    to_.reasons.insert(to_.reasons.end(), missing.begin(), missing.end());
  }

  void take(const Standing& of) {
    ReleaseContent::Gate gate{of.gate, of.policy, {}, {}, {}, {}};
    if (of.status == standing::Status::waived) {
      gate.waivers = of.records;
      for (const ledger::Record& record : counted_.facts().records) {
        if (std::find(of.records.begin(), of.records.end(), record.id) == of.records.end())
          continue;
        const auto waiver = certify::read_waiver(record);
        if (waiver && waiver->bundle)
          bundles_[waiver->bundle_name].emplace(*waiver->bundle, of.gate);
      }
    } else if (!of.certificate.empty()) {
      gate.certificate = of.certificate;
      gate.rests_on = all_below(counted_.facts(), of.certificate);
      // A composite speaks of the bundles of its parts; a baseline's own is of what was before.
      const auto certificate = counted_.facts().certificates.find(of.certificate);
      if (certificate != counted_.facts().certificates.end()) {
        for (const auto& [name, bundle] : certificate->second.bundles) {
          bundles_[name].emplace(bundle, of.gate);
        }
      }
    } else {
      gate.decisions = of.records;
      if (of.bundle) {
        bundles_[of.bundle_name.empty() ? of.bundle->brief() : of.bundle_name].emplace(*of.bundle,
                                                                                       of.gate);
      }
    }
    to_.content.gates.push_back(std::move(gate));
  }

  void hear_people() {
    const auto& people = counted_.facts().people;
    const bool declared =
        people && std::any_of(people->roles().begin(), people->roles().end(),
                              [](const auto& role) { return role.name == policy::role::kSign; });
    if (!declared) {
      to_.reasons.emplace_back(people ? "nobody may sign: no role 'sign' is declared"
                                      : "nobody may sign: the people's keys cannot be read");
      return;
    }
    to_.status = Status::ready;
    to_.can_sign = true;
    to_.needed = people->threshold(policy::role::kSign);
    Word word = counted_.approved(to_.content, Counted::Spent::no);
    to_.reasons.push_back("all gates are closed; " + std::to_string(word.people.size()) + " of " +
                          std::to_string(to_.needed) + " signatures" +
                          (word.people.empty() ? std::string() : ": " + joined(word.people)));
    to_.reasons.insert(to_.reasons.end(), word.notes.begin(), word.notes.end());
    to_.people = std::move(word.people);
    to_.approvals = std::move(word.records);
    to_.next = "qualify signoff " + release_.name + " --key FILE";
  }

  /// Whether the newest sign-off still holds. A newer bundle or certificate takes nothing from what
  /// was signed; a revocation, another policy or another list of gates does.
  void look_back() {
    const ledger::Record* newest = nullptr;
    for (const ledger::Record& record : counted_.facts().records) {
      if (record.kind == ledger::RecordKind::signoff && record.gate == release_.name) {
        newest = &record;
      }
    }
    if (newest == nullptr) return;
    to_.signoff = newest->id;
    to_.since = newest->time;
    const std::string signed_off = "signed off on " + time_text(newest->time);
    if (const std::string wrong = why_not(*newest); !wrong.empty()) {
      to_.status = Status::stale;
      to_.reasons.insert(to_.reasons.begin(), signed_off + ", but " + wrong);
      return;
    }
    const auto signoff = certify::read_signoff(*newest).value();
    const std::vector<std::string> now = std::move(to_.reasons);
    to_.reasons = {signed_off + " by " + joined(signoff.people)};
    if (signoff.content != to_.content) {
      to_.reasons.emplace_back("what was signed is no longer the newest; as of now:");
      to_.reasons.insert(to_.reasons.end(), now.begin(), now.end());
    }
    to_.status = Status::signed_off;
    to_.next.clear();
  }

  std::string why_not(const ledger::Record& record) const {
    if (record.envelope.key_id != counted_.facts().own_key) {
      return "by a key that is not this state's";
    }
    if (const auto whole = ledger::verify_record(record); !whole) return whole.error().message;
    if (const auto why = counted_.why_revoked(record.id); !why.empty()) return "it " + why;
    const auto signoff = certify::read_signoff(record);
    if (!signoff) return signoff.error().message;
    for (const std::string& id : signoff->content.records()) {
      if (const auto why = counted_.why_revoked(id); !why.empty()) {
        return "record " + brief(id) + ", on which it rests, " + why;
      }
    }
    const Word word = counted_.approved(signoff->content, Counted::Spent::yes);
    if (word.people.size() < signoff->needed) {
      return std::to_string(word.people.size()) + " of " + std::to_string(signoff->needed) +
             " signatures count now" + (word.notes.empty() ? "" : ": " + word.notes.front());
    }
    std::vector<std::string> gates;
    for (const ReleaseContent::Gate& gate : signoff->content.gates) {
      gates.push_back(gate.gate);
      const Standing* of = find(all_, gate.gate);
      if (of != nullptr && of->policy != gate.policy) {
        return "gate " + gate.gate + " is another version now";
      }
    }
    if (gates != release_.gates) return "the release names other gates now";
    return {};
  }

  const policy::Release& release_;
  const Counted& counted_;
  const std::vector<Standing>& all_;
  ReleaseStanding to_;
  std::map<std::string, std::map<Digest, std::string>> bundles_;  ///< name, digest: a gate with it
};

}  // namespace

const char* name_of(ReleaseStanding::Status status) {
  return kStatuses[static_cast<std::size_t>(status)];
}

std::vector<ReleaseStanding> release_standings(const policy::Qualification& qualification,
                                               const Facts& facts,
                                               const std::vector<Standing>& all) {
  const Counted counted(facts);
  std::vector<ReleaseStanding> list;
  for (const policy::Release& release : qualification.releases) {
    list.push_back(OneRelease(release, counted, all).standing());
  }
  return list;
}

}  // namespace qualify::standing
