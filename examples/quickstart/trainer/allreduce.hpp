#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>

#include "settings.hpp"

namespace quickstart {

/// Thrown in every rank that waits for one that will not come.
struct Cancelled {};

/// Where ranks wait for one another; may be used again and again. Thread-safe.
class Barrier {
 public:
  explicit Barrier(unsigned ranks) : ranks_(ranks) {}
  /// Returns once all ranks have called it. Throws Cancelled after cancel().
  void wait();
  /// Wakes everybody for good: a rank has failed.
  void cancel();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  unsigned ranks_;
  unsigned waiting_ = 0;
  std::uint64_t generation_ = 0;
  bool cancelled_ = false;
};

/// Sum of float32 buffers over the ranks, each rank a thread.
class AllReduce {
 public:
  virtual ~AllReduce() = default;
  /// Replaces `values` by the sum over the ranks; the same bits in every rank. Every rank calls it
  /// with its number, equally often and with equal lengths, at most `capacity`.
  /// Throws Cancelled after cancel().
  virtual void sum(unsigned rank, std::span<float> values) = 0;
  virtual void cancel() = 0;
};

/// ordered: every element is ((v0 + v1) + v2) + …, whatever the scheduler does: ranks publish their
/// buffers, then each adds its share of the buckets in rank order.
/// arrival: a rank adds its buffer to the shared sum bucket by bucket, as it gets hold of each
/// bucket's lock; which order that is, the machine decides. This is what atomic accumulation on a
/// GPU, or a reduction in arrival order in a network, does.
[[nodiscard]] std::unique_ptr<AllReduce> make_all_reduce(Reduction reduction, unsigned ranks,
                                                         std::size_t capacity);

}  // namespace quickstart
