#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/traces/faults.hpp"
#include "qualify/traces/manifest.hpp"
#include "qualify/traces/roots.hpp"
#include "qualify/traces/summary.hpp"

namespace qualify::traces {

/// One run's traces, sealed or raw, read no further than what is asked for. Sealed ones open by
/// reading roots.bin alone; raw ones are read through once, in parallel, into summaries.
/// Thread rule: const members from any thread.
class TraceSet {
 public:
  struct Options {
    unsigned jobs = 0;  ///< threads; 0 = as many as there are processors
    std::function<void(std::size_t done, std::size_t of)> progress;  ///< ranks; any thread
  };
  /// Errors: not_found, io, invalid_input, integrity (roots), refused (sealed while still running:
  /// no roots yet).
  [[nodiscard]] static Result<TraceSet> open(const std::filesystem::path& folder,
                                             const Options& options);
  /// Two runs, of whose roots those that are the same, byte for byte, are read once. Errors: those
  /// of open().
  [[nodiscard]] static Result<std::pair<TraceSet, TraceSet>> open_both(
      const std::filesystem::path& a, const std::filesystem::path& b, const Options& options);
  TraceSet(TraceSet&&) noexcept;
  TraceSet& operator=(TraceSet&&) noexcept;
  ~TraceSet();

  [[nodiscard]] const std::filesystem::path& folder() const;
  [[nodiscard]] bool sealed() const;
  [[nodiscard]] const Roots& roots() const;
  /// Reads it when first asked. Errors: io, integrity (not the one that the roots name).
  [[nodiscard]] Result<Manifest> manifest() const;
  /// Why the set is incomplete; empty where it is complete. Errors: io, integrity.
  [[nodiscard]] Result<Faults> faults() const;
  /// "trace-pr6610", "trace-fork". Errors: those of opening a rank's file.
  [[nodiscard]] Result<std::string> schema() const;

  /// One iteration of one rank, and its rows, which were hashed again and have the summary's and
  /// the roots' hash. Empty where the rank has no such iteration. Errors: not_found, io, integrity
  /// (cut off, damaged, a summary that lies).
  struct Iteration {
    IterationSummary summary;
    std::vector<std::string> names;  ///< of its nodes
    Events events;
  };
  [[nodiscard]] Result<Iteration> read(std::size_t rank_index, std::int64_t iteration,
                                       Strings& strings) const;
  /// The rank's nodes, without rows. Errors: those of read().
  [[nodiscard]] Result<RankSummary> summary(std::size_t rank_index) const;

  /// Sealed files of a rank in the order of their windows; empty for raw traces.
  [[nodiscard]] std::vector<std::filesystem::path> files(std::size_t rank_index) const;

 private:
  struct State;
  explicit TraceSet(std::unique_ptr<State> state);
  /// `roots`: those of the folder, not_found where it is not sealed.
  static Result<TraceSet> open(const std::filesystem::path& folder, Result<Roots> roots,
                               const Options& options);
  std::unique_ptr<State> state_;
};

}  // namespace qualify::traces
