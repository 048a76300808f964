#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "qualify/ledger/ledger.hpp"

/// Who may say what: persons, their keys over time, and roles. Pure.
namespace qualify::ledger {

/// One key of a person and when it was theirs. A retired key keeps its entry: what it signed before
/// stays valid, what it signs later does not.
struct TrustedKey {
  PublicKey key;
  std::optional<Time> from;   ///< absent: always
  std::optional<Time> until;  ///< exclusive; absent: still
};

struct Person {
  std::string name;
  std::vector<TrustedKey> keys;  ///< at least one
};

/// What some persons may do together: `threshold` of them.
struct Role {
  std::string name;
  std::vector<std::string> persons;
  std::uint32_t threshold = 1;
};

class Trust {
 public:
  /// Errors: invalid_input, with all faults: a name twice, one key with two persons, a person
  /// without key, an empty span of time, a role of unknown or repeated persons, a threshold that is
  /// 0 or that its persons cannot reach.
  [[nodiscard]] static Result<Trust> make(std::vector<Person> persons, std::vector<Role> roles);

  /// Whose key it is at that time, if they have the role. Errors: refused, not_found (no such
  /// role).
  [[nodiscard]] Result<std::string> person_of(const std::string& key_id, Time time,
                                              const std::string& role) const;

  /// Name of the person who signed this record, if it verifies, the key was theirs at the record's
  /// time and they have the role. Errors: integrity (the record), refused (the rest), not_found (no
  /// such role).
  [[nodiscard]] Result<std::string> signer_of(const Record& record, const std::string& role) const;

  [[nodiscard]] const std::vector<Person>& persons() const { return persons_; }
  [[nodiscard]] const std::vector<Role>& roles() const { return roles_; }
  /// How many it takes; 1 for a role that nobody declared.
  [[nodiscard]] std::uint32_t threshold(const std::string& role) const;

 private:
  Trust() = default;
  [[nodiscard]] Result<const Role*> role(const std::string& name) const;
  std::vector<Person> persons_;
  std::vector<Role> roles_;
};

}  // namespace qualify::ledger
