#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

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
  enum class Use : std::uint8_t { iteration, time, value };
  struct Number {
    std::string before;  ///< what stands between the number before, or the line's begin, and this
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
    number.before = rest_.substr(0, gap);
    number.use = use;
    number.series = series;
    rest_.remove_prefix(gap + token.size());
  }
  void end() {
    tail_ = rest_;
    numbers_.resize(size_);
  }

  /// True: numbers() are those of `line`.
  bool match(std::string_view line) {
    if (numbers_.empty()) return false;
    const char* at = line.data();
    const char* const end = at + line.size();
    for (Number& number : numbers_) {
      if (!passes(at, end, number.before)) return false;
      const char* const stop =
          number.use == Use::time ? past_number(at, end) : take_number(at, end, number.value);
      if (stop == nullptr || stop == at) return false;
      if (number.use == Use::iteration && number.value.precision != Precision::integer)
        return false;
      number.token = {at, static_cast<std::size_t>(stop - at)};
      at = stop;
    }
    return passes(at, end, tail_) && at == end;
  }
  [[nodiscard]] const std::vector<Number>& numbers() const { return numbers_; }

 private:
  /// Moves past `text`. It is short: a call of memcmp would cost more than the comparing.
  static bool passes(const char*& at, const char* end, const std::string& text) {
    constexpr std::size_t kWord = sizeof(std::uint64_t);
    const char* const wanted = text.data();
    const std::size_t size = text.size();
    if (static_cast<std::size_t>(end - at) < size) return false;
    std::size_t done = 0;
    if (size < kWord) {
      while (done < size && at[done] == wanted[done]) ++done;
      if (done < size) return false;
    } else {
      for (; done + 2 * kWord < size; done += kWord) {
        if (eight_at(at + done) != eight_at(wanted + done)) return false;
      }
      // The last two words, which may overlap.
      const std::size_t last = size - kWord;
      if (((eight_at(at + done) ^ eight_at(wanted + done)) |
           (eight_at(at + last) ^ eight_at(wanted + last))) != 0) {
        return false;
      }
    }
    at += size;
    return true;
  }
  /// What is only hashed needs no value.
  static const char* past_number(const char* at, const char* end) {
    static constexpr auto kInNumbers = [] {
      std::array<bool, 256> in{};
      for (const unsigned char c : std::string_view("0123456789.+-eE")) in[c] = true;
      return in;
    }();
    while (at != end && kInNumbers[static_cast<unsigned char>(*at)]) ++at;
    return at;
  }
  std::vector<Number> numbers_;
  std::size_t size_ = 0;  ///< learnt so far
  std::string tail_;
  std::string_view rest_;  ///< of the line that is learnt
};

}  // namespace qualify::evidence
