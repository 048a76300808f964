#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/spec/bundle_spec.hpp"

namespace qualify::run {

/// Tells from what a live workload writes whether it still makes progress: a new iteration number
/// in its log, or growth of a metrics or trace output. A log that only repeats itself is none.
/// Reads at most 4 MiB a look, however much was written. Not thread-safe.
class Heartbeat {
 public:
  /// `patience` zero: never hung. Of an attempt's folder, and the outputs that its bundle declares.
  Heartbeat(std::filesystem::path folder, std::vector<spec::Output> outputs, Duration patience);

  /// Why the workload counts as hung at `now`; nothing while it does not. The first call starts the
  /// time; a clock that is put back starts it again.
  [[nodiscard]] std::optional<std::string> hung(Time now);

 private:
  struct Signs {
    std::int64_t iteration = 0;  ///< last one in the log
    std::uintmax_t bytes = 0;    ///< of metrics and traces
    bool operator==(const Signs&) const = default;
  };
  [[nodiscard]] Signs look();
  [[nodiscard]] std::int64_t iteration_in_log();
  [[nodiscard]] std::uintmax_t output_bytes() const;

  std::filesystem::path folder_;
  std::vector<spec::Output> outputs_;
  Duration patience_;
  std::uintmax_t log_read_ = 0;
  Signs last_;
  std::optional<Time> progress_;  ///< when `last_` was new
  std::optional<Time> looked_;
};

}  // namespace qualify::run
