#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/digest.hpp"
#include "qualify/base/json.hpp"
#include "qualify/journal/database.hpp"

namespace qualify::journal {

/// One appended fact. The state of everything is derived from these, in `sequence` order.
struct Event {
  std::int64_t sequence = 0;  ///< assigned by append, strictly increasing
  Time time;
  std::string qualification;  ///< which execution of a gate: "<gate>-<n>"
  std::string run;            ///< planned run id; empty for events of the whole
  int attempt = 0;            ///< from 1; 0 for events of the whole run
  std::string kind;           ///< "plan.created", "attempt.intent", "attempt.submitted", …
  std::string payload;        ///< canonical JSON object
};

/// Append-only (triggers refuse UPDATE, DELETE and REPLACE). Event kinds and payloads:
/// docs/formats/journal.md.
/// A transaction of the database may hold several appends (and appends of the ledger).
class Journal {
 public:
  explicit Journal(Database& database) : database_(&database) {}

  /// Durable when it returns. An `attempt.intent` for the same (qualification, run, attempt) twice
  /// is already_exists. Errors: busy, no_space, io, already_exists.
  [[nodiscard]] Result<Event> append(Time time, const std::string& qualification,
                                     const std::string& run, int attempt, const std::string& kind,
                                     const Json& payload);
  /// Events of one qualification, or of all when empty, in order.
  [[nodiscard]] Result<std::vector<Event>> events(const std::string& qualification = {}) const;
  /// Those of each, the statement prepared once.
  [[nodiscard]] Result<std::vector<std::vector<Event>>> events_of_each(
      std::span<const std::string> qualifications) const;
  /// Events that concern no single qualification, in order.
  [[nodiscard]] Result<std::vector<Event>> general_events() const;
  /// Names of qualifications of a gate, oldest first; of all gates when empty.
  [[nodiscard]] Result<std::vector<std::string>> qualifications(const std::string& gate = {}) const;
  /// The newest of every gate, oldest first: one look, however many there were before.
  [[nodiscard]] Result<std::vector<std::string>> latest_qualifications() const;
  /// The newest of a gate that has an event of this kind; empty when none has.
  [[nodiscard]] Result<std::string> latest_with(const std::string& gate,
                                                const std::string& kind) const;
  /// Registers "<gate>-<n>" with the next n, the plan and policy digest and appends `plan.created`,
  /// in one transaction. Returns the name. Payload: {bundle, criteria, gate, policy, plan};
  /// `criteria` is the gate as it was declared, whose digest `policy` is.
  [[nodiscard]] Result<std::string> start_qualification(Time time, const std::string& gate,
                                                        const Digest& bundle, const Digest& policy,
                                                        const Json& plan, const Json& criteria);

 private:
  Database* database_;
};

}  // namespace qualify::journal
