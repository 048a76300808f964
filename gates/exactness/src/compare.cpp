#include "qualify/exactness/compare.hpp"

#include <algorithm>
#include <set>

namespace qualify::exactness {

using evidence::MetricKind;
using evidence::Precision;
using evidence::RunMetrics;
using evidence::Scalar;
using evidence::Series;

namespace {

bool within(std::int64_t iteration, const Options& options) {
  return (!options.from_iteration || iteration >= *options.from_iteration) &&
         (!options.to_iteration || iteration <= *options.to_iteration);
}

bool exact(Precision precision) {
  return precision != Precision::printed && precision != Precision::weak_digest;
}

/// What an equality of values of this kind is worth.
Level level_of(Precision precision) {
  if (precision == Precision::sha256) return Level::e4;
  if (precision == Precision::weak_digest) return Level::e2;
  return Level::e1;
}

bool has_exact_values(const RunMetrics& run, const std::string& metric) {
  const auto found = run.series.find(metric);
  return found != run.series.end() &&
         std::all_of(found->second.values.begin(), found->second.values.end(),
                     [](const auto& value) { return exact(value.second.precision); });
}

std::string format_of(const RunMetrics& run) {
  return run.format.empty() ? "its source" : run.format;
}

/// Why values that agree do not prove that the run's did, and what would.
std::string why_not_proven(const RunMetrics& a, const RunMetrics& b, const std::string& metric,
                           const Scalar& weakest) {
  if (weakest.precision != Precision::printed) {
    return "held in different types (" + format_of(a) + ", " + format_of(b) +
           "): equal as far as the narrower one goes";
  }
  std::string why = "printed with " + std::to_string(weakest.digits) + " digit" +
                    (weakest.digits == 1 ? "" : "s") + "; float32 needs 9, float64 17";
  const bool exact_a = has_exact_values(a, metric);
  const bool exact_b = has_exact_values(b, metric);
  if (exact_a != exact_b) {
    why += std::string("; ") + (exact_a ? "A" : "B") + " has the bits (" +
           format_of(exact_a ? a : b) + "), compare with the same source of the other run";
  } else if (format_of(a) != "tensorboard") {
    why += "; the runs' TensorBoard event files have the bits";
  }
  return why;
}

class MetricCompare {
 public:
  MetricCompare(const RunMetrics& a, const RunMetrics& b, const Options& options)
      : a_(a), b_(b), options_(options) {
    for (const auto& artefact : a.artefacts)
      artefacts_a_.emplace(artefact.metric, artefact.iteration);
    for (const auto& artefact : b.artefacts)
      artefacts_b_.emplace(artefact.metric, artefact.iteration);
  }

  MetricComparison operator()(const std::string& name, const Series* a, const Series* b) {
    static const Series none;
    MetricComparison result;
    result.metric = name;
    std::vector<std::int64_t> averaged;
    const Scalar* weakest = nullptr;
    Level level = Level::e4;
    auto i = (a != nullptr ? *a : none).values.begin();
    auto k = (b != nullptr ? *b : none).values.begin();
    const auto end_a = (a != nullptr ? *a : none).values.end();
    const auto end_b = (b != nullptr ? *b : none).values.end();
    while (i != end_a || k != end_b) {
      if (k == end_b || (i != end_a && i->first < k->first)) {
        if (within(i->first, options_)) result.only_in_a.push_back(i->first);
        ++i;
        continue;
      }
      if (i == end_a || k->first < i->first) {
        if (within(k->first, options_)) result.only_in_b.push_back(k->first);
        ++k;
        continue;
      }
      const std::int64_t iteration = i->first;
      const Scalar& left = (i++)->second;
      const Scalar& right = (k++)->second;
      if (!within(iteration, options_)) continue;
      if (artefacts_a_.contains({name, iteration}) != artefacts_b_.contains({name, iteration})) {
        averaged.push_back(iteration);
        continue;
      }
      ++result.compared;
      switch (compare_scalars(left, right)) {
        case Pair::equal:
          level = std::min(level, level_of(left.precision));
          break;
        case Pair::consistent: {
          const Scalar& weaker = !exact(left.precision) ? left : right;
          if (weakest == nullptr ||
              (weaker.precision == Precision::printed &&
               (weakest->precision != Precision::printed || weaker.digits > weakest->digits))) {
            weakest = &weaker;
          }
          break;
        }
        case Pair::differs:
          if (!result.first) result.first = {iteration, left, right, ulps_between(left, right)};
          ++result.differing;
          break;
      }
    }
    conclude(result, averaged, weakest, level);
    return result;
  }

 private:
  void conclude(MetricComparison& result, const std::vector<std::int64_t>& averaged,
                const Scalar* weakest, Level level) const {
    if (result.differing > 0) {
      result.outcome = Outcome::differs;
      return;
    }
    std::vector<std::string> why;
    if (result.compared == 0 && result.only_in_b.empty() && !result.only_in_a.empty()) {
      why.push_back("only in A");
    } else if (result.compared == 0 && result.only_in_a.empty() && !result.only_in_b.empty()) {
      why.push_back("only in B");
    } else {
      if (result.compared == 0) why.emplace_back("no iteration is in both");
      if (!result.only_in_a.empty())
        why.push_back("iteration " + ranges(result.only_in_a) + " only in A");
      if (!result.only_in_b.empty())
        why.push_back("iteration " + ranges(result.only_in_b) + " only in B");
    }
    if (!averaged.empty()) {
      why.push_back("iteration " + ranges(averaged) +
                    " left out: the second line after a start averages two steps on one side");
    }
    if (weakest != nullptr) why.push_back(why_not_proven(a_, b_, result.metric, *weakest));
    faults(a_, "A", result.metric, why);
    faults(b_, "B", result.metric, why);
    if (why.empty()) {
      result.outcome = Outcome::equal;
      result.level = level;
      return;
    }
    for (const std::string& reason : why) result.why += (result.why.empty() ? "" : "; ") + reason;
  }

