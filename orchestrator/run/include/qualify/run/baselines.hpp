#pragma once

#include <string>
#include <vector>

#include "qualify/certify/statement.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/plan/plan.hpp"
#include "qualify/run/state.hpp"

/// Baselines as signed records of the ledger: a name for what a certificate proved. A name that is
/// set again points elsewhere from then on; what it was before stays on the record.
/// Predicate: docs/formats/certificate.md.
namespace qualify::run {

struct Baseline {
  std::string record;  ///< id of the signed record that set it
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

/// Binds `name` to a certificate (id or prefix), signed by the state's key. `user`: who sets it.
/// Errors: invalid_input (name), not_found, refused (revoked; or of a performance gate, whose runs
/// nobody proved equal), integrity (signature or evidence).
[[nodiscard]] Result<Baseline> set_baseline(State& state, const std::string& name,
                                            const std::string& certificate, const std::string& user,
                                            Time now);

/// Every binding that was ever made, oldest first, signatures checked; the last one of a name
/// counts. Errors: integrity, io.
[[nodiscard]] Result<std::vector<Baseline>> all_baselines(State& state);

/// The binding of `name` that counts. Errors: not_found (with the names there are), integrity.
[[nodiscard]] Result<Baseline> find_baseline(State& state, const std::string& name);

/// The plan of a gate, with what it needs of this state bound into it: the baseline of a gate of
/// kind baseline, as its name stands now. Whoever plans a gate calls this; plan::expand is its pure
/// part. Errors: those of expand; not_found (no such baseline), refused (its certificate was
/// revoked), integrity.
[[nodiscard]] Result<plan::Plan> plan_gate(State& state, const policy::Gate& gate,
                                           const store::Bundle& bundle,
                                           const scheduler::Grant& grant);

}  // namespace qualify::run
