#include "qualify/evidence/values.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "spool.hpp"

namespace qualify::evidence {

namespace {

/// Values in a block. A cursor over one holds 24 bytes of each decoded.
constexpr std::size_t kBlock = 4096;

enum class Settled : std::uint8_t { no, float64, decimals };

/// Everything of a scalar but its bits, in one word.
std::uint32_t packed(const Scalar& scalar) {
  const auto digits = static_cast<std::uint32_t>(std::clamp(scalar.digits, 0, 255));
  const auto last = static_cast<std::uint16_t>(std::clamp(scalar.last_digit, -32000, 32000));
  return static_cast<std::uint32_t>(scalar.precision) |
         static_cast<std::uint32_t>(scalar.notation) << 3U | digits << 5U |
         static_cast<std::uint32_t>(last) << 13U;
}

Precision precision_of(std::uint32_t word) {
  return static_cast<Precision>(word & 7U);
}
Notation notation_of(std::uint32_t word) {
  return static_cast<Notation>(word >> 3U & 3U);
}
int digits_of(std::uint32_t word) {
  return static_cast<int>(word >> 5U & 255U);
}
int last_digit_of(std::uint32_t word) {
  return static_cast<std::int16_t>(word >> 13U & 0xFFFFU);
}
bool is_digest(Precision precision) {
  return precision == Precision::sha256 || precision == Precision::weak_digest;
}
bool is_finite(std::uint64_t bits) {
  constexpr std::uint64_t exponent = 0x7FF0000000000000U;
  return (bits & exponent) != exponent;
}

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

}  // namespace

struct OpenBlock {
  struct Item {
    std::int64_t iteration = 0;
    std::uint64_t bits = 0;  ///< of a digest: its place in `texts`
    std::uint32_t word = 0;
  };
  std::vector<Item> items;
  std::vector<std::string> texts;

  [[nodiscard]] std::size_t size() const { return items.size(); }
  Item item(std::int64_t iteration, const Scalar& scalar) {
    const bool text = is_digest(scalar.precision);
    return {iteration, text ? keep(scalar.text) : scalar.bits, packed(scalar)};
  }
  /// Not within append(), of which nearly no value is a digest.
  [[gnu::noinline]] std::uint64_t keep(const std::string& text) {
    texts.push_back(text);
    return texts.size() - 1;
  }
  void append(std::int64_t iteration, const Scalar& scalar) {
    items.push_back(item(iteration, scalar));
  }
  void insert(std::size_t at, std::int64_t iteration, const Scalar& scalar) {
    items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), item(iteration, scalar));
  }
  void erase(std::size_t at) { items.erase(items.begin() + static_cast<std::ptrdiff_t>(at)); }
  void copy(std::size_t at, Scalar& to) const {
    const Item& from = items[at];
    to.precision = precision_of(from.word);
    to.notation = notation_of(from.word);
    to.digits = digits_of(from.word);
    to.last_digit = last_digit_of(from.word);
    if (is_digest(to.precision)) {
      to.bits = 0;
      to.text = texts[from.bits];
    } else {
      to.bits = from.bits;
      if (!to.text.empty()) to.text.clear();
    }
  }
  [[nodiscard]] std::size_t lower_bound(std::int64_t iteration) const {
    const auto found = std::lower_bound(
        items.begin(), items.end(), iteration,
        [](const Item& item, std::int64_t wanted) { return item.iteration < wanted; });
    return static_cast<std::size_t>(found - items.begin());
  }
  /// The upper half.
  OpenBlock split() {
    OpenBlock upper;
    const std::size_t half = size() / 2;
    Scalar scalar;
    for (std::size_t i = half; i < size(); ++i) {
      copy(i, scalar);
      upper.append(items[i].iteration, scalar);
    }
    items.resize(half);
    return upper;
  }
};

struct Block {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::uint32_t count = 0;
  std::uint32_t packed_size = 0;
  std::string bytes;                   ///< when not spooled
  std::optional<std::uint64_t> place;  ///< in the spool
  int decimals = 0;                    ///< for Settled::decimals
  Settled settled = Settled::no;
  bool has_printed = false;  ///< finite ones
  bool has_inexact = false;  ///< others that are not exact: weak digests, a printed NaN
};

namespace {

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

}  // namespace

