#pragma once

#include <string>
#include <utility>
#include <vector>

#include "qualify/base/json.hpp"
#include "qualify/policy/gate.hpp"

/// What is signed of a gate that has no runs and rests on others. Pure. Format:
/// docs/formats/certificate.md.
namespace qualify::certify {

/// What closes one part: a certificate of its gate, or decisions of people on it.
struct PartCitation {
  std::string name;  ///< as of policy::GatePart
  std::string gate;
  std::string certificate;             ///< id, or empty
  std::vector<std::string> decisions;  ///< ids, where there is no certificate
  bool operator==(const PartCitation&) const = default;
};

struct CompositeResult {
  policy::Gate gate;
  std::vector<PartCitation> parts;  ///< each part of the gate, in its order
  std::vector<std::pair<std::string, Digest>>
      bundles;  ///< that the parts speak of; names may repeat
  std::vector<std::string> reasons;
};

/// in-toto Statement v1: a subject for each bundle, predicate = test result and our own `qualify`
/// with `parts`. Errors: invalid_input (a part that is missing, out of place or closed by nothing,
/// no bundle, a gate that has runs of its own).
[[nodiscard]] Result<Json> composite_statement(const CompositeResult& result);

}  // namespace qualify::certify
