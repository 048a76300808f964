#include "event_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "qualify/base/json.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/rebuild/rebuild.hpp"
#include "qualify/run/progress.hpp"
#include "table.hpp"

namespace qualify::cli {

namespace {

std::string words(const journal::Event& event, const Json& payload) {
  namespace kind = run::event;
  const auto text = [&](const char* key) { return payload.value(key, std::string()); };
  if (event.kind == kind::kPlanCreated) {
    return fmt::format("started {}: {} runs planned", event.qualification,
                       payload.at("plan").at("runs").size());
  }
  if (event.kind == kind::kPreflight) {
    const Json& faults = payload.at("faults");
    if (faults.empty()) return "preflight passed";
    return fmt::format("preflight: {} fault{}, first: {}", faults.size(),
                       faults.size() == 1 ? "" : "s",
                       faults.front().at("message").get<std::string>());
  }
  if (event.kind == kind::kIntent) return fmt::format("attempt {} intended", event.attempt);
  if (event.kind == kind::kSubmitted) {
    return fmt::format("attempt {} submitted as job {}", event.attempt,
                       text("job_id").substr(0, 12));
  }
  if (event.kind == kind::kUnanswered) {
    return fmt::format("attempt {}: the submission was not answered: {}", event.attempt,
                       text("error"));
  }
  if (event.kind == kind::kRunning) return "running";
  if (event.kind == kind::kBreach) return "being cancelled: " + text("why");
  if (event.kind == kind::kEnded) {
    const double spent = payload.value("cost", Json::object()).value("gpu_seconds", 0.0);
    const std::string cost = spent > 0 ? fmt::format(", {:.0f} GPU-seconds", spent) : "";
    return (payload.value("complete", false)
                ? std::string("done")
                : fmt::format("{} ({})", text("failure"), text("failure_class"))) +
           cost;
  }
  if (event.kind == kind::kEvidence) return "evidence " + text("digest").substr(7, 12);
  if (event.kind == kind::kWindowClosed) return "no further look: " + text("why");
  if (event.kind == kind::kVerdict) return "verdict: " + text("verdict");
  if (event.kind == kind::kCertificate) return "certificate " + text("id").substr(0, 12);
  if (event.kind == kind::kCancelled) return "given up by " + text("by");
  namespace arming = daemon::event;
  if (event.kind == arming::kArmed) {
    return fmt::format("gate {} armed on reservation {} by {}", text("gate"), text("reservation"),
                       text("by"));
  }
  if (event.kind == arming::kDue) {
    return fmt::format("gate {} due since {}", text("gate"), text("occurrence").substr(0, 16));
  }
  if (event.kind == arming::kDone) {
    return fmt::format("gate {} of {}: {}", text("gate"), text("occurrence").substr(0, 16),
                       text("outcome"));
  }
  if (event.kind == arming::kMissed) {
    const auto count = payload.at("count").get<std::int64_t>();
    return fmt::format("gate {} missed {}{}: {}", text("gate"), text("first").substr(0, 16),
                       count == 1 ? "" : fmt::format(" to {}", text("last").substr(0, 16)),
                       text("why"));
  }
  if (event.kind == arming::kWaiting) {
    return fmt::format("gate {} waits for: {}", text("gate"),
                       fmt::join(payload.at("faults").get<std::vector<std::string>>(), "; "));
  }
  if (event.kind == arming::kDisarmed) {
    return fmt::format("gate {} disarmed by {}: {}", text("gate"), text("by"), text("why"));
  }
  if (event.kind == rebuild::event::kRebuilt) {
    return fmt::format("database rebuilt by {}; lost: {}", text("by"), payload.at("lost").size());
  }
  return event.kind;
}

}  // namespace

std::string event_text(const journal::Event& event) {
  std::string text = event.kind;
  if (const auto payload = parse_json(event.payload, "event")) {
    try {
      text = words(event, *payload);
    } catch (const std::exception&) {
      text += " (damaged)";
    }
  }
  return printable(event.run.empty() ? text : "run " + event.run + ": " + text);
}

}  // namespace qualify::cli