Values::Values() = default;
Values::Values(std::shared_ptr<Spool> spool) : spool_(std::move(spool)) {}
Values::Values(Values&&) noexcept = default;
Values& Values::operator=(Values&&) noexcept = default;
Values::~Values() = default;

Values::Values(const Values& other)
    : blocks_(other.blocks_),
      open_(other.open_ ? std::make_unique<OpenBlock>(*other.open_) : nullptr),
      open_index_(other.open_index_),
      spool_(other.spool_),
      size_(other.size_),
      most_digits_(other.most_digits_),
      most_decimals_(other.most_decimals_) {}

Values& Values::operator=(const Values& other) {
  if (this != &other) *this = Values(other);
  return *this;
}

std::int64_t Values::first_iteration() const {
  return open_ && open_index_ == 0 ? open_->items.front().iteration : blocks_.front().first;
}

std::int64_t Values::last_iteration() const {
  return open_ && open_index_ + 1 == blocks_.size() ? open_->items.back().iteration
                                                    : blocks_.back().last;
}

bool Values::all_exact() const {
  if (size_ == 0) return false;
  const auto exact = [](const Block& block) {
    return !block.has_inexact && (!block.has_printed || block.settled == Settled::float64);
  };
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (open_ && i == open_index_ ? !exact(sealed(*open_, nullptr)) : !exact(blocks_[i]))
      return false;
  }
  return true;
}

void Values::seal() {
  room_ = 0;
  if (!open_) return;
  blocks_[open_index_] = sealed(*open_, spool_.get());
  open_.reset();
}

void Values::open(std::size_t block) {
  if (open_ && open_index_ == block) return;
  seal();
  open_ = std::make_unique<OpenBlock>();
  unpack(blocks_[block], spool_.get(), *open_);
  open_index_ = block;
}

void Values::append(std::int64_t iteration, const Scalar& scalar) {
  if (!open_ || open_index_ + 1 != blocks_.size() || open_->size() >= kBlock) {
    seal();
    if (!blocks_.empty() && blocks_.back().count < kBlock &&
        blocks_.back().settled == Settled::no) {
      open(blocks_.size() - 1);
    } else {
      open_ = std::make_unique<OpenBlock>();
      open_->items.reserve(std::min(size_, kBlock));
      open_index_ = blocks_.size();
      blocks_.emplace_back();
    }
  }
  open_->append(iteration, scalar);
  ++size_;
  room_ = kBlock - open_->size();
}

Values::Place Values::place_of(std::int64_t iteration) {
  room_ = 0;
  std::size_t low = 0;
  std::size_t high = blocks_.size() - 1;  // the last block takes whatever lies beyond
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    const std::int64_t last =
        open_ && open_index_ == middle ? open_->items.back().iteration : blocks_[middle].last;
    if (last < iteration)
      low = middle + 1;
    else
      high = middle;
  }
  open(low);
  const std::size_t at = open_->lower_bound(iteration);
  return {low, at, at < open_->size() && open_->items[at].iteration == iteration};
}

std::optional<Scalar> Values::find(std::int64_t iteration) const {
  if (size_ == 0) return std::nullopt;
  for (std::size_t low = 0, high = blocks_.size(); low < high;) {
    const std::size_t middle = (low + high) / 2;
    const bool is_open = open_ && open_index_ == middle;
    const Block& block = blocks_[middle];
    if ((is_open ? open_->items.back().iteration : block.last) < iteration) {
      low = middle + 1;
    } else if ((is_open ? open_->items.front().iteration : block.first) > iteration) {
      high = middle;
    } else {
      OpenBlock decoded;
      if (!is_open) unpack(block, spool_.get(), decoded);
      const OpenBlock& found = is_open ? *open_ : decoded;
      const std::size_t at = found.lower_bound(iteration);
      if (at >= found.size() || found.items[at].iteration != iteration) return std::nullopt;
      Scalar scalar;
      found.copy(at, scalar);
      return scalar;
    }
  }
  return std::nullopt;
}

Scalar Values::at(std::int64_t iteration) const {
  auto found = find(iteration);
  if (!found) throw std::out_of_range("no value at iteration " + std::to_string(iteration));
  return std::move(*found);
}

