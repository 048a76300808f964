#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace quickstart {

/// Samples of one rank and iteration: `context` characters each and the one that follows, as
/// numbers of the vocabulary.
struct Batch {
  unsigned size = 0;
  unsigned context = 0;
  std::vector<std::int32_t> inputs;   ///< [size, context]
  std::vector<std::int32_t> targets;  ///< [size]
};

/// A text as a sequence of vocabulary numbers. The vocabulary is the set of bytes that occur, in
/// byte order. Immutable, hence safe to share between ranks.
class Text {
 public:
  /// Throws InputError: not readable, larger than 64 MiB, one kind of character only.
  static Text read(const std::filesystem::path& file);
  explicit Text(const std::string& bytes);

  [[nodiscard]] unsigned vocabulary() const { return vocabulary_; }
  [[nodiscard]] std::size_t length() const { return symbols_.size(); }
  [[nodiscard]] const std::string& sha256() const { return sha256_; }

  /// Samples `first` … `first + size - 1` of the endless sequence that `seed` names. Sample n is a
  /// pure function of (seed, n): a resumed run needs no state of the loader.
  [[nodiscard]] Batch batch(std::uint64_t seed, std::uint64_t first, unsigned size,
                            unsigned context) const;

 private:
  std::vector<std::int32_t> symbols_;
  unsigned vocabulary_ = 0;
  std::string sha256_;
};

/// SplitMix64's output function: a well-mixed 64-bit number from a counter.
/// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
[[nodiscard]] std::uint64_t mix64(std::uint64_t counter);

}  // namespace quickstart
