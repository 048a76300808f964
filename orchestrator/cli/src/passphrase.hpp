#pragma once

#include "qualify/ledger/signer.hpp"
#include "session.hpp"

namespace qualify::cli {

/// Reads a line from the terminal without showing it. Ctrl-C leaves the terminal as it was.
/// Errors: refused (there is no terminal), interrupted, io.
[[nodiscard]] Result<std::string> read_hidden_line(const std::string& prompt);

/// Asks on the terminal, or takes the first line of `file` where one is given: it must be readable
/// by its owner only.
[[nodiscard]] ledger::AskPassphrase ask_passphrase(const Session& session, const std::string& file);

/// The first line of a passphrase file. Errors: not_found, refused (others may read it),
/// invalid_input (empty).
[[nodiscard]] Result<std::string> read_passphrase_file(const std::filesystem::path& file);

}  // namespace qualify::cli
