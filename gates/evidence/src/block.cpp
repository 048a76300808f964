#include "block.hpp"

#include <array>
#include <cstring>
#include <limits>

#include "spool.hpp"

namespace qualify::evidence {

namespace {

template <class T>
void put(std::string& to, const T* from, std::size_t count) {
  const std::size_t at = to.size();
  to.resize(at + count * sizeof(T));
  std::memcpy(to.data() + at, from, count * sizeof(T));
}

template <class T>
const char* take(const char* from, T* to, std::size_t count) {
  std::memcpy(to, from, count * sizeof(T));
  return from + count * sizeof(T);
}

enum Flag : std::uint8_t {
  equal_steps = 1,
  one_kind = 2,
  bits_in_steps = 4,
  bits_narrow = 8,
  few_kinds = 16,
};

using Item = OpenBlock::Item;

/// The step between neighbours when it is the same for all: 0 of a constant.
template <class T>
std::optional<T> common_step(const std::vector<Item>& items, T Item::*member) {
  const auto step =
      items.size() > 1 ? static_cast<T>(items[1].*member - items[0].*member) : static_cast<T>(0);
  for (std::size_t i = 2; i < items.size(); ++i) {
    if (static_cast<T>(items[i].*member - items[i - 1].*member) != step) return std::nullopt;
  }
  return step;
}

/// One member of all items, one after the other.
template <class To, class T>
void put_all(std::string& bytes, const std::vector<Item>& items, T Item::*member) {
  std::size_t at = bytes.size();
  bytes.resize(at + items.size() * sizeof(To));
  for (const Item& item : items) {
    const auto value = static_cast<To>(item.*member);
    std::memcpy(bytes.data() + at, &value, sizeof value);
    at += sizeof value;
  }
}

template <class From, class T>
const char* take_all(const char* at, std::vector<Item>& items, T Item::*member) {
  for (Item& item : items) {
    From value{};
    at = take(at, &value, 1);
    item.*member = value;
  }
  return at;
}

/// Kinds by a byte each: its digits vary from value to value where a float64 is printed in its
/// shortest form, but only by two or three.
struct FewKinds {
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};  // no kind has so many bits
  std::array<std::uint32_t, 256> words;
  FewKinds() { words.fill(kNone); }

  /// Appends the kinds that there are, and each item's. False, and no change, when two kinds hash
  /// to one byte.
  bool put(std::string& bytes, const std::vector<Item>& items) {
    for (const Item& item : items) {
      std::uint32_t& word = words[place_of(item.word)];
      if (word != item.word && word != kNone) return false;
      word = item.word;
    }
    const auto count = static_cast<std::uint16_t>(
        words.size() - static_cast<std::size_t>(std::count(words.begin(), words.end(), kNone)));
    evidence::put(bytes, &count, 1);
    for (const std::uint32_t& word : words) {
      if (word != kNone) evidence::put(bytes, &word, 1);
    }
    const std::size_t at = bytes.size();
    bytes.resize(at + items.size());
    char* to = bytes.data() + at;
    for (const Item& item : items) *to++ = static_cast<char>(place_of(item.word));
    return true;
  }
  const char* take(const char* at, std::vector<Item>& items) {
    std::uint16_t count = 0;
    at = evidence::take(at, &count, 1);
    for (std::uint16_t i = 0; i < count; ++i) {
      std::uint32_t word = 0;
      at = evidence::take(at, &word, 1);
      words[place_of(word)] = word;
    }
    for (Item& item : items) item.word = words[static_cast<unsigned char>(*at++)];
    return at;
  }

