#include "qualify/verify/verify.hpp"

#include <algorithm>
#include <deque>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "composite_check.hpp"
#include "qualify/base/parallel.hpp"
#include "qualify/certify/records.hpp"
#include "qualify/certify/statement.hpp"
#include "qualify/run/evidence.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/qualification.hpp"
#include "qualify/signoff/signoff.hpp"

namespace qualify::verify {

namespace {

constexpr std::size_t kBatch = 512;  // qualifications; two batches are in memory at once

struct Certificate {
  std::string id;
  CitedCertificate cited;  ///< as others may rest on it
  Digest bundle;
  certify::Certified says;
};

/// Throws on what no engine writes.
std::vector<Digest> subjects_of(const Json& statement) {
  std::vector<Digest> bundles;
  for (const Json& subject : statement.at("subject")) {
    const auto hex = subject.at("digest").at("sha256").get<std::string>();
    bundles.push_back(Digest::parse("sha256:" + hex).value());
  }
  return bundles;
}

Result<Certificate> read_certificate(const ledger::Record& record, const Json& statement) {
  if (!statement.is_object()) return fail(Errc::integrity, "no statement", record.id);
  auto says = certify::read_certified(statement.value("predicate", Json::object()));
  if (!says) {
    Error error = says.error();
    error.context = record.id;
    return Unexpected(std::move(error));
  }
  CitedCertificate cited{record.gate, record.index, record.time, says->verdict, {}};
  try {
    cited.subjects = subjects_of(statement);
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("no statement of bundles: ") + error.what(),
                record.id);
  }
  return Certificate{record.id, std::move(cited), record.bundle, std::move(*says)};
}

using Evidence = std::map<std::string, Digest>;  ///< by run

/// What is held against the certificate that a qualification earned.
struct Earned {
  std::optional<policy::Verdict> verdict;
  Digest bundle, plan, policy;
  Evidence evidence;
  std::string certificate;  ///< id, or empty
};

Result<ledger::PublicKey> own_key(const run::State& state) {
  return ledger::load_public_key(state.paths.signing_key().string() + ".pub");
}

Result<void> signed_by(const ledger::PublicKey& ours, const ledger::Record& record) {
  if (ours.pem() == record.public_key_pem) return {};
  return fail(Errc::integrity, "signed by a key that is not this state's", record.id,
              "expected " + ours.key_id());
}

class Verification {
 public:
  Verification(run::State& state, const Options& options) : state_(state), options_(options) {}

  Result<Found> run() {
    auto structure = check_structure();
    if (auto read = check_log(); !read) return tl::unexpected(read.error());
    if (auto read = check_qualifications(); !read) return tl::unexpected(read.error());
    check_certificates();
    check_signoffs();
    check_contents();
    if (options_.recompute) recompute();
    auto torn = structure.get();
    found_.faults.insert(found_.faults.begin(), std::move_iterator(torn.begin()),
                         std::move_iterator(torn.end()));
    return std::move(found_);
  }

 private:
  /// Of the database file. SQLite does it on one thread: beside the rest, on a connection of its
  /// own.
  std::future<std::vector<Error>> check_structure() {
    const auto when =
        options_.threads > 1 ? std::launch::async | std::launch::deferred : std::launch::deferred;
    return std::async(when, [file = state_.paths.database()]() -> std::vector<Error> {
      const auto database = journal::Database::open_read_only(file);
      if (!database) return {database.error()};
      return database->check();
    });
  }

  /// The audit checks every signature; here it is whose, and what certificates say.
  Result<void> check_log() {
    const auto verifier = run::log_verifier(state_.paths);
    if (!verifier) return tl::unexpected(verifier.error());
    const auto ours = own_key(state_);
    if (!ours) return tl::unexpected(ours.error());
    auto audit =
        ledger::audit_log(state_.database, *verifier, options_.remembered, options_.threads,
                          [&](const auto& records, const auto& statements) {
                            check_records(*ours, records, statements);
                          });
    found_.records = audit.size;
    found_.checkpoints = audit.checkpoints;
    for (Error& fault : audit.faults) found_.faults.push_back(std::move(fault));
    citable_.revoked = standing::revoked_records(revocations_, ours->key_id(),
                                                 options_.people ? &*options_.people : nullptr);
    return {};
  }

  void check_records(const ledger::PublicKey& ours, const std::vector<ledger::Record>& records,
                     const std::vector<Json>& statements) {
    std::vector<std::optional<Result<Certificate>>> certificates(records.size());
    for_each_index(records.size(), options_.threads, [&](std::size_t i) {
      if (records[i].kind == ledger::RecordKind::certificate) {
        certificates[i] = read_certificate(records[i], statements[i]);
      }
    });
    for (std::size_t i = 0; i < records.size(); ++i) {
      check_whose(ours, records[i]);
      if (records[i].bundle != Digest()) bundles_[records[i].bundle].insert(words(records[i]));
      if (certificates[i]) take(records[i], std::move(*certificates[i]));
    }
  }

