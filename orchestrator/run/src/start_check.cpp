#include "start_check.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "nodes_for.hpp"
#include "patience.hpp"

namespace qualify::run {

namespace {

/// Between two looks for what may pass by itself.
constexpr Duration kSlowestLook = std::chrono::seconds(2);

/// The controller's clock has whole seconds: so often is its start of a reservation looked for.
constexpr Duration kNearStart = std::chrono::milliseconds(200);

Unexpected refusal(const std::vector<scheduler::Fault>& faults, const std::string& reservation) {
  Error error{Errc::refused,
              faults.front().message,
              "reservation '" + reservation + "'",
              "nothing was submitted; run the same command again when it is cured",
              {}};
  for (std::size_t i = 1; i < faults.size(); ++i) {
    error.others.push_back({Errc::refused, faults[i].message, error.context, {}, {}});
  }
  return Unexpected(std::move(error));
}

}  // namespace

/// Before a first start as long as was asked for; between the runs of a plan because it is no
/// reason to give the reservation up.
Result<std::vector<std::string>> StartCheck::wait(const Probe& probe) {
  const bool under_way = !run_.attempts.empty() || state_.plan.runs.front().id != run_.run.id;
  const Limits& limits = context_.ports.limits;
  const Duration patience = under_way ? limits.settle : limits.start_wait;
  for (Duration waited{}, pause{};; waited += pause) {
    auto allowed = patiently(context_.ports, [&] { return look(probe); });
    if (allowed || !faults_may_pass_ || waited >= patience || context_.ports.stop() != Stop::none) {
      return allowed;
    }
    pause = std::clamp(until_start_, kNearStart, kSlowestLook);
    context_.ports.clock.sleep_for(pause);
  }
}

Result<std::vector<std::string>> StartCheck::look(const Probe& probe) {
  faults_may_pass_ = false;
  until_start_ = kSlowestLook;
  scheduler::Scheduler& scheduler = context_.ports.scheduler;
  const scheduler::Grant& grant = context_.request.grant;
  const auto snapshot = scheduler::take_snapshot(scheduler);
  if (!snapshot) return silent(snapshot.error());
  if (grant.reservation.start > snapshot->now) {
    until_start_ = grant.reservation.start - snapshot->now;
  }

  Place place = place_for(state_, run_, grant, *snapshot);
  needed_.pinned_nodes = place.nodes;
  std::vector<std::string> own;
  for (const RunState& run : state_.runs) {
    for (const Attempt& attempt : run.attempts) own.push_back(attempt.nonce);
  }
  auto faults = scheduler::preflight(grant, needed_, *snapshot, own);
  if (place.fault) faults.push_back(std::move(*place.fault));
  // Who may use a reservation is the scheduler's to say, and it says so once it is active.
  if (faults.empty()) {
    const auto accepted = scheduler.would_accept(probe(place.nodes));
    if (!accepted && accepted.error().code != Errc::refused) return silent(accepted.error());
    if (!accepted) faults.push_back({"access", accepted.error().message, false});
  }
  if (auto noted = note(faults); !noted) return tl::unexpected(noted.error());
  if (faults.empty()) return std::move(place.nodes);
  faults_may_pass_ = std::all_of(faults.begin(), faults.end(),
                                 [](const scheduler::Fault& fault) { return fault.may_pass; });
  return refusal(faults, state_.plan.reservation);
}

/// Who watches learns what is waited for.
Unexpected StartCheck::silent(const Error& error) {
  if (error.code == Errc::unavailable) {
    if (auto noted = note({{"no-answer", error.message, true}}); !noted) {
      return Unexpected(noted.error());
    }
  }
  return Unexpected(error);
}

/// Recorded once, however often it is found: of a start in the future only the time left differs.
Result<void> StartCheck::note(const std::vector<scheduler::Fault>& faults) {
  Json list = Json::array();
  for (const scheduler::Fault& fault : faults) {
    list.push_back(
        {{"code", fault.code}, {"message", fault.message}, {"may_pass", fault.may_pass}});
  }
  Json known = list;
  for (Json& fault : known) {
    const Json& code = fault.at("code");
    if (code == "not-started" || code == "no-answer") fault.erase("message");
  }
  if (known == last_faults_) return {};
  last_faults_ = std::move(known);
  auto noted = context_.recorder.append(state_.name, run_.run.id, 0, event::kPreflight,
                                        {{"faults", std::move(list)}});
  if (noted && faults.empty()) last_faults_ = nullptr;
  return noted;
}

}  // namespace qualify::run
