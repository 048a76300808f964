#pragma once

#include <string>
#include <vector>

#include "qualify/journal/journal.hpp"
#include "qualify/policy/gate.hpp"

/// Which gates are to start by themselves, and on which reservation. On record as events of the
/// journal (docs/formats/journal.md); a gate that was never armed is never launched.
namespace qualify::daemon {

namespace event {
inline constexpr const char* kArmed = "gate.armed";        ///< criteria, bundle, reservation, by
inline constexpr const char* kWaiting = "gate.waiting";    ///< what is waited for; it may pass
inline constexpr const char* kDisarmed = "gate.disarmed";  ///< why, by
}  // namespace event

struct Armed {
  policy::Gate gate;  ///< the criteria as they were when it was armed
  Digest bundle;
  std::string reservation;
  std::string by;
  Time since;
  std::vector<std::string> waiting_for;  ///< as last recorded; empty = nothing recorded yet
};

/// Errors: already_exists (the gate is armed already), busy, io, no_space.
[[nodiscard]] Result<void> arm(journal::Database& database, const Armed& armed);

/// Errors: not_found (it is not armed), busy, io, no_space.
[[nodiscard]] Result<void> disarm(journal::Database& database, Time now, const std::string& gate,
                                  const std::string& by, const std::string& why);

/// Records what an armed gate waits for. Errors: busy, io, no_space.
[[nodiscard]] Result<void> note_waiting(journal::Database& database, Time now,
                                        const std::string& gate,
                                        const std::vector<std::string>& faults);

/// Armed gates in the order in which they were armed. Errors: busy, io, integrity.
[[nodiscard]] Result<std::vector<Armed>> armed_gates(journal::Database& database);

}  // namespace qualify::daemon
