#include "qualify/ledger/merkle.hpp"

#include <gtest/gtest.h>

#include <bit>

namespace qualify::ledger::merkle {
namespace {

/// MTH of RFC 6962 section 2.1, word for word.
Digest defined_root(const std::vector<Digest>& leaves, std::size_t from, std::size_t to) {
  const std::size_t n = to - from;
  if (n == 0) return sha256("");
  if (n == 1) return leaves[from];
  const std::size_t k = std::bit_floor(n - 1);
  return node_hash(defined_root(leaves, from, from + k), defined_root(leaves, from + k, to));
}

class Merkle : public ::testing::Test {
 protected:
  static constexpr std::size_t kMost = 70;
  void SetUp() override {
    for (std::size_t i = 0; i < kMost; ++i) leaves_.push_back(leaf_hash(std::to_string(i)));
  }
  [[nodiscard]] NodeSource nodes() const {
    return [this](int level, std::uint64_t index) -> Result<Digest> {
      const std::size_t from = static_cast<std::size_t>(index) << static_cast<unsigned>(level);
      return defined_root(leaves_, from, from + (std::size_t{1} << static_cast<unsigned>(level)));
    };
  }
  [[nodiscard]] Digest root_of(std::size_t n) const { return defined_root(leaves_, 0, n); }
  std::vector<Digest> leaves_;
};

TEST_F(Merkle, Rfc6962TestVectors) {
  // certificate-transparency-go, testdata for the tree of 8 leaves: empty, one empty leaf.
  EXPECT_EQ(root(0, nodes())->hex(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(leaf_hash("").hex(),
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
  const Digest two = node_hash(leaf_hash(""), leaf_hash(std::string_view("\0", 1)));
  EXPECT_EQ(two.hex(), "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125");
}

TEST_F(Merkle, RootIsTheDefinedOne) {
  for (std::size_t n = 0; n <= kMost; ++n) EXPECT_EQ(root(n, nodes()).value(), root_of(n));
}

TEST_F(Merkle, EveryInclusionProofHoldsForItsLeafAlone) {
  for (std::uint64_t n = 1; n <= kMost; ++n) {
    const Digest head = root_of(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      auto proof = inclusion_proof(i, n, nodes()).value();
      ASSERT_TRUE(verify_inclusion(i, n, leaves_[i], proof, head)) << i << " of " << n;
      EXPECT_FALSE(verify_inclusion(i, n, leaf_hash("other"), proof, head));
      if (n > 1) {
        EXPECT_FALSE(verify_inclusion((i + 1) % n, n, leaves_[i], proof, head));
      }
      proof.push_back(head);
      EXPECT_FALSE(verify_inclusion(i, n, leaves_[i], proof, head));
      proof.pop_back();
      for (Digest& hash : proof) {
        const Digest kept = hash;
        hash = leaf_hash("bad");
        EXPECT_FALSE(verify_inclusion(i, n, leaves_[i], proof, head));
        hash = kept;
      }
      if (!proof.empty()) {
        proof.pop_back();
        EXPECT_FALSE(verify_inclusion(i, n, leaves_[i], proof, head));
      }
    }
    EXPECT_EQ(inclusion_proof(n, n, nodes()).error().code, Errc::invalid_input);
    EXPECT_FALSE(verify_inclusion(n, n, leaves_[0], {}, head));
  }
}

TEST_F(Merkle, EveryConsistencyProofHoldsForItsBeginningAlone) {
  for (std::uint64_t n = 0; n <= kMost; ++n) {
    for (std::uint64_t m = 0; m <= n; ++m) {
      auto proof = consistency_proof(m, n, nodes()).value();
      ASSERT_TRUE(verify_consistency(m, n, root_of(m), root_of(n), proof)) << m << " to " << n;
      if (m > 0) {
        EXPECT_FALSE(verify_consistency(m, n, leaf_hash("x"), root_of(n), proof));
      }
      if (m > 0 && m < n) {
        EXPECT_FALSE(verify_consistency(m, n, root_of(m), leaf_hash("x"), proof));
      }
      proof.push_back(root_of(1));
      EXPECT_FALSE(verify_consistency(m, n, root_of(m), root_of(n), proof));
      proof.pop_back();
      if (!proof.empty()) {
        proof.front() = leaf_hash("bad");
        EXPECT_FALSE(verify_consistency(m, n, root_of(m), root_of(n), proof));
        proof.erase(proof.begin());
        EXPECT_FALSE(verify_consistency(m, n, root_of(m), root_of(n), proof));
      }
    }
  }
  EXPECT_EQ(consistency_proof(3, 2, nodes()).error().code, Errc::invalid_input);
  EXPECT_FALSE(verify_consistency(3, 2, root_of(3), root_of(2), {}));
}

TEST_F(Merkle, AProofIsLogarithmic) {
  const NodeSource any = [](int, std::uint64_t) -> Result<Digest> { return Digest(); };
  EXPECT_EQ(inclusion_proof(123456, 1ULL << 40U, any)->size(), 40U);
  EXPECT_LE(consistency_proof(123457, (1ULL << 40U) - 1, any)->size(), 42U);
}

}  // namespace
}  // namespace qualify::ledger::merkle
