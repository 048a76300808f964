#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/traces/event.hpp"

namespace qualify::traces {

inline constexpr const char* kRootsName = "roots.bin";

/// Hashes of its own, or in a file that is mapped: copied only where one is changed.
class Hashes {
 public:
  Hashes() = default;
  /// `count` of them from `first` on, which are there as long as `holder` is.
  Hashes(std::shared_ptr<const void> holder, const Hash* first, std::size_t count)
      : holder_(std::move(holder)), first_(first), count_(count) {}

  [[nodiscard]] const Hash* data() const { return holder_ ? first_ : own_.data(); }
  [[nodiscard]] std::size_t size() const { return holder_ ? count_ : own_.size(); }
  [[nodiscard]] const Hash& operator[](std::size_t i) const { return data()[i]; }
  [[nodiscard]] Hash& operator[](std::size_t i) {
    if (holder_) {
      own_.assign(first_, first_ + count_);
      holder_.reset();
    }
    return own_[i];
  }
  /// So many, all zero.
  void reset(std::size_t count) {
    holder_.reset();
    own_.assign(count, Hash{});
  }
  friend bool operator==(const Hashes& a, const Hashes& b) {
    return a.size() == b.size() && (a.size() == 0 || a.data() == b.data() ||
                                    std::memcmp(a.data(), b.data(), a.size() * sizeof(Hash)) == 0);
  }

 private:
  std::vector<Hash> own_;
  std::shared_ptr<const void> holder_;
  const Hash* first_ = nullptr;
  std::size_t count_ = 0;
};

/// What two runs are compared by first: one hash for each rank and iteration, 16 bytes each.
/// All zero where a rank has no such iteration.
struct Roots {
  bool complete = false;                 ///< no faults, training had ended
  Digest manifest;                       ///< of manifest.json; all zero: there is none
  std::int64_t window = 0;               ///< iterations a sealed file; 0 = all
  std::vector<std::int64_t> ranks;       ///< ascending
  std::vector<std::int64_t> iterations;  ///< ascending
  Hashes hashes;                         ///< by rank, then iteration

  [[nodiscard]] const Hash& at(std::size_t rank, std::size_t iteration) const {
    return hashes[rank * iterations.size() + iteration];
  }
};

/// The whole of roots.bin (docs/formats/sealed-traces.md): header, ranks, iterations, hashes, and a
/// sum over all before it.
[[nodiscard]] std::string pack_roots(const Roots& roots);
/// Errors: integrity.
[[nodiscard]] Result<Roots> unpack_roots(std::string_view bytes, const std::string& context);
/// Errors: not_found, io, integrity.
[[nodiscard]] Result<Roots> read_roots(const std::filesystem::path& folder);
/// Those of two folders. Files of the same bytes are read once, together, and what is given for
/// both lies in the same memory. Errors: those of read_roots.
[[nodiscard]] std::pair<Result<Roots>, Result<Roots>> read_both_roots(
    const std::filesystem::path& a, const std::filesystem::path& b);

/// One hash for a whole run.
[[nodiscard]] Hash run_root(const Roots& roots);

/// Name of the file with the window of iterations that `iteration` is in.
[[nodiscard]] std::string sealed_name(std::int64_t rank, std::int64_t iteration,
                                      std::int64_t window);

}  // namespace qualify::traces
