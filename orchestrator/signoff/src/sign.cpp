#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/signoff/signoff.hpp"
#include "qualify/standing/people.hpp"

namespace qualify::signoff {

namespace {

constexpr const char* kYamlType = "application/yaml";
constexpr const char* kPemType = "application/x-pem-file";

/// qualification.yaml and its key files, kept as they are now.
struct Kept {
  Digest file;
  std::map<std::string, Digest> keys;
};

Result<Kept> keep(run::State& state, const std::string& text,
                  const policy::Qualification& qualification) {
  Kept kept;
  const auto file = state.evidence.add_bytes(text, kYamlType);
  if (!file) return tl::unexpected(file.error());
  kept.file = file->digest;
  const auto read = standing::keys_beside(qualification.file);
  for (const policy::Person& person : qualification.people) {
    for (const policy::DeclaredKey& key : person.keys) {
      const auto pem = read(key.file);
      if (!pem) return tl::unexpected(pem.error());
      const auto stored = state.evidence.add_bytes(*pem, kPemType);
      if (!stored) return tl::unexpected(stored.error());
      kept.keys[key.file] = stored->digest;
    }
  }
  return kept;
}

Unexpected not_ready(const standing::ReleaseStanding& release) {
  Error error{Errc::refused,
              release.reasons.empty() ? "the release cannot be signed" : release.reasons.front(),
              "release " + release.release,
              release.next,
              {}};
  for (std::size_t i = 1; i < release.reasons.size(); ++i) {
    error.others.push_back({Errc::refused, release.reasons[i], {}, {}, {}});
  }
  return Unexpected(std::move(error));
}

}  // namespace

Result<Signed> sign_release(run::State& state, const std::filesystem::path& qualification_file,
                            const std::string& name, const ledger::Signer& signer,
                            const std::string& comment, Time now) {
  // Read once: what is judged by is what is kept.
  const auto text = read_file(qualification_file);
  if (!text) return tl::unexpected(text.error());
  const auto qualification = policy::parse_qualification(*text, qualification_file);
  if (!qualification) return tl::unexpected(qualification.error());
  if (qualification->release(name) == nullptr) {
    return fail(Errc::not_found, "no release '" + name + "'", qualification_file.string(),
                "declare it below 'releases:'");
  }
  const auto kept = keep(state, *text, *qualification);
  if (!kept) return tl::unexpected(kept.error());

  std::optional<Signed> made;
  auto done = state.database.transaction([&]() -> Result<void> {
    const auto facts = standing::read_facts(state, *qualification);
    if (!facts) return tl::unexpected(facts.error());
    if (!facts->faults.empty()) return tl::unexpected(facts->faults.front());
    const auto all = standing::standings(*qualification, *facts, now);
    const auto releases = standing::release_standings(*qualification, *facts, all);
    const auto release =
        std::find_if(releases.begin(), releases.end(),
                     [&](const standing::ReleaseStanding& each) { return each.release == name; });
    if (!release->can_sign) return not_ready(*release);
    const auto person =
        facts->people->person_of(signer.public_key().key_id(), now, policy::role::kSign);
    if (!person) return tl::unexpected(person.error());
    if (std::find(release->people.begin(), release->people.end(), *person) !=
        release->people.end()) {
      return fail(Errc::refused, *person + " has signed exactly this already, and counts once",
                  "release " + name);
    }
    ledger::Ledger ledger(state.database);
    auto approval = ledger.append(
        signer, ledger::RecordKind::approval, name, Digest(), now,
        statement_of(certify::Approval{release->content, kept->file, *person, comment}));
    if (!approval) return tl::unexpected(approval.error());
    // The log's time may be ahead of this clock: what counts is when the record says it was.
    if (auto then = facts->people->signer_of(*approval, policy::role::kSign); !then) {
      return tl::unexpected(then.error());
    }
    made = Signed{std::move(*approval), std::nullopt};

    certify::SignOff signoff{release->content, kept->file,      kept->keys, release->approvals,
                             release->people,  release->needed, {},         made->approval.time};
    signoff.approvals.push_back(made->approval.id);
    signoff.people.push_back(*person);
    if (signoff.people.size() < signoff.needed) return {};
    const auto own = ledger::load_key(state.paths.signing_key());
    if (!own) return tl::unexpected(own.error());
    signoff.verifier = (*own)->public_key().key_id();
    auto record = ledger.append(**own, ledger::RecordKind::signoff, name, Digest(),
                                made->approval.time, statement_of(signoff));
    if (!record) return tl::unexpected(record.error());
    made->signoff = std::move(*record);
    // Nothing is signed off that would not verify: the log keeps it for ever.
    const auto package = gather(state, *made->signoff);
    if (!package) return tl::unexpected(package.error());
    if (auto faults = check(*package); !faults.empty()) {
      faults.insert(
          faults.begin(),
          {Errc::refused, "what would be signed off does not hold", "release " + name, {}, {}});
      return fail_all(std::move(faults));
    }
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return std::move(*made);
}

}  // namespace qualify::signoff
