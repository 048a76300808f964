#include "allreduce.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace quickstart {
namespace {

/// Floats a bucket: small enough that ranks meet in the middle of a buffer, large enough that a
/// lock costs little beside the additions it covers.
constexpr std::size_t kBucket = 2048;

template <class Visit>
void each_bucket(std::size_t length, Visit visit) {
  for (std::size_t bucket = 0, from = 0; from < length; ++bucket, from += kBucket) {
    visit(bucket, from, std::min(kBucket, length - from));
  }
}

void add(std::span<float> to, std::span<const float> from) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] += from[i];
  }
}

class OrderedAllReduce final : public AllReduce {
 public:
  OrderedAllReduce(unsigned ranks, std::size_t capacity)
      : ranks_(ranks), barrier_(ranks), contributions_(ranks), sum_(capacity) {}

  void sum(unsigned rank, std::span<float> values) override {
    contributions_[rank] = values;
    barrier_.wait();
    each_bucket(values.size(), [&](std::size_t bucket, std::size_t from, std::size_t count) {
      if (bucket % ranks_ != rank) {
        return;
      }
      const auto to = std::span(sum_).subspan(from, count);
      const auto first = contributions_[0].subspan(from, count);
      std::copy(first.begin(), first.end(), to.begin());
      for (unsigned other = 1; other < ranks_; ++other) {
        add(to, contributions_[other].subspan(from, count));
      }
    });
    // Nobody reads contributions, and nobody writes the sum, between this barrier and the next
    // call's first one: two barriers a call are enough.
    barrier_.wait();
    std::copy_n(sum_.begin(), values.size(), values.begin());
  }

  void cancel() override { barrier_.cancel(); }

 private:
  unsigned ranks_;
  Barrier barrier_;
  std::vector<std::span<const float>> contributions_;
  std::vector<float> sum_;
};

class ArrivalAllReduce final : public AllReduce {
 public:
  ArrivalAllReduce(unsigned ranks, std::size_t capacity)
      : ranks_(ranks), barrier_(ranks), calls_(ranks) {
    for (Side& side : sides_) {
      side.sum.resize(capacity);
      side.buckets = std::vector<Bucket>((capacity + kBucket - 1) / kBucket);
    }
  }

  void sum(unsigned rank, std::span<float> values) override {
    // A rank is at most one call ahead of another, so two sides keep its additions apart from a
    // sum that a slower rank still reads.
    Side& side = sides_[calls_[rank]++ % sides_.size()];
    each_bucket(values.size(), [&](std::size_t index, std::size_t from, std::size_t count) {
      Bucket& bucket = side.buckets[index];
      const auto to = std::span(side.sum).subspan(from, count);
      const auto mine = values.subspan(from, count);
      const std::lock_guard lock(bucket.mutex);
      if (bucket.arrived == 0) {
        std::copy(mine.begin(), mine.end(), to.begin());
      } else {
        add(to, mine);
      }
      bucket.arrived = (bucket.arrived + 1) % ranks_;
    });
    barrier_.wait();
    std::copy_n(side.sum.begin(), values.size(), values.begin());
  }

  void cancel() override { barrier_.cancel(); }

 private:
  struct Bucket {
    std::mutex mutex;
    unsigned arrived = 0;
  };
  struct Side {
    std::vector<float> sum;
    std::vector<Bucket> buckets;
  };

  unsigned ranks_;
  Barrier barrier_;
  std::array<Side, 2> sides_;
  std::vector<std::size_t> calls_;  ///< by rank; each rank touches its own alone
};

}  // namespace

void Barrier::wait() {
  std::unique_lock lock(mutex_);
  if (cancelled_) {
    throw Cancelled{};
  }
  if (++waiting_ == ranks_) {
    waiting_ = 0;
    ++generation_;
    lock.unlock();
    changed_.notify_all();
    return;
  }
  const std::uint64_t mine = generation_;
  changed_.wait(lock, [&] { return generation_ != mine || cancelled_; });
  if (generation_ == mine) {
    throw Cancelled{};
  }
}

void Barrier::cancel() {
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
}

std::unique_ptr<AllReduce> make_all_reduce(Reduction reduction, unsigned ranks,
                                           std::size_t capacity) {
  if (reduction == Reduction::ordered) {
    return std::make_unique<OrderedAllReduce>(ranks, capacity);
  }
  return std::make_unique<ArrivalAllReduce>(ranks, capacity);
}

}  // namespace quickstart
