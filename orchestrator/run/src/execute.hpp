#pragma once

#include <string>

#include "qualify/run/qualification.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::run {

/// Appends to the journal and tells whoever watches.
class Recorder {
 public:
  Recorder(journal::Database& database, const Ports& ports) : journal_(database), ports_(&ports) {}

  [[nodiscard]] const journal::Journal& journal() const { return journal_; }
  [[nodiscard]] Result<QualificationState> start(const plan::Plan& plan, const policy::Gate& gate);
  [[nodiscard]] Result<void> append(const std::string& qualification, const std::string& run,
                                    int attempt, const std::string& kind, const Json& payload);
  [[nodiscard]] Result<QualificationState> state_of(const std::string& qualification) const;

 private:
  journal::Journal journal_;
  const Ports* ports_;
};

/// What the stages share. All by reference: it lives inside qualify_gate.
struct Context {
  State& state;
  const Request& request;
  const Ports& ports;
  Recorder& recorder;
  const store::Bundle& bundle;
};

/// Runs what the first `runs` of the plan still lack, in order; the only stage that retries.
[[nodiscard]] Result<QualificationState> execute(const Context& context, const std::string& name,
                                                 std::size_t runs);

/// Is there room in the reservation for the plan's runs up to `runs`, beyond those that have their
/// evidence? By the controller's clock; a no is recorded with its reason.
[[nodiscard]] Result<bool> window_allows(const Context& context, const QualificationState& state,
                                         std::size_t runs);

/// Collects the evidence of every run that has none yet.
[[nodiscard]] Result<QualificationState> collect_all(const Context& context,
                                                     const QualificationState& executed);

}  // namespace qualify::run
