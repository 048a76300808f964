#include "trace_writer.hpp"

#include <array>
#include <numeric>

#include "errors.hpp"

namespace quickstart {
namespace {

constexpr const char* kGroup = "dp.0";

qtrace_where where_of(const Site& site) {
  return {site.iteration, site.microbatch.value_or(-1), site.phase.c_str()};
}

}  // namespace

qtrace_level level_of(Trace trace) {
  return trace == Trace::L0 ? QTRACE_L0 : trace == Trace::L1 ? QTRACE_L1 : QTRACE_L2;
}

TraceWriter::TraceWriter(const std::filesystem::path& folder, unsigned rank, qtrace_level level,
                         const std::filesystem::path& plan)
    : trace_(nullptr, &qtrace_close) {
  std::array<char, 512> error{};
  const qtrace_options options{level, plan.empty() ? nullptr : plan.c_str(), 0};
  trace_.reset(qtrace_open(folder.c_str(), rank, &options, error.data(), error.size()));
  if (!trace_) {
    throw OutputError(error.data());
  }
}

void TraceWriter::event(const Site& site, const std::string& name, qtrace_kind kind) {
  const qtrace_where where = where_of(site);
  qtrace_event(trace_.get(), &where, name.c_str(), kind);
}

void TraceWriter::count(const Site& site, const std::string& name, std::int64_t value) {
  const qtrace_where where = where_of(site);
  qtrace_count(trace_.get(), &where, name.c_str(), value);
}

void TraceWriter::number(const Site& site, const std::string& name, double value) {
  const qtrace_where where = where_of(site);
  qtrace_number(trace_.get(), &where, name.c_str(), value);
}

void TraceWriter::record(const Site& site, const std::string& name, qtrace_kind kind,
                         qtrace_dtype dtype, const void* data,
                         const std::vector<std::size_t>& shape, qtrace_role role) {
  shape_.assign(shape.begin(), shape.end());
  const qtrace_where where = where_of(site);
  const bool talks = kind == QTRACE_COLLECTIVE;
  // One sum an iteration goes over all ranks: its number in the group is 0 in each.
  const qtrace_value value{name.c_str(),
                           kind,
                           role,
                           dtype,
                           data,
                           shape_.data(),
                           shape_.size(),
                           talks ? "all-reduce" : nullptr,
                           talks ? kGroup : nullptr,
                           talks ? 0 : -1,
                           -1};
  qtrace_record(trace_.get(), &where, &value);
}

void TraceWriter::tensor(const Site& site, const std::string& name, std::span<const float> values,
                         const std::vector<std::size_t>& shape, qtrace_kind kind) {
  record(site, name, kind, QTRACE_FLOAT32, values.data(), shape, QTRACE_NO_ROLE);
}

void TraceWriter::tensor(const Site& site, const std::string& name,
                         std::span<const std::int32_t> values,
                         const std::vector<std::size_t>& shape, qtrace_kind kind) {
  record(site, name, kind, QTRACE_INT32, values.data(), shape, QTRACE_NO_ROLE);
}

void TraceWriter::scalar(const Site& site, const std::string& name, float value) {
  record(site, name, QTRACE_METRIC, QTRACE_FLOAT32, &value, {}, QTRACE_NO_ROLE);
}

void TraceWriter::all_reduce(const Site& site, const std::string& name,
                             std::span<const float> values, qtrace_role role) {
  record(site, name, QTRACE_COLLECTIVE, QTRACE_FLOAT32, values.data(), {values.size()}, role);
}

void TraceWriter::flush() {
  if (qtrace_flush(trace_.get()) != 0) {
    throw OutputError(qtrace_error(trace_.get()));
  }
}

void write_trace_manifest(const std::filesystem::path& folder, const Settings& settings,
                          const std::string& model, const std::string& data,
                          std::optional<std::int64_t> resumed_from) {
  const std::string seed = std::to_string(settings.seed);
  const std::array names = {"model", "data", "seed"};
  const std::array values = {model.c_str(), data.c_str(), seed.c_str()};
  std::vector<std::int64_t> ranks(settings.ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  const qtrace_group group{kGroup, ranks.data(), ranks.size()};
  const qtrace_manifest manifest{settings.ranks,
                                 resumed_from.value_or(-1),
                                 names.data(),
                                 values.data(),
                                 names.size(),
                                 &group,
                                 1};
  const qtrace_options options{
      level_of(settings.trace),
      settings.capture_plan.empty() ? nullptr : settings.capture_plan.c_str(), 0};
  std::array<char, 512> error{};
  if (qtrace_write_manifest(folder.c_str(), &manifest, &options, error.data(), error.size()) != 0) {
    throw OutputError(error.data());
  }
}

}  // namespace quickstart
