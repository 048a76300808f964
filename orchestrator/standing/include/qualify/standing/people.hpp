#pragma once

#include <functional>
#include <string>

#include "qualify/ledger/trust.hpp"
#include "qualify/policy/gate.hpp"

namespace qualify::standing {

/// Bytes of a key file by its name in qualification.yaml.
using ReadKey = std::function<Result<std::string>(const std::string& file)>;
/// Those that lie beside `file`, the qualification.yaml.
[[nodiscard]] ReadKey keys_beside(const std::filesystem::path& file);

/// The people and roles of a qualification with their keys; of nobody where nobody is declared.
/// Errors, all at once with their places in the file: not_found, invalid_input (not a P-256 key,
/// one key of two people).
[[nodiscard]] Result<ledger::Trust> load_people(const policy::Qualification& qualification,
                                                const ReadKey& read);

/// Who may do what, with which keys and when, and how many of them it takes: of one value, however
/// the file is laid out.
[[nodiscard]] Digest people_digest(const ledger::Trust& people);

}  // namespace qualify::standing
