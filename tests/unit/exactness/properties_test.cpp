// Properties of the comparison and of reading, on generated runs (RapidCheck).

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <fstream>

#include <fmt/format.h>

#include "crc32c.hpp"
#include "event_file.pb.h"
#include "qualify/exactness/compare.hpp"
#include "support/temp_folder.hpp"

namespace qualify::exactness {
namespace {

using evidence::Precision;
using evidence::RunMetrics;
using evidence::Scalar;

rc::Gen<std::uint32_t> float_bits() {
  // The corners by name, or any pattern at all.
  return rc::gen::oneOf(rc::gen::arbitrary<std::uint32_t>(),
                        rc::gen::element<std::uint32_t>(
                            0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x7F800000, 0xFF800000,
                            0x7FC00000, 0x7FC00001, 0x7FA00000, 0xFFC12345, 0x7F7FFFFF));
}

rc::Gen<Scalar> exact_scalar() {
  return rc::gen::oneOf(
      rc::gen::map(float_bits(),
                   [](std::uint32_t bits) {
                     return Scalar{bits, Precision::float32_bits, 0, {}};
                   }),
      rc::gen::map(rc::gen::arbitrary<std::uint64_t>(),
                   [](std::uint64_t bits) {
                     return Scalar{bits, Precision::float64_bits, 0, {}};
                   }),
      rc::gen::map(rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(),
                                  rc::gen::inRange<std::int64_t>(1LL << 53, 1LL << 62)),
                   [](std::int64_t value) {
                     return Scalar{static_cast<std::uint64_t>(value), Precision::integer, 0, {}};
                   }));
}

RunMetrics generated() {
  RunMetrics run;
  run.format = "generated";
  const auto count = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = "metric " + std::to_string(i);
    auto& series = run.series[name];
    series.name = name;
    const auto steps = *rc::gen::inRange<std::int64_t>(1, 20);
    for (std::int64_t step = 1; step <= steps; ++step)
      series.values.insert_or_assign(step, *exact_scalar());
  }
  return run;
}

RC_GTEST_PROP(Compare, IsReflexiveOnExactValues, ()) {
  const auto run = generated();
  RC_ASSERT(compare(run, run).outcome == Outcome::equal);
}

RC_GTEST_PROP(Compare, IsSymmetric, ()) {
  const auto a = generated();
  const auto b = generated();
  const auto there = compare(a, b);
  const auto back = compare(b, a);
  RC_ASSERT(there.outcome == back.outcome);
  RC_ASSERT(there.metrics.size() == back.metrics.size());
  for (std::size_t i = 0; i < there.metrics.size(); ++i) {
    RC_ASSERT(there.metrics[i].outcome == back.metrics[i].outcome);
    RC_ASSERT(there.metrics[i].differing == back.metrics[i].differing);
    RC_ASSERT(there.metrics[i].only_in_a == back.metrics[i].only_in_b);
    if (there.metrics[i].first)
      RC_ASSERT(there.metrics[i].first->ulps == back.metrics[i].first->ulps);
  }
}

RC_GTEST_PROP(Compare, FindsAnySinglePlantedBit, ()) {
  const auto a = generated();
  auto b = a;
  auto series = b.series.begin();
  std::advance(series,
               *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(b.series.size())));
  const auto iteration =
      *rc::gen::inRange<std::int64_t>(1, series->second.values.last_iteration() + 1);
  Scalar scalar = series->second.values.at(iteration);
  const unsigned width = scalar.precision == Precision::float32_bits ? 32 : 64;
  scalar.bits ^= std::uint64_t{1} << *rc::gen::inRange(0U, width);
  series->second.values.insert_or_assign(iteration, scalar);
  const auto comparison = compare(a, b);
  RC_ASSERT(comparison.outcome == Outcome::differs);
  RC_ASSERT(comparison.first_divergence()->metric == series->first);
  RC_ASSERT(comparison.first_divergence()->first->iteration == iteration);
  RC_ASSERT(comparison.first_divergence()->differing == 1U);
}

