#include "qualify/evidence/values.hpp"

#include <algorithm>
#include <stdexcept>

#include "block.hpp"
#include "spool.hpp"

namespace qualify::evidence {

namespace {

/// Values in a block. A cursor over one holds 24 bytes of each decoded.
constexpr std::size_t kBlock = 4096;

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
