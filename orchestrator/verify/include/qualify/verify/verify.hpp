#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "qualify/ledger/ledger.hpp"
#include "qualify/ledger/trust.hpp"
#include "qualify/run/state.hpp"

/// Checks a whole state, from its certificates down to the last byte of evidence.
namespace qualify::verify {

struct Options {
  /// Judge every finished qualification again from its evidence, and compare.
  bool recompute = false;
  /// Whose word counts: people and roles of qualification.yaml. Without them, records that people
  /// signed cannot be vouched for, which is a fault where there are any.
  std::optional<ledger::Trust> people;
  /// Checkpoints that somebody kept elsewhere (signed notes): the log must continue them.
  std::vector<std::string> remembered;
  unsigned threads = 1;           ///< for signatures and bundles
  std::filesystem::path scratch;  ///< for recomputing; what is made there is removed again
};

struct Found {
  std::uint64_t records = 0;
  std::uint64_t certificates = 0;
  std::size_t checkpoints = 0;
  std::size_t bundles = 0;
  std::size_t evidence = 0;          ///< manifests, each with all its files
  std::size_t signed_by_people = 0;  ///< decisions, waivers, approvals, revocations
  std::size_t signoffs = 0;          ///< each with its whole chain
  std::size_t recomputed = 0;        ///< qualifications judged again
  /// All of them, each with what rests on it ("affects certificate …"); empty = whole.
  std::vector<Error> faults;
};

/// Read-only, without locks, without network. Reads: the database's own structure; every record
/// (signature, columns, key of this state or of a person with the role), the log's tree and
/// checkpoints; every sign-off with all that it rests on; every certificate
/// against the qualification that earned it; every bundle and all evidence that a record or the
/// journal names, byte for byte. Errors are of the reading itself; what it finds is in `faults`.
/// Errors: io, busy.
[[nodiscard]] Result<Found> verify_state(run::State& state, const Options& options);

/// The key that a record names is this state's. Its signature is another matter (verify_record).
/// Errors: integrity (it is not), io.
[[nodiscard]] Result<void> check_signer(const run::State& state, const ledger::Record& record);

}  // namespace qualify::verify
