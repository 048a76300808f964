#pragma once

#include <map>
#include <string>
#include <vector>

#include "qualify/certify/statement.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/ledger/trust.hpp"
#include "qualify/standing/standing.hpp"

/// What the certificate of a gate that rests on others says, against the records that it cites as
/// they were when it was issued. Pure.
namespace qualify::verify {

struct CitedCertificate {
  std::string gate;
  std::int64_t index = 0;  ///< in the log
  Time time;
  std::string verdict;
  std::vector<Digest> subjects;  ///< bundles
};

/// What may be cited.
struct Citable {
  std::map<std::string, CitedCertificate> certificates;  ///< by id
  std::map<std::string, ledger::Record> decisions;
  std::map<std::string, standing::Revoked> revoked;  ///< by id of what was revoked
};

/// Each of its parts must be closed by a certificate of its gate or decisions on it, that were
/// there, passed, young enough and not revoked when it was issued. Empty = so it is.
[[nodiscard]] std::vector<std::string> composite_faults(const certify::Certified& says,
                                                        const CitedCertificate& own,
                                                        const Citable& citable);

}  // namespace qualify::verify
