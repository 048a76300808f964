#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "qualify/tracer/tracer.h"

/// Digests of host memory. Internal to the tracer.
namespace qualify::tracer {

/// splitmix64's finaliser (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014). Here, so that loops over values have no call in them.
[[nodiscard]] inline std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}
[[nodiscard]] std::size_t size_of(qtrace_dtype dtype);
[[nodiscard]] const char* name_of(qtrace_dtype dtype);
[[nodiscard]] std::size_t elements_of(const std::int64_t* shape, std::size_t dims);
/// "[4,8]"
[[nodiscard]] std::string shape_json(const std::int64_t* shape, std::size_t dims);
/// E4 of the public schema: a compact JSON header (dtype, mode, schema_version, shape), a NUL, the
/// bytes. 64 hex digits. Throws std::runtime_error.
[[nodiscard]] std::string full_digest(const qtrace_value& value);
[[nodiscard]] bool all_finite(const qtrace_value& value);

}  // namespace qualify::tracer
