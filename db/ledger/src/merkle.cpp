#include "qualify/ledger/merkle.hpp"

#include <bit>

namespace qualify::ledger::merkle {

namespace {

std::string_view view(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

/// Largest power of two smaller than n, n >= 2.
std::uint64_t split_of(std::uint64_t n) {
  return std::bit_floor(n - 1);
}

/// MTH of leaves start..start+n, n >= 1; start is a multiple of the smallest power of two >= n, as
/// every split leaves it.
Result<Digest> range_hash(std::uint64_t start, std::uint64_t n, const NodeSource& node) {
  if (std::has_single_bit(n)) {
    const int level = std::countr_zero(n);
    return node(level, start >> static_cast<unsigned>(level));
  }
  const std::uint64_t k = split_of(n);
  const auto left = range_hash(start, k, node);
  if (!left) return left;
  const auto right = range_hash(start + k, n - k, node);
  if (!right) return right;
  return node_hash(*left, *right);
}

Result<void> add(std::vector<Digest>& proof, const Result<Digest>& hash) {
  if (!hash) return tl::unexpected(hash.error());
  proof.push_back(*hash);
  return {};
}

/// PATH(m, D[start:start+n]) of RFC 6962 section 2.1.1.
Result<void> path(std::vector<Digest>& proof, std::uint64_t m, std::uint64_t start, std::uint64_t n,
                  const NodeSource& node) {
  if (n == 1) return {};
  const std::uint64_t k = split_of(n);
  const bool left = m < k;
  auto below = left ? path(proof, m, start, k, node) : path(proof, m - k, start + k, n - k, node);
  if (!below) return below;
  return add(proof, left ? range_hash(start + k, n - k, node) : range_hash(start, k, node));
}

/// SUBPROOF(m, D[start:start+n], whole) of RFC 6962 section 2.1.2.
Result<void> subproof(std::vector<Digest>& proof, std::uint64_t m, std::uint64_t start,
                      std::uint64_t n, bool whole, const NodeSource& node) {
  if (m == n) return whole ? Result<void>() : add(proof, range_hash(start, n, node));
  const std::uint64_t k = split_of(n);
  const bool left = m <= k;
  auto below = left ? subproof(proof, m, start, k, whole, node)
                    : subproof(proof, m - k, start + k, n - k, false, node);
  if (!below) return below;
  return add(proof, left ? range_hash(start + k, n - k, node) : range_hash(start, k, node));
}

Unexpected fail_proof(const char* what) {
  return fail(Errc::integrity, what);
}

}  // namespace

Digest leaf_hash(std::string_view leaf) {
  Sha256 hash;
  hash.update(std::string_view("\0", 1));
  hash.update(leaf);
  return hash.finish();
}

Digest node_hash(const Digest& left, const Digest& right) {
  Sha256 hash;
  hash.update("\x01");
  hash.update(view(left));
  hash.update(view(right));
  return hash.finish();
}

Result<Digest> root(std::uint64_t size, const NodeSource& node) {
  if (size == 0) return sha256("");
  return range_hash(0, size, node);
}

Result<std::vector<Digest>> inclusion_proof(std::uint64_t index, std::uint64_t size,
                                            const NodeSource& node) {
  if (index >= size) {
    return fail(Errc::invalid_input, "there is no leaf " + std::to_string(index) +
                                         " in a log of size " + std::to_string(size));
  }
  std::vector<Digest> proof;
  if (auto done = path(proof, index, 0, size, node); !done) return tl::unexpected(done.error());
  return proof;
}

Result<std::vector<Digest>> consistency_proof(std::uint64_t old_size, std::uint64_t size,
                                              const NodeSource& node) {
  if (old_size > size) {
    return fail(Errc::invalid_input, "a log of size " + std::to_string(size) +
                                         " does not reach back from size " +
                                         std::to_string(old_size));
  }
  std::vector<Digest> proof;
  if (old_size == 0 || old_size == size) return proof;
  if (auto done = subproof(proof, old_size, 0, size, true, node); !done) {
    return tl::unexpected(done.error());
  }
  return proof;
}

Result<void> verify_inclusion(std::uint64_t index, std::uint64_t size, const Digest& leaf,
                              const std::vector<Digest>& proof, const Digest& expected_root) {
  if (index >= size) return fail_proof("the leaf lies beyond the log's size");
  std::uint64_t fn = index;
  std::uint64_t sn = size - 1;
  Digest hash = leaf;
  for (const Digest& sibling : proof) {
    if (sn == 0) return fail_proof("the inclusion proof is too long");
    if ((fn & 1U) != 0 || fn == sn) {
      hash = node_hash(sibling, hash);
      while ((fn & 1U) == 0 && fn != 0) {
        fn >>= 1U;
        sn >>= 1U;
      }
    } else {
      hash = node_hash(hash, sibling);
    }
    fn >>= 1U;
    sn >>= 1U;
  }
  if (sn != 0) return fail_proof("the inclusion proof is too short");
  if (hash != expected_root) return fail_proof("the inclusion proof does not lead to the root");
  return {};
}

Result<void> verify_consistency(std::uint64_t old_size, std::uint64_t size, const Digest& old_root,
                                const Digest& new_root, const std::vector<Digest>& proof) {
  if (old_size > size) return fail_proof("the log is smaller than it was");
  if (old_size == 0 || old_size == size) {
    if (!proof.empty()) return fail_proof("the consistency proof is too long");
    if (old_size == size && old_root != new_root) {
      return fail_proof("two different logs of the same size");
    }
    if (old_size == 0 && old_root != sha256("")) return fail_proof("not the root of an empty log");
    return {};
  }
  std::vector<Digest> hashes;
  // A power of two is its own complete subtree, whose hash is the old root.
  if (std::has_single_bit(old_size)) hashes.push_back(old_root);
  hashes.insert(hashes.end(), proof.begin(), proof.end());
  if (hashes.empty()) return fail_proof("the consistency proof is too short");
  std::uint64_t fn = old_size - 1;
  std::uint64_t sn = size - 1;
  while ((fn & 1U) != 0) {
    fn >>= 1U;
    sn >>= 1U;
  }
  Digest old_hash = hashes.front();
  Digest new_hash = hashes.front();
  for (std::size_t i = 1; i < hashes.size(); ++i) {
    if (sn == 0) return fail_proof("the consistency proof is too long");
    if ((fn & 1U) != 0 || fn == sn) {
      old_hash = node_hash(hashes[i], old_hash);
      new_hash = node_hash(hashes[i], new_hash);
      while ((fn & 1U) == 0 && fn != 0) {
        fn >>= 1U;
        sn >>= 1U;
      }
    } else {
      new_hash = node_hash(new_hash, hashes[i]);
    }
    fn >>= 1U;
    sn >>= 1U;
  }
  if (sn != 0) return fail_proof("the consistency proof is too short");
  if (old_hash != old_root)
    return fail_proof("the log was rewritten: its beginning is another one");
  if (new_hash != new_root) return fail_proof("the consistency proof does not lead to the root");
  return {};
}

}  // namespace qualify::ledger::merkle
