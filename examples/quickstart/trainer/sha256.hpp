#pragma once

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>

namespace quickstart {

/// SHA-256 over the parts, one after another, as 64 lower-case hex digits. Thread-safe.
[[nodiscard]] std::string sha256_hex(std::initializer_list<std::span<const std::byte>> parts);

}  // namespace quickstart
