#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "qualify/traces/localize.hpp"
#include "support/trace_generator.hpp"

namespace qualify::test {

/// A planted divergence and where it must be found.
struct Case {
  TraceShape shape;
  Plant plant;
  traces::Cause cause = traces::Cause::op;
  traces::Difference difference = traces::Difference::value;
  std::string site;
  std::string phase;
  std::vector<std::int64_t> ranks;
  bool one_event = true;
  bool heals = false;
};

/// One case of each kind, in a run of 16 ranks.
[[nodiscard]] std::vector<Case> one_of_each();
/// `count` cases of each kind at places drawn from `seed`, resumed runs where the kind asks for it.
[[nodiscard]] std::vector<Case> many_of_each(const TraceShape& shape, std::size_t count,
                                             std::uint64_t seed);
/// Empty: found at the right place with the right class. Otherwise what is wrong.
[[nodiscard]] std::string verdict(const Case& planted, const traces::Localization& found);
/// "TensorBit"
[[nodiscard]] std::string test_name(const Case& planted);

void PrintTo(const Case& planted, std::ostream* out);

}  // namespace qualify::test