 private:
  static std::uint8_t place_of(std::uint32_t word) {
    return static_cast<std::uint8_t>(word * 0x9E3779B1U >> 24U);
  }
};

std::string pack(const OpenBlock& open) {
  const std::vector<Item>& items = open.items;
  const auto step = common_step(items, &Item::iteration);
  const auto climb = common_step(items, &Item::bits);
  std::uint32_t other_kinds = 0;
  std::uint64_t all_bits = 0;
  for (const Item& item : items) {
    other_kinds |= item.word ^ items.front().word;
    all_bits |= item.bits;
  }
  const bool one = other_kinds == 0;
  const bool narrow = all_bits <= std::numeric_limits<std::uint32_t>::max();
  std::string bytes;
  bytes.reserve(64 + items.size() * ((step ? 0 : 8) + (one ? 0 : 4) +
                                     (climb    ? 0
                                      : narrow ? 4
                                               : 8)));
  bytes.push_back(static_cast<char>((step ? equal_steps : 0) | (one ? one_kind : 0) |
                                    (climb ? bits_in_steps : 0) | (narrow ? bits_narrow : 0)));
  if (step)
    put(bytes, &*step, 1);
  else
    put_all<std::int64_t>(bytes, items, &Item::iteration);
  if (one) {
    put(bytes, &items.front().word, 1);
  } else if (FewKinds().put(bytes, items)) {
    bytes.front() = static_cast<char>(bytes.front() | few_kinds);
  } else {
    put_all<std::uint32_t>(bytes, items, &Item::word);
  }
  if (climb) {
    put(bytes, &items.front().bits, 1);
    put(bytes, &*climb, 1);
  } else if (narrow) {
    put_all<std::uint32_t>(bytes, items, &Item::bits);
  } else {
    put_all<std::uint64_t>(bytes, items, &Item::bits);
  }
  const auto texts = static_cast<std::uint32_t>(open.texts.size());
  put(bytes, &texts, 1);
  for (const std::string& text : open.texts) {
    const auto size = static_cast<std::uint32_t>(text.size());
    put(bytes, &size, 1);
    bytes += text;
  }
  return bytes;
}

void settle_words(const Block& block, OpenBlock& open) {
  if (block.settled == Settled::no || !block.has_printed) return;
  const std::uint32_t float64 = packed(Scalar{});
  for (auto& [iteration, bits, word] : open.items) {
    if (precision_of(word) != Precision::printed || !is_finite(bits)) continue;
    if (block.settled == Settled::float64) {
      word = float64;
    } else if (notation_of(word) == Notation::fixed && -last_digit_of(word) < block.decimals) {
      Scalar scalar;
      scalar.precision = Precision::printed;
      scalar.digits = digits_of(word) + block.decimals + last_digit_of(word);
      scalar.last_digit = -block.decimals;
      word = packed(scalar);
    }
  }
}

}  // namespace

void unpack(const Block& block, const Spool* spool, OpenBlock& open) {
  std::string read;
  const std::string* bytes = &block.bytes;
  if (block.place) {
    read.resize(block.packed_size);
    spool->get(*block.place, read);
    bytes = &read;
  }
  const std::size_t count = block.count;
  const char* at = bytes->data();
  std::uint8_t flags = 0;
  at = take(at, &flags, 1);
  std::vector<Item>& items = open.items;
  items.resize(count);
  open.texts.clear();
  if ((flags & equal_steps) != 0) {
    std::int64_t step = 0;
    at = take(at, &step, 1);
    std::int64_t iteration = block.first;
    for (Item& item : items) {
      item.iteration = iteration;
      iteration += step;
    }
  } else {
    at = take_all<std::int64_t>(at, items, &Item::iteration);
  }
  if ((flags & one_kind) != 0) {
    std::uint32_t word = 0;
    at = take(at, &word, 1);
    for (Item& item : items) item.word = word;
  } else if ((flags & few_kinds) != 0) {
    at = FewKinds().take(at, items);
  } else {
    at = take_all<std::uint32_t>(at, items, &Item::word);
  }
  if ((flags & bits_in_steps) != 0) {
    std::uint64_t bits = 0;
    std::uint64_t climb = 0;
    at = take(at, &bits, 1);
    at = take(at, &climb, 1);
    for (Item& item : items) {
      item.bits = bits;
      bits += climb;
    }
  } else if ((flags & bits_narrow) != 0) {
    at = take_all<std::uint32_t>(at, items, &Item::bits);
  } else {
    at = take_all<std::uint64_t>(at, items, &Item::bits);
  }
  std::uint32_t texts = 0;
  at = take(at, &texts, 1);
  for (std::uint32_t i = 0; i < texts; ++i) {
    std::uint32_t size = 0;
    at = take(at, &size, 1);
    open.texts.emplace_back(at, size);
    at += size;
  }
  settle_words(block, open);
}

Block sealed(const OpenBlock& open, Spool* spool) {
  Block block;
  block.first = open.items.front().iteration;
  block.last = open.items.back().iteration;
  block.count = static_cast<std::uint32_t>(open.size());
  for (const Item& item : open.items) {
    const Precision precision = precision_of(item.word);
    const bool printed = precision == Precision::printed;
    if (printed && is_finite(item.bits))
      block.has_printed = true;
    else if (printed || precision == Precision::weak_digest)
      block.has_inexact = true;
  }
  block.bytes = pack(open);
  block.packed_size = static_cast<std::uint32_t>(block.bytes.size());
  if (spool != nullptr) block.place = spool->put(block.bytes);
  if (block.place)
    std::string().swap(block.bytes);
  else
    block.bytes.shrink_to_fit();
  return block;
}

}  // namespace qualify::evidence
