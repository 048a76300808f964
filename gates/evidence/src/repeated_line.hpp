#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/evidence/lines.hpp"
#include "source.hpp"
#include "words.hpp"

/// Internal to this module.
namespace qualify::evidence {

/// A line of JSON that holds nothing but numbers, as a pattern for later ones: a logger writes the
/// same keys in the same layout a million times, and what stands between the numbers need not be
/// understood again. Only where all of it stands again, byte for byte, does a line match; any other
/// goes through the parser. Not thread-safe.
class RepeatedLine {
 public:
  enum class Use : std::uint8_t {
    iteration,
    time,        ///< a mark only
    value,       ///< of a series
    time_value,  ///< of a series, and a mark
  };

 private:
  /// A text that is compared in two steps, not with a call of memcmp: it is mostly short.
  class Gap {
   public:
    explicit Gap(std::string_view text = {}) : size_(text.size()) {
      const std::size_t front = text.size() > kTail ? text.size() - kTail : 0;
      front_ = text.substr(0, front);
      std::copy(text.begin() + static_cast<std::ptrdiff_t>(front), text.end(), bytes_.begin());
      std::fill_n(used_.begin(), text.size() - front, '\xFF');
    }
    /// Moves past the text when it stands there. kLinePadding bytes behind `end` can be read.
    [[nodiscard]] bool passes(const char*& at, const char* end) const {
      if (static_cast<std::size_t>(end - at) < size_) return false;
      const char* from = at;
      if (!front_.empty()) {
        if (std::memcmp(from, front_.data(), front_.size()) != 0) return false;
        from += front_.size();
      }
      const Half low = (half(from) ^ half(bytes_.data())) & half(used_.data());
      const Half high =
          (half(from + kHalf) ^ half(bytes_.data() + kHalf)) & half(used_.data() + kHalf);
      const Half both = low | high;
      if ((both[0] | both[1]) != 0) return false;
      at += size_;
      return true;
    }

   private:
    using Half [[gnu::vector_size(16)]] = std::uint64_t;
    static constexpr std::size_t kHalf = sizeof(Half);
    static constexpr std::size_t kTail = 2 * kHalf;
    static_assert(kTail <= kLinePadding);
    static Half half(const char* at) {
      Half bytes;
      std::memcpy(&bytes, at, sizeof bytes);
      return bytes;
    }
    std::array<char, kTail> bytes_{};
    std::array<char, kTail> used_{};  ///< all ones where a byte counts
    std::size_t size_ = 0;
    std::string front_;  ///< what is before the last kTail bytes
  };

 public:
  struct Number {
    Gap before;  ///< what stands between the number before, or the line's begin, and this
    Use use = Use::value;
    Series* series = nullptr;  ///< only of a value
    std::string_view token;    ///< dies with the line
    Scalar value;
  };

  /// To learn a line that the parser has read: begin(), each of its numbers in order (views into
  /// the line), end().
  void begin(std::string_view line) {
    rest_ = line;
    size_ = 0;
  }
  void add(std::string_view token, Use use, Series* series) {
    if (size_ == numbers_.size()) numbers_.emplace_back();
    Number& number = numbers_[size_++];
    const auto gap = static_cast<std::size_t>(token.data() - rest_.data());
    number.before = Gap(rest_.substr(0, gap));
    number.use = use;
    number.series = series;
    rest_.remove_prefix(gap + token.size());
  }
  void end() {
    tail_ = Gap(rest_);
    numbers_.resize(size_);
  }

  /// True when a line like these begins at `at`: numbers() are its, and it has been compared as far
  /// as stop(). What stands there must still be looked at: the line's end, or more of it.
  /// kLinePadding bytes behind `end` can be read.
  [[nodiscard]] bool match(const char* at, const char* end) {
    if (numbers_.empty()) return false;
    for (Number& number : numbers_) {
      if (!number.before.passes(at, end)) return false;
      const char* const stop =
          number.use == Use::time ? past_number(at, end) : take_number(at, end, number.value);
      if (stop == nullptr || stop == at) return false;
      if (number.use == Use::iteration && number.value.precision != Precision::integer)
        return false;
      number.token = {at, static_cast<std::size_t>(stop - at)};
      at = stop;
    }
    stop_ = at;
    return tail_.passes(stop_, end);
  }
  [[nodiscard]] const char* stop() const { return stop_; }
  [[nodiscard]] const std::vector<Number>& numbers() const { return numbers_; }

 private:
  /// What is only hashed needs no value.
  static const char* past_number(const char* at, const char* end) {
    while (at < end) {
      const unsigned digits = leading_digits(eight_at(at));
      at += digits;
      if (digits == 8) continue;
      if (at < end && *at != '.' && *at != '-' && *at != '+' && *at != 'e' && *at != 'E') return at;
      ++at;
    }
    return end;
  }

  std::vector<Number> numbers_;
  std::size_t size_ = 0;  ///< learnt so far
  Gap tail_;
  const char* stop_ = nullptr;
  std::string_view rest_;  ///< of the line that is learnt
};

}  // namespace qualify::evidence
