#include "qualify/traces/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace qualify::traces {

namespace {

/// Rows of one process: what computes and what communicates.
enum Track : int { compute = 1, communication = 2 };

class Timeline {
 public:
  Timeline(const Localization* found, const TimelineOptions& options, const TextSink& sink)
      : found_(found), options_(options), sink_(sink) {}

  Result<std::uint64_t> write(const TraceSet& a, const TraceSet* b) {
    out_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
    if (auto good = run(a, 0, b == nullptr ? "" : ", A"); !good)
      return tl::unexpected(good.error());
    if (b != nullptr) {
      if (auto good = run(*b, 1, ", B"); !good) return tl::unexpected(good.error());
    }
    if (events_ == 0) {
      return fail(Errc::invalid_input, "no event of these ranks and iterations",
                  a.folder().string(), "qualify trace info lists what there is");
    }
    out_ += "\n]}\n";
    if (auto good = sink_(out_); !good) return tl::unexpected(good.error());
    return events_;
  }

 private:
  [[nodiscard]] bool wanted(std::int64_t rank) const {
    return options_.ranks.empty() ||
           std::find(options_.ranks.begin(), options_.ranks.end(), rank) != options_.ranks.end();
  }

  Result<void> run(const TraceSet& set, int number, const char* label) {
    const Roots& roots = set.roots();
    std::vector<std::int64_t> iterations;
    for (const std::int64_t iteration : roots.iterations) {
      if (iteration >= options_.from_iteration && iteration <= options_.to_iteration)
        iterations.push_back(iteration);
    }
    if (iterations.empty()) return {};
    const auto base = beginning(set, iterations.front());
    if (!base) return tl::unexpected(base.error());
    for (std::size_t i = 0; i < roots.ranks.size(); ++i) {
      if (!wanted(roots.ranks[i])) continue;
      const std::int64_t process = roots.ranks[i] * 2 + number;
      name_process(process, fmt::format("rank {}{}", roots.ranks[i], label));
      Strings strings;
      std::int64_t first_sequence = -1;
      for (const std::int64_t iteration : iterations) {
        const auto read = set.read(i, iteration, strings);
        if (!read) return tl::unexpected(read.error());
        for (const Event& event : read->events) {
          if (first_sequence < 0) first_sequence = event.rank_seq;
          add(event, strings, roots.ranks[i], process, *base, first_sequence);
        }
        if (auto good = flush(); !good) return good;
      }
    }
    return {};
  }

  /// The earliest time in the first iteration; kNoTime where none was recorded.
  Result<std::int64_t> beginning(const TraceSet& set, std::int64_t iteration) {
    std::int64_t earliest = INT64_MAX;
    for (std::size_t i = 0; i < set.roots().ranks.size(); ++i) {
      if (!wanted(set.roots().ranks[i])) continue;
      Strings strings;
      const auto read = set.read(i, iteration, strings);
      if (!read) return tl::unexpected(read.error());
      for (const Event& event : read->events) {
        if (event.time_ns != kNoTime) earliest = std::min(earliest, event.time_ns);
      }
    }
    return earliest == INT64_MAX ? kNoTime : earliest;
  }

  void separate() { out_ += any_ ? ",\n" : "\n", any_ = true; }

  void name_process(std::int64_t process, const std::string& name) {
    const auto meta = [&](const char* what, const Json& arguments, int track) {
      separate();
      out_ +=
          Json{{"ph", "M"}, {"pid", process}, {"tid", track}, {"name", what}, {"args", arguments}}
              .dump();
    };
    meta("process_name", {{"name", name}}, 0);
    meta("process_sort_index", {{"sort_index", process}}, 0);
    meta("thread_name", {{"name", "compute"}}, compute);
    meta("thread_name", {{"name", "communication"}}, communication);
  }

  [[nodiscard]] bool marked(const Event& event, const Strings& strings, std::int64_t rank) const {
    if (found_ == nullptr) return false;
    const auto role = event.role == Role::none ? std::string() : std::string(name_of(event.role));
    return std::any_of(found_->frontier.begin(), found_->frontier.end(), [&](const auto& first) {
      const Place& place = first.place;
      return std::binary_search(first.ranks.begin(), first.ranks.end(), rank) &&
             place.iteration == event.iteration && place.site == strings.text(event.site) &&
             place.phase == strings.text(event.phase) && place.op == strings.text(event.op) &&
             place.role == role && place.microbatch == event.microbatch &&
             place.occurrence == event.occurrence;
    });
  }

  void add(const Event& event, const Strings& strings, std::int64_t rank, std::int64_t process,
           std::int64_t base, std::int64_t first_sequence) {
    const bool timed = base != kNoTime && event.time_ns != kNoTime;
    const double at = timed ? static_cast<double>(event.time_ns - base) / 1e3
                            : static_cast<double>(event.rank_seq - first_sequence);
    const double lasts =
        event.duration_ns != kNoTime ? static_cast<double>(event.duration_ns) / 1e3 : 1.0;
    const bool talks = event.kind == Kind::collective || event.kind == Kind::p2p;
    std::string name(strings.text(event.site));
    if (event.op != 0) name.append(" ").append(strings.text(event.op));
    if (event.role != Role::none) name.append(" ").append(name_of(event.role));
    Json arguments = {{"iteration", event.iteration},
                      {"kind", name_of(event.kind)},
                      {"rank_seq", event.rank_seq}};
    if (event.microbatch >= 0) arguments["microbatch"] = event.microbatch;
    if (event.group != 0) arguments["group"] = strings.text(event.group);
    if (event.group_seq >= 0) arguments["group_seq"] = event.group_seq;
    if (event.has_digest())
      arguments["digest"] = fmt::format("{:016x}{:016x}", event.digest_hi, event.digest_lo);
    if (event.value_type != ValueType::none)
      arguments["value_bits"] = fmt::format("0x{:016x}", event.value_bits);
    Json record = {{"ph", "X"},
                   {"pid", process},
                   {"tid", static_cast<int>(talks ? communication : compute)},
                   {"ts", at},
                   {"dur", lasts},
                   {"name", name},
                   {"cat", strings.text(event.phase)},
                   {"args", std::move(arguments)}};
    const bool first = marked(event, strings, rank);
    if (first) record["cname"] = "terrible";
    separate();
    out_ += record.dump();
    ++events_;
    if (!first) return;
    separate();
    out_ += Json{{"ph", "i"},      {"s", "p"},
                 {"pid", process}, {"tid", static_cast<int>(talks ? communication : compute)},
                 {"ts", at},       {"name", "first divergence: " + name}}
                .dump();
  }

  Result<void> flush() {
    if (out_.size() < 1U << 20U) return {};
    auto good = sink_(out_);
    out_.clear();
    return good;
  }

  const Localization* found_;
  const TimelineOptions& options_;
  const TextSink& sink_;
  std::string out_;
  bool any_ = false;
  std::uint64_t events_ = 0;
};

}  // namespace

Result<std::uint64_t> write_timeline(const TraceSet& a, const TraceSet* b,
                                     const Localization* found, const TimelineOptions& options,
                                     const TextSink& sink) {
  return Timeline(found, options, sink).write(a, b);
}

}  // namespace qualify::traces