  void take(const ledger::Record& record, Result<Certificate> certificate) {
    if (!certificate) return note(tl::unexpected(certificate.error()));
    citable_.certificates.emplace(certificate->id, certificate->cited);
    if (certificate->says.composite) {
      for (const Digest& bundle : certificate->cited.subjects) {
        bundles_[bundle].insert(words(record));
      }
    }
    for (const auto& run : certificate->says.runs) evidence_[run.evidence].insert(words(record));
    ++found_.certificates;
    certificates_.push_back(std::move(*certificate));
  }

  /// What the state says itself is signed by its key; what people say, by theirs.
  void check_whose(const ledger::PublicKey& ours, const ledger::Record& record) {
    using ledger::RecordKind;
    const char* role = nullptr;
    std::string person;
    const auto must_read = [&](const auto& read) {
      if (!read) return note(tl::unexpected(read.error()));
      if constexpr (requires { read->person; }) person = read->person;
    };
    switch (record.kind) {
      case RecordKind::decision:
        role = policy::role::kDecide;
        must_read(certify::read_decision(record));
        citable_.decisions.emplace(record.id, record);
        break;
      case RecordKind::waiver:
        role = policy::role::kWaive;
        must_read(certify::read_waiver(record));
        break;
      case RecordKind::approval:
        role = policy::role::kSign;
        must_read(certify::read_approval(record));
        break;
      case RecordKind::revocation:
        must_read(certify::read_revocation(record));  // its `by` is for people
        revocations_.push_back(record);
        if (record.public_key_pem == ours.pem()) return;
        role = policy::role::kRevoke;
        break;
      case RecordKind::signoff:
        signoffs_.push_back(record);
        [[fallthrough]];
      default:
        if (auto own = signed_by(ours, record); !own) note(tl::unexpected(own.error()));
        return;
    }
    ++found_.signed_by_people;
    if (!options_.people) {
      return note(fail(Errc::integrity, words(record) + ": nobody's keys are known to check it by",
                       {},
                       "name their declaration with: qualify verify --file qualification.yaml"));
    }
    const auto signer = options_.people->signer_of(record, role);
    if (!signer) {
      return note(fail(Errc::integrity, words(record) + ": " + signer.error().message, {},
                       "a key that is retired stays declared, with 'until', and its person in "
                       "the role"));
    }
    if (!person.empty() && person != *signer) {
      note(fail(Errc::integrity,
                words(record) + ": " + *signer + " signed it in the name of " + person));
    }
  }

  void check_signoffs() {
    for (const ledger::Record& record : signoffs_) {
      ++found_.signoffs;
      const auto package = signoff::gather(state_, record);
      if (!package) {
        note(tl::unexpected(package.error()), {words(record)});
        continue;
      }
      for (Error& fault : signoff::check(*package)) {
        note(Unexpected(std::move(fault)), {"release " + record.gate});
      }
    }
  }

  /// One thread reads events on, as the database gives them, while the others understand those that
  /// were read.
  Result<void> check_qualifications() {
    const journal::Journal journal(state_.database);
    const auto names = journal.qualifications();
    if (!names) return tl::unexpected(names.error());
    run::KnownCriteria known;
    const auto batch = [&](std::size_t first) {
      const std::size_t begin = std::min(first, names->size());
      return journal.events_of_each(
          std::span(*names).subspan(begin, std::min(kBatch, names->size() - begin)));
    };
    auto events = batch(0);
    for (std::size_t first = 0; first < names->size(); first += kBatch) {
      if (!events) return tl::unexpected(events.error());
      std::vector<std::optional<Result<run::QualificationState>>> derived(events->size());
      decltype(events) next;
      for_each_index(events->size() + 1, options_.threads, [&](std::size_t i) {
        if (i == 0) {
          next = batch(first + kBatch);
        } else {
          derived[i - 1] = run::derive((*events)[i - 1], &known);
        }
      });
      for (std::size_t i = 0; i < derived.size(); ++i) {
        take((*names)[first + i], std::move(*derived[i]));
      }
      events = std::move(next);
    }
    return {};
  }

  void take(const std::string& name, Result<run::QualificationState> derived) {
    if (!derived) return note(tl::unexpected(derived.error()));
    const std::string what = "qualification " + name;
    bundles_[derived->plan.bundle].insert(what);
    for (const run::RunState& each : derived->runs) {
      if (each.evidence) evidence_[*each.evidence].insert(what);
    }
    if (const auto& baseline = derived->plan.baseline) {
      evidence_[baseline->evidence].insert(what);
      bundles_[baseline->bundle].insert(what);
    }
    if (derived->judgement) judgements_[*derived->judgement].insert(what);
    Earned earned{
        derived->verdict,    derived->plan.bundle, derived->plan_digest, derived->plan.policy, {},
        derived->certificate};
    for (const run::RunState& each : derived->runs) {
      if (each.evidence) earned.evidence[each.run.id] = *each.evidence;
    }
    qualifications_.emplace(name, std::move(earned));
  }

