#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "qualify/tracer/tracer.h"
#include "settings.hpp"

namespace quickstart {

/// Where in an iteration a record belongs.
struct Site {
  std::int64_t iteration = 0;
  std::optional<std::int64_t> microbatch;
  std::string phase;  ///< "data", "forward", "backward", "grad-reduce", "optimizer", "train"
};

/// Trace of one rank, through the tracer that any workload may link: `rank_%06d.jsonl`, one record
/// a line, in the rank's own order, in the public schema of Megatron-LM's pull request 6610. At L2
/// tensors are recorded in its "full" mode: SHA-256 over a compact, sorted JSON header (dtype,
/// mode, schema_version, shape), a NUL and the raw little-endian bytes. One object a rank; not
/// thread-safe.
class TraceWriter {
 public:
  /// Throws OutputError: not writable, the file is there already, or the plan cannot be read.
  TraceWriter(const std::filesystem::path& folder, unsigned rank, qtrace_level level = QTRACE_L2,
              const std::filesystem::path& plan = {});

  void event(const Site& site, const std::string& name, qtrace_kind kind = QTRACE_PHASE);
  void count(const Site& site, const std::string& name, std::int64_t value);
  void number(const Site& site, const std::string& name, double value);
  void tensor(const Site& site, const std::string& name, std::span<const float> values,
              const std::vector<std::size_t>& shape, qtrace_kind kind = QTRACE_TENSOR);
  void tensor(const Site& site, const std::string& name, std::span<const std::int32_t> values,
              const std::vector<std::size_t>& shape, qtrace_kind kind = QTRACE_DATA);
  /// A float32 as a tensor without dimensions, marked as a scalar.
  void scalar(const Site& site, const std::string& name, float value);
  /// What goes into, or comes out of, the sum over all ranks.
  void all_reduce(const Site& site, const std::string& name, std::span<const float> values,
                  qtrace_role role);

  /// Hands everything to the operating system. Throws OutputError.
  void flush();

 private:
  void record(const Site& site, const std::string& name, qtrace_kind kind, qtrace_dtype dtype,
              const void* data, const std::vector<std::size_t>& shape, qtrace_role role);

  std::unique_ptr<qtrace, int (*)(qtrace*)> trace_;
  std::vector<std::int64_t> shape_;
};

/// The tracer's level for a setting. Not for Trace::none.
[[nodiscard]] qtrace_level level_of(Trace trace);

/// `manifest.json` beside the traces: what was run, by how many ranks, at which level.
/// Throws OutputError.
void write_trace_manifest(const std::filesystem::path& folder, const Settings& settings,
                          const std::string& model, const std::string& data,
                          std::optional<std::int64_t> resumed_from);

}  // namespace quickstart
