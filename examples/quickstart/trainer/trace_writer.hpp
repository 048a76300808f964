#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace quickstart {

/// Where in an iteration a record belongs.
struct Site {
  std::int64_t iteration = 0;
  std::optional<std::int64_t> microbatch;
  std::string phase;  ///< "data", "forward", "backward", "grad-reduce", "optimizer", "train"
};

/// Trace of one rank: `rank_%06d.jsonl`, one record a line, in the rank's own order. The schema is
/// the public one of Megatron-LM's pull request 6610, version 1; tensors are recorded in its "full"
/// mode: SHA-256 over a compact, sorted JSON header (dtype, mode, schema_version, shape), a NUL and
/// the raw little-endian bytes. One object a rank; not thread-safe.
class TraceWriter {
 public:
  /// Throws OutputError: not writable, or the file is there already.
  TraceWriter(const std::filesystem::path& folder, unsigned rank);

  /// `fields`: an object of finite values.
  void event(const Site& site, const std::string& name, const nlohmann::json& fields);
  void tensor(const Site& site, const std::string& name, std::span<const float> values,
              const std::vector<std::size_t>& shape);
  void tensor(const Site& site, const std::string& name, std::span<const std::int32_t> values,
              const std::vector<std::size_t>& shape);
  /// A float32 as a tensor without dimensions, marked as a scalar.
  void scalar(const Site& site, const std::string& name, float value);

  /// Hands everything to the operating system. Throws OutputError.
  void flush();

 private:
  using Key = std::tuple<std::int64_t, std::string, std::string, std::string>;

  nlohmann::json record(const Site& site, const std::string& name, const char* kind);
  void tensor_record(const Site& site, const std::string& name, const char* dtype, bool all_finite,
                     std::span<const std::byte> raw, const std::vector<std::size_t>& shape,
                     const nlohmann::json& metadata);
  void write(const nlohmann::json& record);

  std::filesystem::path file_;
  std::ofstream stream_;
  unsigned rank_;
  std::int64_t sequence_ = 0;
  std::int64_t iteration_ = 0;               ///< that occurrences_ counts
  std::map<Key, std::int64_t> occurrences_;  ///< (microbatch, phase, kind, name) -> records so far
};

}  // namespace quickstart
