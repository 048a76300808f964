#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"
#include "qualify/traces/capture_plan.hpp"
#include "qualify/traces/trace_set.hpp"

/// Where two runs part: manifests first, then roots, chains of phases and collectives, events.
namespace qualify::traces {

/// How an event differs.
enum class Difference : std::uint8_t {
  value,
  nan_payload,  ///< both are NaN, with other bits
  permutation,  ///< the same values in another order
  shape,        ///< another shape, type or number of bytes
  dropped,      ///< A has it, B has not
  inserted,     ///< B has it, A has not
  moved,        ///< both have it, at another place in the order
  replaced,     ///< each has another event in this place
};
[[nodiscard]] const char* name_of(Difference difference);

/// What it means. `collective`: equal inputs on all members, other results. `transport`: sent
/// equal, received otherwise. `op`: what lies between the last equal and the first different
/// boundary. `upstream`: it came from a rank that was not recorded.
enum class Cause : std::uint8_t {
  collective,
  op,
  transport,
  upstream,
  control_flow,
  routing,
  data,
  rng,
  checkpoint,
  permutation,
};
inline constexpr std::array kCauses = {
    Cause::collective, Cause::op,   Cause::transport, Cause::upstream,   Cause::control_flow,
    Cause::routing,    Cause::data, Cause::rng,       Cause::checkpoint, Cause::permutation};
[[nodiscard]] const char* name_of(Cause cause);

/// An event, in words of the trace.
struct Place {
  std::int64_t rank = 0;
  std::int64_t iteration = 0;
  std::string phase;
  std::string site;
  std::string op;
  std::string kind;
  std::string role;   ///< empty: none
  std::string group;  ///< without its ranks
  std::int64_t group_seq = -1;
  std::int64_t microbatch = -1;
  std::int64_t vpp_chunk = -1;
  std::int64_t peer = -1;
  std::int64_t occurrence = 0;
  std::int64_t rank_seq = 0;
};

/// Events that nothing different happened before: on the rank itself, or on any rank from which a
/// collective or point-to-point operation could have carried it there.
struct FrontierEvent {
  Place place;                      ///< on the lowest rank
  std::vector<std::int64_t> ranks;  ///< all on which this event is the first
  std::vector<std::string> groups;  ///< of communication, where it is some
  Difference difference = Difference::value;
  Cause cause = Cause::op;
  std::string why;  ///< one sentence
  std::string a;    ///< what each run has there, for people
  std::string b;
  /// The interval of doubt is (last equal, first different]: null: from the iteration's beginning.
  std::optional<Place> last_equal;
  bool one_event = false;           ///< nothing lies between but the event itself
  std::vector<std::string> chains;  ///< phases and classes of collectives that differ on the rank
  std::uint64_t differing = 0;      ///< events of the rank in the iteration that differ
  std::uint64_t events = 0;         ///< of those it has
};

enum class Outcome : std::uint8_t { equal, differs, inconclusive };
[[nodiscard]] const char* name_of(Outcome outcome);

struct Localization {
  Outcome outcome = Outcome::equal;
  std::vector<std::string> reasons;  ///< why inconclusive, or what an equality does not say
  Faults faults_a;
  Faults faults_b;
  std::uint64_t ranks = 0;       ///< compared
  std::uint64_t iterations = 0;  ///< compared
  bool full = false;             ///< every value was compared, not the roots alone
  std::vector<std::int64_t> differing_iterations;
  std::vector<std::int64_t> differing_ranks;  ///< in any iteration
  bool heals = false;                         ///< the last iteration is equal again on all ranks
  std::vector<FrontierEvent> frontier;        ///< the earliest iteration first
  std::vector<std::int64_t> followers;        ///< differing ranks that follow from it
  std::optional<CapturePlan> capture_plan;    ///< what to record next
  std::string capture_reason;                 ///< why this, or why nothing
  std::uint64_t events_read = 0;              ///< in both runs, behind the roots
};

struct LocalizeOptions {
  unsigned jobs = 0;
  bool full = false;  ///< compare every value, and find summaries that are not their rows'
  std::vector<std::string> allowed;  ///< members of the manifests that may differ
  std::int64_t from_iteration = 0;
  std::int64_t to_iteration = INT64_MAX;
};

/// Errors: refused (the manifests, schemas or digest algorithms differ: not of one thing), io,
/// integrity (damaged, cut off, or a summary that lies).
[[nodiscard]] Result<Localization> localize(const TraceSet& a, const TraceSet& b,
                                            const LocalizeOptions& options);

/// docs/formats/localization.md
[[nodiscard]] Json to_json(const Localization& found);

/// For people: "backward, decoder.layers.12.mixer output, reduce-scatter #3 of dp.5, microbatch 1".
/// `groups`: those of a FrontierEvent; of more than four one is named.
[[nodiscard]] std::string describe(const Place& place);
[[nodiscard]] std::string describe(const Place& place, const std::vector<std::string>& groups);
/// "iteration 7, backward, …; rank 2: [op] …": where it is, and what it means.
[[nodiscard]] std::string describe(const FrontierEvent& event);

}  // namespace qualify::traces
