#pragma once

#include <string>
#include <vector>

#include "qualify/scheduler/types.hpp"

namespace qualify::scheduler {

/// An operator's statement that this reservation, exactly as it was seen, is assigned to this gate.
/// It is signed and logged by the ledger; here it is a plain value.
struct Grant {
  std::string gate;
  std::string scheduler;    ///< kind()
  Reservation reservation;  ///< as seen when granted; its fingerprint is what counts
  std::string operator_name;
  Time granted_at;
};
[[nodiscard]] Json to_json(const Grant& grant);
/// Errors: invalid_input.
[[nodiscard]] Result<Grant> grant_from_json(const Json& json);

/// What a plan needs of a reservation.
struct Requirement {
  std::uint32_t nodes = 1;
  std::uint32_t gpus_per_node = 0;
  std::vector<std::string> pinned_nodes;  ///< empty: any
  Duration duration{};                    ///< whole plan, margins included
};

/// One reason for which nothing may start, with the fact behind it.
struct Fault {
  std::string code;       ///< stable, kebab-case: "node-unusable", "fingerprint-changed", …
  std::string message;    ///< "node gpu0132 is IDLE+DRAIN: 'bad NVLink' since 2026-…"
  bool may_pass = false;  ///< waiting may cure it (a node coming back, a start in the future)
};

/// What the controller said at one moment.
struct Snapshot {
  Time now;
  std::vector<Reservation> reservations;
  std::vector<Node> nodes;
  std::vector<Job> jobs;
};

/// Preflight, DESIGN section 5 step 1: every fault, none hidden by the first; empty = may start.
/// `own_nonces`: jobs of this plan, not foreign. Pure.
[[nodiscard]] std::vector<Fault> preflight(const Grant& grant, const Requirement& requirement,
                                           const Snapshot& snapshot,
                                           const std::vector<std::string>& own_nonces);

/// Why a reservation of this shape can never keep the promise and is not granted; empty = can be.
/// `nodes`: those of the cluster, by which whole nodes are told from parts of them. Pure. Source:
/// docs/operations.md, the table of flags and shapes.
[[nodiscard]] std::vector<Fault> unfit_for_grant(const Reservation& reservation,
                                                 const std::vector<Node>& nodes);

}  // namespace qualify::scheduler
