#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qualify::evidence {

/// How much a stored value says about the value the run computed.
enum class Precision : std::uint8_t {
  float32_bits,  ///< the float32 itself
  float64_bits,  ///< the float64 itself
  integer,       ///< the integer itself
  printed,       ///< decimal text of limited digits; equality proves nothing below them
  sha256,        ///< SHA-256 over all bytes of the value: a tensor, a checkpoint file
  weak_digest,   ///< a digest of part of the bytes, or one whose coverage is not recorded
};
[[nodiscard]] const char* name_of(Precision precision);  ///< "float32-bits", "printed", …

/// True when equality of two such values proves equality of what the runs computed.
[[nodiscard]] bool is_exact(Precision precision);

/// How a printed number was written.
enum class Notation : std::uint8_t {
  fixed,    ///< "6.321", as %.3f
  upper_e,  ///< "1.186396E+01", as %.6E
  lower_e,  ///< "1.186396e+01"
};

/// One recorded value. `bits` is what equality compares: float32 bits in the low half, float64
/// bits, two's complement integer, or for `printed` the float64 bits of the text's value. For the
/// digests `text` is what equality compares.
struct Scalar {
  std::uint64_t bits = 0;
  Precision precision = Precision::float64_bits;
  int digits = 0;                       ///< significant decimal digits, only for printed
  std::string text;                     ///< the digest in hex; otherwise empty
  Notation notation = Notation::fixed;  ///< only for printed
  int last_digit = 0;  ///< power of ten of the last printed digit: -3 in "6.321", only for printed

  [[nodiscard]] double value() const;  ///< nearest float64, for people and plots
  /// For people: as it was printed, or the shortest decimal that gives the bits back, or the
  /// digest.
  [[nodiscard]] std::string str() const;
  bool operator==(const Scalar&) const = default;
};

/// A decimal number as text: an integer where it is one, otherwise `printed` with its digits;
/// "nan", "inf", "-inf" in any case. Null when it is not a number to its last character.
[[nodiscard]] std::optional<Scalar> parse_number(std::string_view text);

/// Where values go that do not fit in memory: a file that has no name and goes with its last user.
/// Not thread-safe.
class Spool;
struct OpenBlock;  ///< values in the form in which they can be changed
struct Block;      ///< values packed

/// The values of one metric by iteration, each iteration once, ascending. Packed in blocks of a few
/// thousand (equal steps, equal kinds and narrow values take no room of their own); with a Spool,
/// blocks beyond its memory lie in its file, so that a run of any length takes constant memory.
/// In-order appending is cheap, anything else costs up to a block.
/// Thread rule: const members may be used by several threads when no other is.
/// A spooled block that cannot be read back throws std::runtime_error: the disk has failed.
class Values {
 public:
  using value_type = std::pair<std::int64_t, Scalar>;
  class const_iterator;

  Values();
  explicit Values(std::shared_ptr<Spool> spool);
  Values(const Values&);
  Values& operator=(const Values&);
  Values(Values&&) noexcept;
  Values& operator=(Values&&) noexcept;
  ~Values();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  /// Of the first and last value; only when not empty.
  [[nodiscard]] std::int64_t first_iteration() const;
  [[nodiscard]] std::int64_t last_iteration() const;
  [[nodiscard]] const_iterator begin() const;
  [[nodiscard]] const_iterator end() const;
  [[nodiscard]] std::optional<Scalar> find(std::int64_t iteration) const;
  [[nodiscard]] bool contains(std::int64_t iteration) const { return find(iteration).has_value(); }
  /// Throws std::out_of_range.
  [[nodiscard]] Scalar at(std::int64_t iteration) const;
  /// True when there is a value and every one is exact.
  [[nodiscard]] bool all_exact() const;

  /// False, and no change, unless the iteration is beyond all that are there.
  bool append_later(std::int64_t iteration, const Scalar& scalar);
  /// False, and no change, when the iteration is there: `found`, if given, gets its value.
  bool insert(std::int64_t iteration, const Scalar& scalar, Scalar* found = nullptr);
  void insert_or_assign(std::int64_t iteration, const Scalar& scalar);
  void erase(std::int64_t iteration);

  /// For formats that print float64 as their writer's language does, once a file's values are in. A
  /// metric with a value of 16 or more digits was printed to give the bits back (shortest form,
  /// never 16 digits by rounding): its finite values are float64 bits. In any other, values were
  /// rounded to as many decimals as the longest has, and lost their trailing zeros: "10.9367" among
  /// "10.93429" was 10.93670.
  void settle();

 private:
  struct Place {
    std::size_t block;
    std::size_t at;
    bool there;
  };
  [[nodiscard]] Place place_of(std::int64_t iteration);
  void open(std::size_t block);
  void seal();
  void append(std::int64_t iteration, const Scalar& scalar);
  bool append_with_room(std::int64_t iteration, const Scalar& scalar);
  void note(const Scalar& scalar);

  std::vector<Block> blocks_;
  std::unique_ptr<OpenBlock> open_;  ///< stands for blocks_[open_index_]
  std::size_t open_index_ = 0;
  std::size_t room_ = 0;  ///< values that the open block takes as they come; 0: ask
  std::shared_ptr<Spool> spool_;
  std::size_t size_ = 0;
  int most_digits_ = 0;    ///< of printed finite values since the last settle()
  int most_decimals_ = 0;  ///< of those in fixed notation
};

/// Input iterator: hands values out by value, decoded a block at a time.
class Values::const_iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = Values::value_type;
  using difference_type = std::ptrdiff_t;
  using pointer = const value_type*;
  using reference = const value_type&;

  const_iterator();
  const_iterator(const Values* values, std::size_t block);
  const_iterator(const const_iterator&);
  const_iterator& operator=(const const_iterator&);
  const_iterator(const_iterator&&) noexcept;
  const_iterator& operator=(const_iterator&&) noexcept;
  ~const_iterator();

  [[nodiscard]] reference operator*() const { return current_; }
  [[nodiscard]] pointer operator->() const { return &current_; }
  const_iterator& operator++();
  [[nodiscard]] bool operator==(const const_iterator& other) const {
    return block_ == other.block_ && at_ == other.at_;
  }

 private:
  void load();
  const Values* values_ = nullptr;
  std::size_t block_ = 0;
  std::size_t at_ = 0;
  std::unique_ptr<OpenBlock> decoded_;  ///< null while the open block itself is walked
  value_type current_;
};

}  // namespace qualify::evidence
