#pragma once

#include <simdjson.h>

#include <string_view>

#include "qualify/traces/event.hpp"

/// Values of a record's members, as an event has them. All return false for what they cannot be.
namespace qualify::traces {

/// As many bytes as `size`, a multiple of 4, from their hex.
[[nodiscard]] bool unhex(std::string_view text, unsigned char* to, std::size_t size);

/// A digest of 32 bytes (SHA-256), 16 or 8, in hex; the first bytes are the low lane.
[[nodiscard]] bool set_digest(std::string_view hex, Event& event);

/// The digest is one over a sample.
void as_sample(Event& event);

/// "0x3f800000" and "0x3ff0000000000000": the bits of a float.
[[nodiscard]] bool set_bits(std::string_view text, Event& event);

/// A JSON scalar as bits; `set` where it is one. False: not JSON.
[[nodiscard]] bool set_value(simdjson::ondemand::value& value, Event& event, bool& set);

}  // namespace qualify::traces
