#pragma once

#include <optional>
#include <string>
#include <vector>

#include "qualify/journal/journal.hpp"
#include "qualify/policy/gate.hpp"

/// Which gates are to start by themselves, and on which reservation. On record as events of the
/// journal (docs/formats/journal.md); a gate that was never armed is never launched. One with a
/// schedule stays armed: each time that it is due (an occurrence) is begun, or recorded as missed.
namespace qualify::daemon {

namespace event {
inline constexpr const char* kArmed =
    "gate.armed";  ///< criteria, bundle, reservation, schedule, by
inline constexpr const char* kWaiting = "gate.waiting";    ///< what is waited for; it may pass
inline constexpr const char* kDisarmed = "gate.disarmed";  ///< why, by
inline constexpr const char* kDue = "schedule.due";        ///< an occurrence is begun
inline constexpr const char* kDone = "schedule.done";      ///< and came to its end
inline constexpr const char* kMissed = "schedule.missed";  ///< first, last, count, why
}  // namespace event

/// Occurrences that came to nothing, one after the other for one reason.
struct Missed {
  Time first;
  Time last;
  std::int64_t count = 1;
  std::string why;
};

struct Armed {
  policy::Gate gate;        ///< the criteria as they were when it was armed
  Digest bundle;            ///< zero: the gate rests on others and has no runs
  std::string reservation;  ///< empty then
  std::string file;         ///< then: the file of gates that it is judged by, absolute
  std::string by;
  Time since;
  std::vector<std::string> waiting_for;  ///< as last recorded; empty = nothing recorded yet

  std::string schedule;   ///< empty: once, as soon as the reservation allows
  std::string time_zone;  ///< of the schedule

  std::int64_t armed_at = 0;     ///< sequence of the event that armed it: which arming this is
  std::int64_t begun_at = 0;     ///< sequence of the event that let it start: armed, or due
  Time handled;                  ///< every occurrence up to here was begun or missed
  std::optional<Time> due;       ///< the occurrence that is begun and has not come to its end
  Time ended;                    ///< when the last one did
  std::optional<Missed> missed;  ///< the last that were

  [[nodiscard]] bool recurrent() const { return !schedule.empty(); }
};

/// Errors: already_exists (the gate is armed already), busy, io, no_space.
[[nodiscard]] Result<void> arm(journal::Database& database, const Armed& armed);

/// Errors: not_found (it is not armed), busy, io, no_space.
[[nodiscard]] Result<void> disarm(journal::Database& database, Time now, const std::string& gate,
                                  const std::string& by, const std::string& why);

// What follows is recorded of this very arming. False, and nothing is recorded, when the gate was
// disarmed since `armed` was read, also when it is armed anew. Errors: busy, io, no_space,
// integrity.

/// The end of the arming.
[[nodiscard]] Result<bool> note_disarmed(journal::Database& database, Time now, const Armed& armed,
                                         const std::string& by, const std::string& why);
/// What it waits for.
[[nodiscard]] Result<bool> note_waiting(journal::Database& database, Time now, const Armed& armed,
                                        const std::vector<std::string>& faults);
/// An occurrence is begun; it came to its end, with this outcome ("verdict: pass"); some were
/// missed.
[[nodiscard]] Result<bool> note_due(journal::Database& database, Time now, const Armed& armed,
                                    Time occurrence);
[[nodiscard]] Result<bool> note_done(journal::Database& database, Time now, const Armed& armed,
                                     Time occurrence, const std::string& outcome);
[[nodiscard]] Result<bool> note_missed(journal::Database& database, Time now, const Armed& armed,
                                       const Missed& missed);

/// Armed gates in the order in which they were armed. An event of a gate that is not armed changes
/// nothing. Errors: busy, io, integrity.
[[nodiscard]] Result<std::vector<Armed>> armed_gates(journal::Database& database);

}  // namespace qualify::daemon
