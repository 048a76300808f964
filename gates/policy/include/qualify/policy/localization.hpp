#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qualify/traces/capture_plan.hpp"
#include "qualify/traces/faults.hpp"
#include "qualify/traces/localize.hpp"

/// What a localization gate declares, and what it is judged by. How it is judged:
/// docs/gates/localization.md.
namespace qualify::policy {

/// A divergence that an arm's workload plants, and where localising has to find it.
struct Plant {
  std::string arm;
  std::int64_t iteration = 0;
  std::string phase;
  std::string site;
  std::vector<std::int64_t> ranks;  ///< all on which it is the first difference
  std::string classification;       ///< traces::Cause by name
  bool operator==(const Plant&) const = default;
};

/// Two arms run again with more recorded, to narrow down where they part (`qualify localize
/// --run`). Such a gate is a diagnosis: it never passes.
struct Capture {
  std::string of;  ///< the gate whose runs parted, and whose grant this runs in
  std::string arm_a;
  std::string arm_b;
  traces::CapturePlan plan;
  std::vector<std::string> nodes_a = {};  ///< where the run that parted was
  std::vector<std::string> nodes_b = {};
};

struct LocalizationCriteria {
  std::string traced_arm;
  std::string untraced_arm;
  std::uint32_t ranks = 0;         ///< how many leave traces: 0 .. ranks - 1
  std::vector<Plant> planted;      ///< by arm
  double overhead_below = 0;       ///< ratio of step times, traced / untraced; 1.01 = 1 %
  std::optional<Capture> capture;  ///< then all other fields are empty
};

/// One run's traces as its evidence holds them.
struct TraceEvidence {
  std::string unreadable;  ///< why they can't be read; the rest is empty then
  std::vector<std::int64_t> ranks;
  std::vector<std::int64_t> iterations;
  std::string capture_level;  ///< by their manifest; empty: it does not say
  traces::Faults faults;      ///< not empty: incomplete, and equal to nothing
  /// The reference run (LocalizationCriteria: the first of the traced arm; a capture: run a), and
  /// where this one parts from it. Null: this is the reference, or they could not be compared.
  std::string against;
  std::optional<traces::Localization> found;
  std::string not_compared;  ///< why
};

}  // namespace qualify::policy