  void faults(const RunMetrics& run, const char* side, const std::string& metric,
              std::vector<std::string>& why) const {
    std::size_t count = 0;
    for (const auto& fault : run.faults) {
      if (fault.metric != metric || (fault.iteration && !within(*fault.iteration, options_)))
        continue;
      if (count++ == 0) why.push_back(std::string(side) + ": " + fault.message);
    }
    if (count > 1) why.back() += " (and " + std::to_string(count - 1) + " more)";
  }

  const RunMetrics& a_;
  const RunMetrics& b_;
  const Options& options_;
  std::set<std::pair<std::string, std::int64_t>> artefacts_a_;
  std::set<std::pair<std::string, std::int64_t>> artefacts_b_;
};

/// Faults of whole files, and of metrics that neither side has a series for.
void other_faults(const RunMetrics& run, const char* side, const Options& options,
                  const std::set<std::string>& compared, std::vector<std::string>& reasons) {
  for (const auto& fault : run.faults) {
    if (!fault.metric.empty() && compared.contains(fault.metric)) continue;
    if (fault.iteration && !within(*fault.iteration, options)) continue;
    reasons.push_back(std::string(side) + ": " + fault.message +
                      (fault.where.empty() ? "" : " (" + fault.where + ")"));
  }
}

}  // namespace

std::string ranges(const std::vector<std::int64_t>& sorted) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    if (!text.empty()) text += ", ";
    text += std::to_string(sorted[i]);
    if (last > i) text += "-" + std::to_string(sorted[last]);
    i = last + 1;
  }
  return text;
}

Comparison compare(const RunMetrics& a, const RunMetrics& b, const Options& options) {
  Comparison result;
  std::set<std::string> names;
  for (const auto& [name, series] : a.series) names.insert(name);
  for (const auto& [name, series] : b.series) names.insert(name);
  const auto find = [](const RunMetrics& run, const std::string& name) {
    const auto found = run.series.find(name);
    return found == run.series.end() ? nullptr : &found->second;
  };

  MetricCompare compare_metric(a, b, options);
  std::set<std::string> compared;
  bool differs = false;
  bool proven = true;
  Level level = Level::e4;
  for (const std::string& name : names) {
    const Series* in_a = find(a, name);
    const Series* in_b = find(b, name);
    if ((in_a != nullptr ? in_a : in_b)->kind != MetricKind::numeric) {
      result.excluded.push_back(name);
      continue;
    }
    MetricComparison metric = compare_metric(name, in_a, in_b);
    if (metric.compared == 0 && metric.only_in_a.empty() && metric.only_in_b.empty() &&
        metric.why == "no iteration is in both") {
      continue;  // neither has it within the range that was asked for
    }
    compared.insert(name);
    differs = differs || metric.outcome == Outcome::differs;
    if (metric.outcome == Outcome::inconclusive) {
      proven = false;
      result.reasons.push_back(name + ": " + metric.why);
    }
    if (metric.level) level = std::min(level, *metric.level);
    result.metrics.push_back(std::move(metric));
  }
  for (const std::string& name : options.required_metrics) {
    if (compared.contains(name)) continue;
    proven = false;
    const bool excluded =
        std::find(result.excluded.begin(), result.excluded.end(), name) != result.excluded.end();
    result.reasons.push_back(
        name + (excluded ? ": required, but a wall-clock or memory metric, which is never compared"
                         : ": required, and in neither run"));
  }
  const std::size_t before = result.reasons.size();
  other_faults(a, "A", options, compared, result.reasons);
  other_faults(b, "B", options, compared, result.reasons);
  proven = proven && result.reasons.size() == before;
  if (result.metrics.empty()) {
    proven = false;
    result.reasons.emplace_back("nothing to compare: no metric that both could share");
  }
  result.outcome = differs ? Outcome::differs : proven ? Outcome::equal : Outcome::inconclusive;
  if (result.outcome == Outcome::equal) result.level = level;
  if (!differs && evidence::shares_marks(a, b)) {
    mark_one_run(result);
    result.reasons.front() =
        "one run filed twice: the wall-clock times are the same, so this is not a comparison of "
        "two runs";
  }
  return result;
}

void mark_one_run(Comparison& comparison) {
  if (comparison.same_run_filed_twice) return;
  comparison.same_run_filed_twice = true;
  comparison.reasons.insert(comparison.reasons.begin(),
                            "one run, named twice: this is not a comparison of two runs");
  if (comparison.outcome == Outcome::equal) comparison.outcome = Outcome::inconclusive;
  comparison.level.reset();
}

const MetricComparison* Comparison::first_divergence() const {
  const MetricComparison* first = nullptr;
  for (const MetricComparison& metric : metrics) {
    if (metric.first && (first == nullptr || metric.first->iteration < first->first->iteration)) {
      first = &metric;
    }
  }
  return first;
}

}  // namespace qualify::exactness
