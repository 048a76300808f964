#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"

namespace qualify {

using Json = nlohmann::json;

/// Strict JSON (RFC 8259): duplicate keys, lone surrogates, invalid UTF-8, trailing bytes and
/// nesting deeper than 200 are errors. `context` names the source in the error. Errors:
/// invalid_input.
[[nodiscard]] Result<Json> parse_json(std::string_view text, const std::string& context);

/// Canonical bytes, RFC 8785 (JCS): keys sorted by UTF-16 code units, ECMAScript number form, no
/// white space. The only serialiser for bytes that are hashed or signed. Integers beyond 2^53 and
/// NaN are refused: store 64-bit values as strings. Errors: invalid_input.
[[nodiscard]] Result<std::string> canonical_json(const Json& value);

/// SHA-256 over canonical_json(value); the value must be one that can be made canonical
/// (programs build it, no outside input): otherwise std::logic_error is thrown.
[[nodiscard]] Digest digest_of(const Json& value);

/// Canonical bytes of a value that the program built itself; throws std::logic_error as digest_of.
[[nodiscard]] std::string canonical_bytes(const Json& value);

}  // namespace qualify