/// What settle() goes by.
inline void Values::note(const Scalar& scalar) {
  if (scalar.precision != Precision::printed || !is_finite(scalar.bits)) return;
  most_digits_ = std::max(most_digits_, scalar.digits);
  if (scalar.notation == Notation::fixed)
    most_decimals_ = std::max(most_decimals_, -scalar.last_digit);
}

bool Values::append_later(std::int64_t iteration, const Scalar& scalar) {
  if (room_ == 0) return append_with_room(iteration, scalar);
  if (open_->items.back().iteration >= iteration) return false;
  note(scalar);
  open_->append(iteration, scalar);
  ++size_;
  --room_;
  return true;
}

/// Where the block that takes it must first be made or opened.
bool Values::append_with_room(std::int64_t iteration, const Scalar& scalar) {
  if (size_ > 0 && last_iteration() >= iteration) return false;
  note(scalar);
  append(iteration, scalar);
  return true;
}

bool Values::insert(std::int64_t iteration, const Scalar& scalar, Scalar* found) {
  if (append_later(iteration, scalar)) return true;
  note(scalar);
  const Place place = place_of(iteration);
  if (place.there) {
    if (found != nullptr) open_->copy(place.at, *found);
    return false;
  }
  open_->insert(place.at, iteration, scalar);
  ++size_;
  if (open_->size() >= 2 * kBlock) {
    const OpenBlock upper = open_->split();
    blocks_.insert(blocks_.begin() + static_cast<std::ptrdiff_t>(open_index_) + 1,
                   sealed(upper, spool_.get()));
  }
  return true;
}

void Values::insert_or_assign(std::int64_t iteration, const Scalar& scalar) {
  if (insert(iteration, scalar)) return;
  const Place place = place_of(iteration);
  open_->items[place.at] = open_->item(iteration, scalar);
}

void Values::erase(std::int64_t iteration) {
  if (size_ == 0) return;
  const Place place = place_of(iteration);
  if (!place.there) return;
  open_->erase(place.at);
  --size_;
  if (open_->size() > 0) return;
  open_.reset();
  blocks_.erase(blocks_.begin() + static_cast<std::ptrdiff_t>(place.block));
}

void Values::settle() {
  seal();
  for (Block& block : blocks_) {
    if (block.settled != Settled::no) continue;
    block.settled = most_digits_ >= 16 ? Settled::float64 : Settled::decimals;
    block.decimals = most_decimals_;
  }
  most_digits_ = most_decimals_ = 0;
}

Values::const_iterator Values::begin() const {
  return {this, 0};
}
Values::const_iterator Values::end() const {
  return {this, blocks_.size()};
}

Values::const_iterator::const_iterator() = default;
Values::const_iterator::const_iterator(const_iterator&&) noexcept = default;
Values::const_iterator& Values::const_iterator::operator=(const_iterator&&) noexcept = default;
Values::const_iterator::~const_iterator() = default;

Values::const_iterator::const_iterator(const Values* values, std::size_t block)
    : values_(values), block_(block) {
  load();
}

Values::const_iterator::const_iterator(const const_iterator& other)
    : values_(other.values_),
      block_(other.block_),
      at_(other.at_),
      decoded_(other.decoded_ ? std::make_unique<OpenBlock>(*other.decoded_) : nullptr),
      current_(other.current_) {}

Values::const_iterator& Values::const_iterator::operator=(const const_iterator& other) {
  if (this != &other) *this = const_iterator(other);
  return *this;
}

void Values::const_iterator::load() {
  if (block_ >= values_->blocks_.size()) {
    decoded_.reset();
    return;
  }
  if (values_->open_ && values_->open_index_ == block_) {
    decoded_.reset();
  } else {
    if (!decoded_) decoded_ = std::make_unique<OpenBlock>();
    unpack(values_->blocks_[block_], values_->spool_.get(), *decoded_);
  }
  const OpenBlock& open = decoded_ ? *decoded_ : *values_->open_;
  current_.first = open.items[at_].iteration;
  open.copy(at_, current_.second);
}

Values::const_iterator& Values::const_iterator::operator++() {
  const OpenBlock& open = decoded_ ? *decoded_ : *values_->open_;
  if (++at_ == open.size()) {
    ++block_;
    at_ = 0;
    load();
  } else {
    current_.first = open.items[at_].iteration;
    open.copy(at_, current_.second);
  }
  return *this;
}

}  // namespace qualify::evidence
