#include "trace_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "errors.hpp"
#include "sha256.hpp"

namespace quickstart {
namespace {

constexpr int kSchemaVersion = 1;

/// Row-major, in elements.
std::vector<std::size_t> strides_of(const std::vector<std::size_t>& shape) {
  std::vector<std::size_t> strides(shape.size());
  std::size_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

}  // namespace

TraceWriter::TraceWriter(const std::filesystem::path& folder, unsigned rank)
    : file_(folder / fmt::format("rank_{:06}.jsonl", rank)), rank_(rank) {
  if (std::filesystem::exists(file_)) {
    throw OutputError("the trace " + file_.string() + " is there already");
  }
  stream_.open(file_, std::ios::binary);
  if (!stream_) {
    throw OutputError("the trace " + file_.string() + " cannot be written");
  }
}

nlohmann::json TraceWriter::record(const Site& site, const std::string& name, const char* kind) {
  if (site.iteration != iteration_) {  // the iteration is part of the key
    iteration_ = site.iteration;
    occurrences_.clear();
  }
  const std::int64_t microbatch = site.microbatch.value_or(-1);
  return {{"event", kind},
          {"iteration", site.iteration},
          {"microbatch", site.microbatch ? nlohmann::json(*site.microbatch) : nlohmann::json()},
          {"name", name},
          {"occurrence", occurrences_[Key(microbatch, site.phase, kind, name)]++},
          {"phase", site.phase},
          {"rank", rank_},
          {"schema_version", kSchemaVersion},
          {"sequence", sequence_++}};
}

// Objects are sorted by key, and dump() without indentation is the compact form.
void TraceWriter::write(const nlohmann::json& record) {
  stream_ << record.dump() << '\n';
}

void TraceWriter::event(const Site& site, const std::string& name, const nlohmann::json& fields) {
  nlohmann::json r = record(site, name, "event");
  r["fields"] = fields;
  write(r);
}

void TraceWriter::tensor_record(const Site& site, const std::string& name, const char* dtype,
                                bool all_finite, std::span<const std::byte> raw,
                                const std::vector<std::size_t>& shape,
                                const nlohmann::json& metadata) {
  std::size_t elements = 1;
  for (const std::size_t extent : shape) {
    elements *= extent;
  }
  const std::string header = nlohmann::json{
      {"dtype", dtype},
      {"mode", "full"},
      {"schema_version", kSchemaVersion},
      {"shape", shape}}.dump();
  constexpr std::byte kNul{0};
  nlohmann::json r = record(site, name, "tensor");
  r["metadata"] = metadata;
  r["tensor"] = {
      {"all_finite", all_finite},
      {"captured_numel", elements},
      {"device_type", "cpu"},
      {"dtype", dtype},
      {"exact_value_certificate", true},
      {"layout", "strided"},
      {"mode", "full"},
      {"numel", elements},
      {"requires_grad", false},
      {"sha256", sha256_hex({std::as_bytes(std::span(header)), std::span(&kNul, 1), raw})},
      {"shape", shape},
      {"stride", strides_of(shape)},
      {"value_observed", true}};
  write(r);
}

void TraceWriter::tensor(const Site& site, const std::string& name, std::span<const float> values,
                         const std::vector<std::size_t>& shape) {
  const bool finite =
      std::all_of(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  tensor_record(site, name, "float32", finite, std::as_bytes(values), shape,
                nlohmann::json::object());
}

void TraceWriter::tensor(const Site& site, const std::string& name,
                         std::span<const std::int32_t> values,
                         const std::vector<std::size_t>& shape) {
  tensor_record(site, name, "int32", true, std::as_bytes(values), shape, nlohmann::json::object());
}

void TraceWriter::scalar(const Site& site, const std::string& name, float value) {
  tensor_record(site, name, "float32", std::isfinite(value), std::as_bytes(std::span(&value, 1)),
                {}, {{"semantic_type", "scalar"}});
}

void TraceWriter::flush() {
  if (!stream_.flush()) {
    throw OutputError("the trace " + file_.string() + " cannot be written");
  }
}

}  // namespace quickstart
