#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/certify/records.hpp"
#include "qualify/ledger/signer.hpp"
#include "qualify/run/state.hpp"
#include "qualify/standing/standing.hpp"

/// Releases: signing them, taking what was signed out of a state, and checking it anywhere.
/// Format of the folder: docs/formats/signoff.md.
namespace qualify::signoff {

/// What came of one person's signature.
struct Signed {
  ledger::Record approval;
  std::optional<ledger::Record> signoff;  ///< when it was the last that was needed
};

/// Appends a person's approval of what the release is now, and the sign-off by the state's own key
/// once enough people have approved the same; both in one transaction, by what the database says in
/// it. Keeps qualification.yaml and its keys in the evidence store, as they are now.
/// Errors: refused (the release is not ready; not a person who may sign, or one who has signed this
/// already), not_found (no such release), those of reading the file and of the ledger.
[[nodiscard]] Result<Signed> sign_release(run::State& state,
                                          const std::filesystem::path& qualification_file,
                                          const std::string& release, const ledger::Signer& signer,
                                          const std::string& comment, Time now);

/// A sign-off with everything that it cites.
struct Package {
  ledger::Record signoff;
  std::map<std::string, ledger::Record> records;  ///< by id; the sign-off is not among them
  std::string qualification;                      ///< qualification.yaml as it was
  std::map<std::string, std::string> key_files;   ///< PEM by name in that file
  ledger::PublicKey state_key;                    ///< signs certificates, baselines, the sign-off
};

/// From a state. Errors: integrity (something cited is not there, or is not what was signed), io.
[[nodiscard]] Result<Package> gather(run::State& state, const ledger::Record& signoff);

/// Everything that must hold for a sign-off, checked again from what was signed: every signature
/// and whose it is, roles and key validity at that time, t of n, each gate's closure by the
/// certificate, decision or waiver that is named for it, policies, bundles, the order in the log,
/// and that nothing else is in the package. All faults; empty = it holds. Pure.
[[nodiscard]] std::vector<Error> check(const Package& package);

/// The report that lies in an exported folder: plain text, made from what was signed alone.
[[nodiscard]] std::string report_of(const Package& package);

/// Writes a folder that verifies anywhere. Every record comes as a Sigstore bundle with its proof
/// under the newest checkpoint. Errors: already_exists (the folder), integrity, io, no_space.
[[nodiscard]] Result<void> export_release(run::State& state, const ledger::Record& signoff,
                                          const std::filesystem::path& folder);

/// What whoever checks a folder knows from elsewhere.
struct Known {
  std::optional<std::filesystem::path> qualification;  ///< their own qualification.yaml and keys
  std::optional<std::string> log;                      ///< their own copy of the log's key (vkey)
  std::vector<std::string> checkpoints;  ///< that the folder's must not contradict at the same size
};

struct Checked {
  std::string release;
  Time time;
  std::vector<std::string> people;
  std::size_t records = 0;
  std::string checkpoint;                   ///< origin, size and root
  std::string log_key;                      ///< what the folder says: to be compared
  std::map<std::string, std::string> keys;  ///< key ids by "person" or "state"
  bool anchored = false;                    ///< the people's keys were given from elsewhere
  std::vector<Error> faults;                ///< all of them; empty = it holds
};

/// Checks an exported folder: no state, no network. Errors: not_found (no such folder), io; what is
/// wrong in it is in `faults`.
[[nodiscard]] Result<Checked> verify_folder(const std::filesystem::path& folder,
                                            const Known& known = {});

}  // namespace qualify::signoff
