#include "record.hpp"

#include <array>
#include <numeric>
#include <string>
#include <vector>

namespace stand_in {
namespace {

constexpr const char* kAll = "dp.0";

qtrace_options options_of(const Arguments& arguments) {
  return {arguments.trace_level,
          arguments.capture_plan.empty() ? nullptr : arguments.capture_plan.c_str(), 0};
}

void write_manifest(const Arguments& arguments) {
  std::vector<std::int64_t> ranks(static_cast<std::size_t>(arguments.world_size));
  std::iota(ranks.begin(), ranks.end(), 0);
  const std::string seed = std::to_string(arguments.seed);
  const std::array inputs = {"model", "seed"};
  const std::array values = {"least squares", seed.c_str()};
  const qtrace_group group{kAll, ranks.data(), ranks.size()};
  const qtrace_manifest manifest{
      arguments.world_size, -1, inputs.data(), values.data(), inputs.size(), &group, 1};
  const qtrace_options options = options_of(arguments);
  std::array<char, 512> error{};
  if (qtrace_write_manifest(arguments.trace.c_str(), &manifest, &options, error.data(),
                            error.size()) != 0) {
    throw OutputError(error.data());
  }
}

void tensor(qtrace* trace, const qtrace_where& where, const char* name, const Values& values,
            qtrace_kind kind = QTRACE_TENSOR, qtrace_role role = QTRACE_NO_ROLE,
            const char* group = nullptr) {
  const std::int64_t shape = kParameters;
  const qtrace_value value{name,
                           kind,
                           role,
                           QTRACE_FLOAT32,
                           values.data(),
                           &shape,
                           1,
                           group == nullptr ? nullptr : "all-reduce",
                           group,
                           group == nullptr ? -1 : 0,
                           -1};
  qtrace_record(trace, &where, &value);
}

}  // namespace

Record::Record(const Arguments& arguments) : trace_(nullptr, &qtrace_close) {
  if (arguments.trace.empty()) return;
  std::error_code ignored;
  std::filesystem::create_directories(arguments.trace, ignored);
  std::array<char, 512> error{};
  const qtrace_options options = options_of(arguments);
  trace_.reset(
      qtrace_open(arguments.trace.c_str(), arguments.rank, &options, error.data(), error.size()));
  if (!trace_) throw OutputError(error.data());
  if (arguments.rank == 0) write_manifest(arguments);
}

void Record::iteration(std::int64_t number, const Iteration& values) {
  if (!trace_) return;
  const qtrace_where forward{number, -1, "forward"};
  qtrace_event(trace_.get(), &forward, "forward", QTRACE_PHASE);
  tensor(trace_.get(), forward, "decoder.layers.0.mixer", values.activations);
  const qtrace_where backward{number, -1, "backward"};
  qtrace_event(trace_.get(), &backward, "backward", QTRACE_PHASE);
  tensor(trace_.get(), backward, "decoder.layers.0.mixer.grad", values.gradient);
  const qtrace_where reduce{number, -1, "grad-reduce"};
  tensor(trace_.get(), reduce, "grads", values.gradient, QTRACE_COLLECTIVE, QTRACE_INPUT, kAll);
  tensor(trace_.get(), reduce, "grads", values.sum, QTRACE_COLLECTIVE, QTRACE_OUTPUT, kAll);
  const qtrace_where train{number, -1, "train"};
  qtrace_number(trace_.get(), &train, "lm loss", static_cast<double>(values.loss));
}

void Record::end() {
  if (trace_ && qtrace_flush(trace_.get()) != 0) throw OutputError(qtrace_error(trace_.get()));
}

}  // namespace stand_in
