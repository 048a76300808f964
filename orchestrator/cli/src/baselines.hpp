#pragma once

#include <string>
#include <vector>

#include "qualify/certify/statement.hpp"
#include "qualify/ledger/ledger.hpp"
#include "session.hpp"

/// Baselines as signed records of the ledger: a name for what a certificate proved. A name that is
/// set again points elsewhere from then on; what it was before stays on the record.
/// Predicate: docs/formats/certificate.md.
namespace qualify::cli {

struct Baseline {
  std::string name;
  std::string certificate;  ///< id
  std::string gate;         ///< of the certificate
  Digest bundle;
  std::string run;   ///< whose values stand for the baseline: the certificate's first
  Digest evidence;   ///< manifest of that run
  std::string user;  ///< who set it
  Time time;
};

/// What a certificate says; its signature is checked. Errors: integrity, invalid_input (the record
/// is no certificate).
[[nodiscard]] Result<certify::Certified> read_certificate(const ledger::Record& certificate);

/// Binds `name` to a certificate (id or prefix), signed. Errors: invalid_input (name), not_found,
/// refused (revoked; or of a performance gate, whose runs nobody proved equal), integrity
/// (signature or evidence).
[[nodiscard]] Result<Baseline> set_baseline(const Session& session, run::State& state,
                                            const std::string& name,
                                            const std::string& certificate);

/// Every binding that was ever made, oldest first, signatures checked; the last one of a name
/// counts. Errors: integrity, io.
[[nodiscard]] Result<std::vector<Baseline>> all_baselines(run::State& state);

/// The binding of `name` that counts. Errors: not_found (with the names there are), integrity.
[[nodiscard]] Result<Baseline> find_baseline(run::State& state, const std::string& name);

}  // namespace qualify::cli
