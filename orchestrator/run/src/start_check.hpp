#pragma once

#include <functional>
#include <nlohmann/json.hpp>

#include "execute.hpp"

namespace qualify::run {

/// Whether an attempt may be submitted (launch contract, step 1), asked until it may, for as long
/// as that can pass by itself. Of one allocation; the references must outlive it.
class StartCheck {
 public:
  /// `run`: the allocation's first. `needed`: it and all that follow it in its stage must still
  /// fit.
  StartCheck(const Context& context, const QualificationState& state, const RunState& run,
             scheduler::Requirement needed)
      : context_(context), state_(state), run_(run), needed_(std::move(needed)) {}

  /// `probe`: what would be submitted on these nodes. Returns the nodes that the plan or an earlier
  /// failure asks for; empty = any. A scheduler that does not answer is waited for.
  /// Errors: refused (all faults), unavailable, interrupted, io.
  using Probe = std::function<scheduler::JobRequest(const std::vector<std::string>& nodes)>;
  [[nodiscard]] Result<std::vector<std::string>> wait(const Probe& probe);

 private:
  [[nodiscard]] Result<std::vector<std::string>> look(const Probe& probe);
  [[nodiscard]] Unexpected silent(const Error& error);
  [[nodiscard]] Result<void> note(const std::vector<scheduler::Fault>& faults);

  const Context& context_;
  const QualificationState& state_;
  const RunState& run_;
  scheduler::Requirement needed_;
  Duration until_start_{};        ///< of the reservation, by the controller's clock
  bool faults_may_pass_ = false;  ///< of the last look: all of them
  Json last_faults_;              ///< as recorded last; null = none
};

}  // namespace qualify::run
