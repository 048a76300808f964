#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "qualify/traces/event.hpp"

/// The columns of a sealed file, in order: what writer and reader share. Internal to this module.
/// docs/formats/sealed-traces.md says the same.
namespace qualify::traces::layout {

inline constexpr char kMagic[] = "ARROW1";
inline constexpr std::size_t kMagicBytes = 6;
inline constexpr const char* kFormat = "1";

enum class Type : std::uint8_t { int8, int16, uint16, int32, uint32, int64, uint64, bytes16 };
/// Dictionaries by id; `texts` is the file's own, the others are the names of enumerations.
enum Dictionary : std::int8_t { plain = -1, texts, kinds, roles, coverages, algorithms, values };
inline constexpr std::size_t kDictionaries = 6;

struct Column {
  const char* name;
  Type type;  ///< of the index where there is a dictionary
  Dictionary dictionary = plain;
  bool nullable = false;
  bool compared = true;  ///< part of equality
};

// clang-format off
enum At : std::uint8_t {
  rank, iteration, microbatch, vpp_chunk, phase, site, op, kind, occurrence, rank_seq, group,
  group_seq, role, peer, shape, dtype, bytes, value_bits, value_dtype, digest_lo, digest_hi,
  digest_tail, digest_algorithm, multiset_digest, coverage, flags, time_ns, duration_ns
};
inline constexpr std::array<Column, 28> kColumns = {{
    {"rank", Type::int32},
    {"iteration", Type::int64},
    {"microbatch", Type::int32, plain, true},
    {"vpp_chunk", Type::int16, plain, true},
    {"phase", Type::int32, texts},
    {"site", Type::int32, texts},
    {"op", Type::int32, texts, true},
    {"kind", Type::int8, kinds},
    {"occurrence", Type::uint32},
    {"rank_seq", Type::int64, plain, false, false},
    {"group", Type::int32, texts, true},
    {"group_seq", Type::int64, plain, true},
    {"role", Type::int8, roles, true},
    {"peer", Type::int32, plain, true},
    {"shape", Type::int32, texts, true},
    {"dtype", Type::int32, texts, true},
    {"bytes", Type::int64, plain, true},
    {"value_bits", Type::uint64, plain, true},
    {"value_dtype", Type::int8, values, true},
    {"digest_lo", Type::uint64, plain, true},
    {"digest_hi", Type::uint64, plain, true},
    {"digest_tail", Type::bytes16, plain, true},
    {"digest_algorithm", Type::int8, algorithms, true},
    {"multiset_digest", Type::uint64, plain, true},
    {"coverage", Type::int8, coverages},
    {"flags", Type::uint16},
    {"time_ns", Type::int64, plain, true, false},
    {"duration_ns", Type::int64, plain, true, false},
}};
// clang-format on

[[nodiscard]] constexpr std::size_t width_of(Type type) {
  switch (type) {
    case Type::int8:
      return 1;
    case Type::int16:
    case Type::uint16:
      return 2;
    case Type::int32:
    case Type::uint32:
      return 4;
    case Type::int64:
    case Type::uint64:
      return 8;
    case Type::bytes16:
      return 16;
  }
  return 0;
}

/// Names of the fixed dictionaries, by number of the enumeration.
[[nodiscard]] inline const char* fixed_name(Dictionary dictionary, std::size_t at) {
  switch (dictionary) {
    case kinds:
      return name_of(static_cast<Kind>(at));
    case roles:
      return name_of(static_cast<Role>(at));
    case coverages:
      return name_of(static_cast<Coverage>(at));
    case algorithms:
      return name_of(static_cast<Algorithm>(at));
    case values:
      return name_of(static_cast<ValueType>(at));
    case plain:
    case texts:
      break;
  }
  return "";
}
[[nodiscard]] constexpr std::size_t fixed_size(Dictionary dictionary) {
  constexpr std::array<std::size_t, kDictionaries> sizes = {0,          kKinds,      kRoles,
                                                            kCoverages, kAlgorithms, kValueTypes};
  return dictionary == plain ? 0 : sizes[static_cast<std::size_t>(dictionary)];
}

/// Whole iterations a record batch until it has this many rows; one iteration beyond kMostRows is
/// cut. Fewer rows are read to look at one iteration; more rows compress better.
inline constexpr std::size_t kBatchRows = 1024;
inline constexpr std::size_t kMostRows = 65536;

/// Keys of the footer's metadata.
inline constexpr const char* kFormatKey = "qualify.format";
inline constexpr const char* kRankKey = "qualify.rank";
inline constexpr const char* kSchemaKey = "qualify.source.schema";
inline constexpr const char* kBytesKey = "qualify.source.bytes";
inline constexpr const char* kLinesKey = "qualify.source.lines";
inline constexpr const char* kSequenceKey = "qualify.source.last_sequence";
inline constexpr const char* kFaultsKey = "qualify.faults";
inline constexpr const char* kSummaryKey = "qualify.summary";

}  // namespace qualify::traces::layout
