#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"

/// Who may say what about gates, and what a release needs, as a person declares it in
/// qualification.yaml. Values only: key files are read by the orchestrator (standing/people.hpp).
/// Format page: docs/formats/qualification.md.
namespace qualify::policy {

/// One key of a person and when it was theirs. A retired key keeps its entry: what it signed before
/// stays valid, what it signs later does not.
struct DeclaredKey {
  std::string file;           ///< PEM public key, relative to the file of the declaration, below it
  std::optional<Time> from;   ///< absent: always
  std::optional<Time> until;  ///< exclusive; absent: still
  std::string where;          ///< "file:line:column", for whoever reads the key
};

struct Person {
  std::string name;
  std::vector<DeclaredKey> keys;  ///< at least one
};

/// What some persons may do together: `needed` of them.
struct Role {
  std::string name;  ///< one of kRoles
  std::vector<std::string> people;
  std::uint32_t needed = 1;
};

namespace role {
inline constexpr const char* kDecide = "decide";
inline constexpr const char* kWaive = "waive";
inline constexpr const char* kRevoke = "revoke";
inline constexpr const char* kSign = "sign";
}  // namespace role
inline constexpr std::array kRoles = {role::kDecide, role::kWaive, role::kRevoke, role::kSign};

/// What is signed off together.
struct Release {
  std::string name;
  std::string description;
  std::vector<std::string> gates;  ///< in file order
};

}  // namespace qualify::policy
