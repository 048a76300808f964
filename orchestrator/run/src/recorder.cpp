#include <nlohmann/json.hpp>

#include "execute.hpp"

namespace qualify::run {

Result<QualificationState> Recorder::start(const plan::Plan& plan, const policy::Gate& gate) {
  const auto name = journal_.start_qualification(ports_->clock.now(), plan.gate, plan.bundle,
                                                 plan.policy, to_json(plan), to_json(gate));
  if (!name) return tl::unexpected(name.error());
  if (ports_->on_event) {
    const auto events = journal_.events(*name);
    if (!events) return tl::unexpected(events.error());
    for (const journal::Event& entry : *events) ports_->on_event(entry);
  }
  return state_of(*name);
}

Result<void> Recorder::append(const std::string& qualification, const std::string& run, int attempt,
                              const std::string& kind, const Json& payload) {
  const auto recorded = append_all(qualification, kind, {{run, attempt, payload}});
  if (!recorded) return tl::unexpected(recorded.error());
  return {};
}

Result<std::vector<journal::Event>> Recorder::append_all(const std::string& qualification,
                                                         const std::string& kind,
                                                         const std::vector<Entry>& entries) {
  std::vector<journal::Event> recorded;
  auto done = database_->transaction([&]() -> Result<void> {
    for (const Entry& entry : entries) {
      auto event = journal_.append(ports_->clock.now(), qualification, entry.run, entry.attempt,
                                   kind, entry.payload);
      if (!event) return tl::unexpected(event.error());
      recorded.push_back(std::move(*event));
    }
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  if (ports_->on_event) {
    for (const journal::Event& event : recorded) ports_->on_event(event);
  }
  return recorded;
}

Result<QualificationState> Recorder::state_of(const std::string& qualification) const {
  return run::state_of(journal_, qualification);
}

}  // namespace qualify::run
