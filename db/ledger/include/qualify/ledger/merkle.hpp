#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "qualify/base/digest.hpp"

/// Merkle trees as RFC 6962 section 2 has them (RFC 9162 section 2.1 for the verification
/// algorithms), SHA-256. Pure; thread-safe where the node source is.
namespace qualify::ledger::merkle {

/// SHA-256(0x00 || leaf).
[[nodiscard]] Digest leaf_hash(std::string_view leaf);
/// SHA-256(0x01 || left || right).
[[nodiscard]] Digest node_hash(const Digest& left, const Digest& right);

/// The hash of the complete subtree of 2^level leaves that begins at leaf index * 2^level.
using NodeSource = std::function<Result<Digest>(int level, std::uint64_t index)>;

/// The tree's root; of no leaves it is SHA-256 of nothing. Errors: the source's.
[[nodiscard]] Result<Digest> root(std::uint64_t size, const NodeSource& node);
/// At most 64 hashes, lowest first. Errors: invalid_input (index >= size), the source's.
[[nodiscard]] Result<std::vector<Digest>> inclusion_proof(std::uint64_t index, std::uint64_t size,
                                                          const NodeSource& node);
/// That the first `old_size` leaves are a beginning of the tree. Empty for 0 and for equal sizes.
/// Errors: invalid_input (old_size > size), the source's.
[[nodiscard]] Result<std::vector<Digest>> consistency_proof(std::uint64_t old_size,
                                                            std::uint64_t size,
                                                            const NodeSource& node);

/// RFC 9162 section 2.1.3.2. Errors: integrity.
[[nodiscard]] Result<void> verify_inclusion(std::uint64_t index, std::uint64_t size,
                                            const Digest& leaf, const std::vector<Digest>& proof,
                                            const Digest& expected_root);
/// RFC 9162 section 2.1.4.2. Errors: integrity.
[[nodiscard]] Result<void> verify_consistency(std::uint64_t old_size, std::uint64_t size,
                                              const Digest& old_root, const Digest& new_root,
                                              const std::vector<Digest>& proof);

}  // namespace qualify::ledger::merkle
