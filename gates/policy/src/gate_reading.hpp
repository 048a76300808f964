#pragma once

#include <cstdint>
#include <limits>

#include "qualify/base/json.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/spec/document.hpp"

namespace qualify::policy {

inline constexpr double kAlpha = 0.05;  ///< one-sided error of a performance gate over its looks
inline constexpr std::int64_t kMaxRuns = 1000;
inline constexpr std::int64_t kMaxSteps = std::numeric_limits<std::int32_t>::max();

/// `people`, `roles` and `releases`, after the gates.
void read_people(spec::Fields& fields, const std::string& file, Qualification& to);

/// The one reader of gates, whether a person wrote them or a journal recorded them.
/// All faults at once. Errors: invalid_input.
[[nodiscard]] Result<Qualification> read_gates(const spec::Node& root, const std::string& file);

/// One kind's own fields, read and written: src/kinds/, a file for each family of kinds.
void read_repeatability(spec::Fields& fields, Gate& gate);
void read_baseline(spec::Fields& fields, Gate& gate);
void read_restart(spec::Fields& fields, Gate& gate);
void read_scale(spec::Fields& fields, Gate& gate);
void read_localization(spec::Fields& fields, Gate& gate);
void read_coverage(spec::Fields& fields, Gate& gate);
void read_performance(spec::Fields& fields, Gate& gate);
void read_enablement(spec::Fields& fields, Gate& gate);

void write_repeatability(const Gate& gate, Json& json);
void write_baseline(const Gate& gate, Json& json);
void write_restart(const Gate& gate, Json& json);
void write_scale(const Gate& gate, Json& json);
void write_localization(const Gate& gate, Json& json);
void write_coverage(const Gate& gate, Json& json);
void write_performance(const Gate& gate, Json& json);
void write_enablement(const Gate& gate, Json& json);

/// What a gate asks of runs that must be equal: level, metrics, steps.
void read_equality(spec::Fields& fields, Gate& gate);
void write_equality(const Gate& gate, Json& json);

/// A decimal number above one number and at most another; a fault otherwise.
[[nodiscard]] double read_decimal(spec::Fields& fields, const char* key, double above, double most,
                                  const std::string& hint);

/// How pairs of launches are timed: metric, looks, pairs, placebo, exclusions.
void read_timing(spec::Fields& fields, Gate& gate);
void write_timing(const Gate& gate, Json& json);

/// Gates that rest on others must name gates of the same file, of kinds that can answer for them.
void check_parts(const Qualification& qualification, const spec::Node& root, spec::Faults& faults);

}  // namespace qualify::policy
