#include "counted.hpp"

#include <algorithm>
#include <set>
#include <tuple>

namespace qualify::standing {

namespace {

using certify::Decision;
using ledger::RecordKind;

constexpr auto kDay = std::chrono::hours(24);

std::string past(Decision::What what) {
  switch (what) {
    case Decision::What::accept:
      return "accepted";
    case Decision::What::reject:
      return "rejected";
    case Decision::What::convergence:
      return "convergence vouched for";
  }
  return {};
}

}  // namespace

std::string age_text(Duration age) {
  if (age < 2 * kDay) return format_duration(age);
  return std::to_string(age / kDay) + " days";
}

std::string time_text(Time time) {
  const std::string text = format_time(time);
  return text.substr(0, 10) + " " + text.substr(11, 5) + " UTC";
}

std::string brief(const std::string& id) {
  return id.substr(0, 12);
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

Counted::Counted(const Facts& facts)
    : facts_(&facts),
      revoked_(
          revoked_records(facts.records, facts.own_key, facts.people ? &*facts.people : nullptr)) {}

std::uint32_t Counted::needed(const char* role) const {
  return facts_->people ? facts_->people->threshold(role) : 1;
}

std::string Counted::why_revoked(const std::string& record) const {
  const auto found = revoked_.find(record);
  if (found == revoked_.end()) return {};
  return "was revoked by " + found->second.by + " on " + time_text(found->second.time) +
         (found->second.reason.empty() ? "" : ": " + found->second.reason);
}

std::string Counted::why_not(const std::string& certificate) const {
  std::vector<std::string> open{certificate};
  std::set<std::string> seen;
  while (!open.empty()) {
    const std::string id = std::move(open.back());
    open.pop_back();
    if (!seen.insert(id).second) continue;
    const std::string what = id == certificate ? "certificate " + brief(id)
                                               : "certificate " + brief(certificate) +
                                                     " rests on " + brief(id) + ", which";
    if (const std::string why = why_revoked(id); !why.empty()) return what + " " + why;
    const auto found = facts_->certificates.find(id);
    if (found == facts_->certificates.end()) {
      if (id == certificate) return what + " is not in the ledger";
      continue;  // no certificate (a baseline, a decision): only its revocation counts here
    }
    if (!found->second.fault.empty()) return what + " is damaged: " + found->second.fault;
    open.insert(open.end(), found->second.rests_on.begin(), found->second.rests_on.end());
  }
  return {};
}

std::optional<std::string> Counted::signer(const ledger::Record& record, const char* role,
                                           const std::string& named, Word& word) const {
  const std::string what = std::string(ledger::name_of(record.kind)) + " " + brief(record.id);
  if (const std::string why = why_revoked(record.id); !why.empty()) {
    word.notes.push_back(what + " " + why);
    return std::nullopt;
  }
  if (!facts_->people) {
    word.notes.push_back(what + " does not count: nobody's keys are known");
    return std::nullopt;
  }
  auto person = facts_->people->signer_of(record, role);
  if (person && *person != named) {
    word.notes.push_back(what + " does not count: " + *person + " signed it in the name of " +
                         named);
    return std::nullopt;
  }
  if (person) return std::move(*person);
  word.notes.push_back(what + " does not count: " + person.error().message);
  return std::nullopt;
}

Counted::Decided Counted::decided(const GateFacts& gate) const {
  Decided result;
  if (!gate.finished) return result;
  const run::QualificationState& judged = *gate.finished;
  struct Last {
    Decision::What what;
    std::string record;
    Time time;
  };
  std::map<std::string, Last> last_word;  // of each person: nobody counts twice
  for (const ledger::Record& record : facts_->records) {
    if (record.kind != RecordKind::decision || record.gate != judged.plan.gate) continue;
    const auto decision = certify::read_decision(record);
    if (!decision) {
      result.word.notes.push_back("decision " + brief(record.id) +
                                  " does not count: " + decision.error().message);
      continue;
    }
    if (decision->qualification != judged.name) continue;  // on an earlier one
    const bool on_this = decision->bundle == judged.plan.bundle &&
                         decision->policy == judged.plan.policy &&
                         decision->judgement == judged.judgement;
    const bool interval = decision->what == Decision::What::convergence ||
                          (decision->interval && decision->interval == gate.interval);
    if (!on_this || !interval) {
      result.word.notes.push_back("decision " + brief(record.id) +
                                  " does not count: it names another " +
                                  (on_this ? "interval" : "bundle, policy or judgement"));
      continue;
    }
    if (!why_revoked(record.id).empty() && facts_->people &&
        facts_->people->signer_of(record, policy::role::kDecide)) {
      // What was said before is not said again by taking the last word back.
      last_word.erase(decision->person);
    }
    const auto person = signer(record, policy::role::kDecide, decision->person, result.word);
    if (person) last_word[*person] = Last{decision->what, record.id, record.time};
  }
  const std::uint32_t enough = needed(policy::role::kDecide);
  // Where people contradict each other, the one who refuses is heard.
  for (const auto what :
       {Decision::What::reject, Decision::What::accept, Decision::What::convergence}) {
    Word said;
    for (const auto& [person, word] : last_word) {
      if (word.what != what) continue;
      said.people.push_back(person);
      said.records.push_back(word.record);
      said.since = std::max(said.since, word.time);
    }
    if (said.people.empty()) continue;
    if (said.people.size() < enough) {
      result.word.notes.push_back(past(what) + " by " + joined(said.people) + ": " +
                                  std::to_string(said.people.size()) + " of " +
                                  std::to_string(enough) + " who are needed");
      continue;
    }
    if (result.what) continue;
    std::sort(said.records.begin(), said.records.end());
    result.what = what;
    result.word.records = std::move(said.records);
    result.word.people = std::move(said.people);
    result.word.since = said.since;
  }
  return result;
}

Counted::Waived Counted::waived(const std::string& gate, const Digest& policy,
                                const std::optional<Digest>& bundle, Time now) const {
  Waived result;
  struct Same {
    certify::Waiver waiver;
    Word word;
  };
  using Key = std::tuple<Time, Digest>;  // waivers that say the same thing
  std::map<Key, Same> all;
  for (const ledger::Record& record : facts_->records) {
    if (record.kind != RecordKind::waiver || record.gate != gate) continue;
    const auto waiver = certify::read_waiver(record);
    if (!waiver) {
      result.word.notes.push_back("waiver " + brief(record.id) +
                                  " does not count: " + waiver.error().message);
      continue;
    }
    if (waiver->until <= now) {
      result.word.notes.push_back("the waiver " + brief(record.id) + " ended on " +
                                  time_text(waiver->until));
      continue;
    }
    if (waiver->policy != policy) {
      result.word.notes.push_back("waiver " + brief(record.id) +
                                  " is of another version of the gate");
      continue;
    }
    if (waiver->bundle && waiver->bundle != bundle) {
      result.word.notes.push_back("waiver " + brief(record.id) + " is for another bundle");
      continue;
    }
    const auto person = signer(record, policy::role::kWaive, waiver->person, result.word);
    if (!person) continue;
    Same& same = all[{waiver->until, waiver->bundle.value_or(Digest())}];
    if (std::find(same.word.people.begin(), same.word.people.end(), *person) !=
        same.word.people.end()) {
      continue;
    }
    same.waiver = *waiver;
    same.word.people.push_back(*person);
    same.word.records.push_back(record.id);
    same.word.since = record.time;
  }
  const std::uint32_t enough = needed(policy::role::kWaive);
  for (auto& [key, same] : all) {  // the last one: it ends latest
    if (same.word.people.size() < enough) {
      result.word.notes.push_back("waived by " + joined(same.word.people) + ": " +
                                  std::to_string(same.word.people.size()) + " of " +
                                  std::to_string(enough) + " who are needed");
      continue;
    }
    std::sort(same.word.records.begin(), same.word.records.end());
    result.waiver = std::move(same.waiver);
    result.word.people = std::move(same.word.people);
    result.word.records = std::move(same.word.records);
    result.word.since = same.word.since;
  }
  return result;
}

Word Counted::approved(const certify::ReleaseContent& content, Spent spent) const {
  Word word;
  std::set<std::string> used_up;
  for (const ledger::Record& record : facts_->records) {
    if (spent == Spent::yes || record.kind != RecordKind::signoff) continue;
    if (record.gate != content.release || why_revoked(record.id).empty()) continue;
    const auto signoff = certify::read_signoff(record);
    if (signoff) used_up.insert(signoff->approvals.begin(), signoff->approvals.end());
  }
  for (const ledger::Record& record : facts_->records) {
    if (record.kind != RecordKind::approval || record.gate != content.release) continue;
    const auto approval = certify::read_approval(record);
    if (!approval) {
      word.notes.push_back("approval " + brief(record.id) +
                           " does not count: " + approval.error().message);
      continue;
    }
    if (approval->content != content) continue;  // of what the release was before
    if (used_up.contains(record.id)) {
      word.notes.push_back("approval " + brief(record.id) +
                           " does not count: its sign-off was revoked");
      continue;
    }
    const auto person = signer(record, policy::role::kSign, approval->person, word);
    if (!person) continue;
    if (std::find(word.people.begin(), word.people.end(), *person) != word.people.end()) continue;
    word.people.push_back(*person);
    word.records.push_back(record.id);
    if (word.people.size() == needed(policy::role::kSign)) word.since = record.time;
  }
  return word;
}

std::map<std::string, Revoked> revoked_records(const std::vector<ledger::Record>& records,
                                               const std::string& own_key,
                                               const ledger::Trust* people) {
  std::map<std::string, Revoked> revoked;
  std::map<std::string, std::set<std::string>> said;  // who, by what they revoke
  for (const ledger::Record& record : records) {
    if (record.kind != RecordKind::revocation) continue;
    const auto revocation = certify::read_revocation(record);
    if (!revocation || revoked.contains(revocation->revokes)) continue;
    std::string by = "this state";
    if (record.envelope.key_id != own_key || !ledger::verify_record(record)) {
      if (people == nullptr) continue;
      const auto person = people->signer_of(record, policy::role::kRevoke);
      if (!person) continue;
      std::set<std::string>& all = said[revocation->revokes];
      all.insert(*person);
      if (all.size() < people->threshold(policy::role::kRevoke)) continue;
      by = joined({all.begin(), all.end()});
    }
    revoked.emplace(revocation->revokes,
                    Revoked{std::move(by), record.time, revocation->reason, record.index});
  }
  return revoked;
}

}  // namespace qualify::standing
