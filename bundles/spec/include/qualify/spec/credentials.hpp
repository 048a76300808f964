#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Tells values that look like credentials, so that they never enter a bundle, evidence, a log or
/// a certificate. A guard against accidents, not against somebody who hides a secret on purpose.
namespace qualify::spec {

/// Why `value` looks like a credential, in words that do not repeat it; nothing when it does not.
/// Known token forms (cloud access keys, forge, model-hub and chat tokens, private keys, JSON Web
/// Tokens, passwords in URLs) are found anywhere in the value.
[[nodiscard]] std::optional<std::string> credential_in(std::string_view value);

/// The same for a named value: a name with the word PASSWORD, SECRET, API_KEY, CREDENTIAL, … makes
/// any literal value one; a name with the word TOKEN only a value that looks random, so that
/// `pad_token: 0` and `TOKENIZERS_PARALLELISM` stay allowed.
[[nodiscard]] std::optional<std::string> credential_in(std::string_view name,
                                                       std::string_view value);

/// The first line of a text file that holds a credential, with `name = value`, `name: value`,
/// `"name": value` and `--name value` read as named values.
struct CredentialLine {
  int line = 0;  ///< 1-based
  std::string why;
};
[[nodiscard]] std::optional<CredentialLine> credential_in_text(std::string_view text);

}  // namespace qualify::spec
