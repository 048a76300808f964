#pragma once

#include <string>
#include <string_view>

#include "qualify/base/error.hpp"

namespace qualify::ledger {

/// Base 64 with padding, standard alphabet (RFC 4648 section 4).
[[nodiscard]] std::string base64_encode(std::string_view bytes);

/// Only what base64_encode writes: no white space, no URL alphabet, padding there, unused bits
/// zero. Bytes that are signed must have one spelling. Errors: invalid_input.
[[nodiscard]] Result<std::string> base64_decode(std::string_view text);

}  // namespace qualify::ledger