RC_GTEST_PROP(Compare, AMissingStepIsNeverEqual, ()) {
  const auto a = generated();
  auto b = a;
  auto& values = b.series.begin()->second.values;
  values.erase(*rc::gen::inRange<std::int64_t>(1, values.last_iteration() + 1));
  RC_ASSERT(compare(a, b).outcome == Outcome::inconclusive);
}

RC_GTEST_PROP(Ulps, NeighboursAreOneApart, ()) {
  const auto bits = *float_bits();
  const float value = std::bit_cast<float>(bits);
  RC_PRE(!std::isnan(value) && !std::isinf(value) && (bits & 0x7FFFFFFFU) != 0);
  const Scalar here{bits, Precision::float32_bits, 0, {}};
  const Scalar next{bits + 1, Precision::float32_bits, 0, {}};
  RC_ASSERT(ulps_between(here, next) == std::optional<std::uint64_t>(1));
}

std::string framed(const std::string& data) {
  const auto raw = [](std::string& to, auto value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  std::string out;
  raw(out, static_cast<std::uint64_t>(data.size()));
  raw(out, evidence::mask_crc(evidence::crc32c(std::as_bytes(std::span(out)))));
  out += data;
  raw(out, evidence::mask_crc(evidence::crc32c(std::as_bytes(std::span(data)))));
  return out;
}

/// The same values in a file of each format that keeps bits, read back.
RunMetrics filed(const std::vector<std::uint32_t>& values, const std::string& format) {
  const test::TempFolder folder;
  {
    std::ofstream file(folder / "run", std::ios::binary);
    if (format == "csv") file << "step,lm_loss\n";
    if (format == "golden-values") {
      file << fmt::format(R"({{"lm loss": {{"start_step": 1, "end_step": {}, "step_interval": 1, )"
                          R"("value_precision": "full", "values": {{)",
                          values.size());
    }
    std::int64_t step = 0;
    for (const auto bits : values) {
      ++step;
      const auto wide = static_cast<double>(std::bit_cast<float>(bits));
      if (format == "tensorboard") {
        evidence::wire::Event event;
        event.set_step(step);
        auto* value = event.mutable_summary()->add_value();
        value->set_tag("lm loss");
        value->set_simple_value(std::bit_cast<float>(bits));
        file << framed(event.SerializeAsString());
      } else if (format == "json-lines") {
        file << fmt::format("{{\"iteration\": {}, \"lm loss\": \"0x{:08x}\"}}\n", step, bits);
      } else if (format == "csv") {
        file << fmt::format("{},{:.17g}\n", step, wide);
      } else if (format == "golden-values") {
        file << fmt::format("{}\"{}\": {:.17g}", step > 1 ? ", " : "", step, wide);
      } else if (format == "trace-pr6610") {
        file << fmt::format(
            R"({{"schema_version": 1, "event": "event", "iteration": {0}, "microbatch": null, )"
            R"("name": "lm loss", "occurrence": 0, "phase": "train", "rank": 0, )"
            R"("sequence": {0}, "fields": {{"value": {1:.17g}}}}})"
            "\n",
            step, wide);
      } else if (format == "trace-fork") {
        file << fmt::format(
            R"({{"schema_version": 1, "sequence": {}, "rank": 0, "iteration": {}, )"
            R"("kind": "tensor", "name": "lm loss", "payload": {{"sha256": "{:08x}"}}}})"
            "\n",
            step - 1, step, bits);
      } else {
        file << fmt::format(
            " iteration {}/ 99 | consumed samples: 1 | lm loss: {:.16E} | number of nan "
            "iterations: 0 |\n",
            step, wide);
      }
    }
  }
  if (format == "golden-values") std::ofstream(folder / "run", std::ios::app) << "}}}\n";
  auto run = evidence::read_metrics(folder / "run", format);
  RC_ASSERT(run.has_value());
  RC_ASSERT(run->faults.empty());
  run->wall_clock_marks.clear();
  return *run;
}

RC_GTEST_PROP(AnyFormat, ASinglePlantedBitIsFoundWhereItIs, ()) {
  const auto format =
      *rc::gen::element<std::string>("tensorboard", "json-lines", "csv", "megatron-log",
                                     "golden-values", "trace-pr6610", "trace-fork");
  auto values = *rc::gen::container<std::vector<std::uint32_t>>(float_bits());
  RC_PRE(!values.empty());
  const bool text = format != "tensorboard" && format != "json-lines" && format != "trace-fork";
  // Text has one NaN, whatever its payload: only finite values are planted in it.
  if (text) {
    for (auto& bits : values) {
      if ((bits & 0x7F800000U) == 0x7F800000U) bits = 0x3F800001U;
    }
  }
  // A table shows by one long number that it is printed in full; "-0" alone shows nothing.
  values.push_back(0x3DCCCCCD);
  const auto at = *rc::gen::inRange<std::size_t>(0, values.size() - 1);
  auto other = values;
  other[at] ^= 1U << *rc::gen::inRange(0U, text ? 23U : 32U);
  const auto comparison = compare(filed(values, format), filed(other, format));
  RC_ASSERT(comparison.outcome == Outcome::differs);
  RC_ASSERT(comparison.first_divergence()->metric.starts_with("lm loss"));
  RC_ASSERT(comparison.first_divergence()->first->iteration == static_cast<std::int64_t>(at) + 1);
  RC_ASSERT(comparison.first_divergence()->differing == 1U);
}

RC_GTEST_PROP(AnyFormat, TheSameBitsAreNeverADifference, ()) {
  const auto format =
      *rc::gen::element<std::string>("tensorboard", "json-lines", "csv", "megatron-log",
                                     "golden-values", "trace-pr6610", "trace-fork");
  auto values = *rc::gen::container<std::vector<std::uint32_t>>(float_bits());
  const bool text = format == "golden-values" || format == "trace-pr6610";
  for (auto& bits : values) {
    if (text && (bits & 0x7F800000U) == 0x7F800000U) bits = 0x3F800001U;  // JSON has no NaN
  }
  values.push_back(0x3DCCCCCD);
  const auto run = filed(values, format);
  const auto comparison = compare(run, filed(values, format));
  RC_ASSERT(comparison.outcome != Outcome::differs);
  RC_ASSERT(comparison.metrics.front().differing == 0U);
  if (format == "tensorboard" || format == "json-lines") {
    RC_ASSERT(comparison.outcome == Outcome::equal);
    RC_ASSERT(comparison.level == Level::e1);
  }
}

RC_GTEST_PROP(Checkpoint, ASingleBitOfAnyFileIsFound, ()) {
  const test::TempFolder folder;
  auto content = *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
  const auto write = [&](const std::string& side) {
    const auto root = folder / side / "iter_0000003";
    std::filesystem::create_directories(root);
    std::ofstream(root / "metadata.json") << "{}";
    std::ofstream(root / "__0_0.distcp", std::ios::binary) << content;
  };
  write("a");
  write("b");
  const auto at = *rc::gen::inRange<std::size_t>(0, content.size());
  content[at] = static_cast<char>(content[at] ^ (1 << *rc::gen::inRange(0, 8)));
  write("c");
  const auto read = [&](const std::string& side) {
    return *evidence::read_metrics(folder / side / "iter_0000003");
  };
  RC_ASSERT(compare(read("a"), read("b")).level == Level::e4);
  const auto other = compare(read("a"), read("c"));
  RC_ASSERT(other.outcome == Outcome::differs);
  RC_ASSERT(other.first_divergence()->metric == "checkpoint/__0_0.distcp");
}

}  // namespace
}  // namespace qualify::exactness