  void check_composite(const Certificate& certificate) {
    for (const std::string& fault :
         composite_faults(certificate.says, certificate.cited, citable_)) {
      note(fail(
          Errc::integrity, "the certificate and its parts disagree: " + fault,
          "certificate " + certificate.id.substr(0, 12) + " of gate " + certificate.cited.gate));
    }
  }

  void check_certificates() {
    std::set<std::string> ids;
    for (const Certificate& certificate : certificates_) {
      ids.insert(certificate.id);
      if (certificate.says.composite) {
        check_composite(certificate);
        continue;
      }
      const auto disagrees = [&](const std::string& how) {
        note(fail(
            Errc::integrity, "the certificate and the journal disagree: " + how,
            "certificate " + certificate.id.substr(0, 12) + " of gate " + certificate.cited.gate));
      };
      const auto found = qualifications_.find(certificate.says.qualification);
      if (found == qualifications_.end()) {
        disagrees("there is no qualification " + certificate.says.qualification);
        continue;
      }
      const Earned& earned = found->second;
      if (!earned.verdict || policy::name_of(*earned.verdict) != certificate.says.verdict) {
        disagrees("the verdict is another");
      }
      if (earned.bundle != certificate.bundle) disagrees("the bundle is another");
      if (earned.plan != certificate.says.plan) disagrees("the plan is another");
      if (earned.policy != certificate.says.policy) disagrees("the policy is another");
      Evidence cited;
      for (const auto& run : certificate.says.runs) cited[run.run] = run.evidence;
      if (earned.evidence != cited) disagrees("the evidence is another");
    }
    for (const auto& [name, earned] : qualifications_) {
      if (!earned.certificate.empty() && !ids.contains(earned.certificate)) {
        note(fail(Errc::integrity,
                  "certificate " + earned.certificate.substr(0, 12) + " is not in the ledger",
                  "qualification " + name));
      }
    }
  }

  void check_contents() {
    for (const auto& [digest, users] : bundles_) {
      ++found_.bundles;
      for (Error& fault : store::verify(state_.bundles, digest, options_.threads)) {
        note(Unexpected(std::move(fault)), users);
      }
    }
    for (const auto& [digest, users] : evidence_) {
      ++found_.evidence;
      if (auto whole = run::verify_evidence(state_.evidence, digest); !whole) {
        note(tl::unexpected(whole.error()), users);
      }
    }
    for (const auto& [digest, users] : judgements_) {
      if (auto whole = state_.evidence.verify(digest); !whole) {
        note(tl::unexpected(whole.error()), users);
      }
    }
  }

  void recompute() {
    const journal::Journal journal(state_.database);
    for (const auto& [name, earned] : qualifications_) {
      if (!earned.verdict) continue;
      const auto derived = run::state_of(journal, name);
      if (!derived) {
        note(tl::unexpected(derived.error()), {"qualification " + name});
        continue;
      }
      const run::QualificationState& qualification = *derived;
      const auto again = run::judge_recorded(state_, qualification, options_.scratch);
      if (!again) {
        note(tl::unexpected(again.error()), {"qualification " + name});
        continue;
      }
      ++found_.recomputed;
      const std::string level = again->level ? exactness::name_of(*again->level) : "";
      if (again->verdict == qualification.verdict && level == qualification.level.value_or("")) {
        continue;
      }
      note(fail(Errc::integrity,
                std::string("judged again from its evidence it is ") +
                    policy::name_of(again->verdict) + (level.empty() ? "" : " at " + level) +
                    "; on record is " + policy::name_of(*qualification.verdict) +
                    (qualification.level ? " at " + *qualification.level : std::string()),
                "qualification " + name));
    }
  }

  static std::string words(const ledger::Record& record) {
    return std::string(ledger::name_of(record.kind)) + " " + record.id.substr(0, 12) + " of gate " +
           record.gate;
  }

  void note(Unexpected fault, const std::set<std::string>& users = {}) {
    Error error = std::move(fault.value());
    if (!users.empty()) {
      std::string all;
      for (const std::string& user : users) all += (all.empty() ? "" : ", ") + user;
      error.message += "; affects " + all;
    }
    found_.faults.push_back(std::move(error));
  }

  run::State& state_;
  const Options& options_;
  Found found_;
  std::deque<Certificate> certificates_;
  Citable citable_;
  std::vector<ledger::Record> revocations_;
  std::vector<ledger::Record> signoffs_;
  std::map<std::string, Earned> qualifications_;
  /// Who rests on what.
  std::map<Digest, std::set<std::string>> bundles_;
  std::map<Digest, std::set<std::string>> evidence_;
  std::map<Digest, std::set<std::string>> judgements_;
};

}  // namespace

Result<void> check_signer(const run::State& state, const ledger::Record& record) {
  const auto ours = own_key(state);
  if (!ours) return tl::unexpected(ours.error());
  return signed_by(*ours, record);
}

Result<Found> verify_state(run::State& state, const Options& options) {
  return Verification(state, options).run();
}

}  // namespace qualify::verify
