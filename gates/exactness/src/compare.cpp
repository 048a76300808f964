#include "qualify/exactness/compare.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace qualify::exactness {

using evidence::is_exact;
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

/// What an equality of values of this kind is worth.
Level level_of(Precision precision) {
  if (precision == Precision::sha256) return Level::e4;
  if (precision == Precision::weak_digest) return Level::e2;
  return Level::e1;
}

bool has_exact_values(const RunMetrics& run, const std::string& metric) {
  const auto found = run.series.find(metric);
  return found != run.series.end() && found->second.values.all_exact();
}

std::string format_of(const RunMetrics& run) {
  return run.format.empty() ? "its source" : run.format;
}

/// Of event files beside the two sources; one may be missing, or both be one.
std::string where_the_bits_are(const std::string& beside_a, const std::string& beside_b) {
  if (!beside_a.empty() && !beside_b.empty() && beside_a != beside_b) {
    return "; the TensorBoard files beside them have the bits: " + beside_a + " and " + beside_b;
  }
  const std::string& there = beside_a.empty() ? beside_b : beside_a;
  const char* const whose = beside_a.empty()   ? "beside B has the bits: "
                            : beside_b.empty() ? "beside A has the bits: "
                                               : "beside them has the bits of one: ";
  return std::string("; the TensorBoard file ") + whose + there +
         ", compare it with the other run's";
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
  } else if (!a.event_file_beside.empty() || !b.event_file_beside.empty()) {
    why += where_the_bits_are(a.event_file_beside, b.event_file_beside);
  } else if (format_of(a) != "tensorboard") {
    why += "; the runs' TensorBoard event files have the bits";
  }
  return why;
}

class MetricCompare {
 public:
  MetricCompare(const RunMetrics& a, const RunMetrics& b, const Options& options)
      : a_(a), b_(b), options_(options) {
    for (const auto& artefact : a.artefacts) marked_a_[artefact.metric].insert(artefact.iteration);
    for (const auto& artefact : b.artefacts) marked_b_[artefact.metric].insert(artefact.iteration);
  }

  MetricComparison operator()(const std::string& name, const Series* a, const Series* b) {
    static const evidence::Values none;
    MetricComparison result;
    result.metric = name;
    tally_ = {};
    tally_.marked_a = &marked_a_[name];
    tally_.marked_b = &marked_b_[name];
    const evidence::Values& values_a = a != nullptr ? a->values : none;
    const evidence::Values& values_b = b != nullptr ? b->values : none;
    const auto end_a = values_a.end();
    const auto end_b = values_b.end();
    auto i = values_a.begin();
    auto k = values_b.begin();
    while (i != end_a || k != end_b) {
      if (k == end_b || (i != end_a && i->first < k->first)) {
        if (within(i->first, options_)) result.only_in_a.add(i->first);
        ++i;
      } else if (i == end_a || k->first < i->first) {
        if (within(k->first, options_)) result.only_in_b.add(k->first);
        ++k;
      } else {
        if (within(i->first, options_)) pair(result, i->first, i->second, k->second);
        ++i;
        ++k;
      }
    }
    conclude(result);
    return result;
  }

 private:
  /// What is seen of one metric on the way.
  struct Tally {
    const std::set<std::int64_t>* marked_a = nullptr;  ///< iterations that average two steps
    const std::set<std::int64_t>* marked_b = nullptr;
    Iterations averaged;
    std::optional<Scalar> weakest;
    Level level = Level::e4;
  };

  void pair(MetricComparison& result, std::int64_t iteration, const Scalar& a, const Scalar& b) {
    if (tally_.marked_a->contains(iteration) != tally_.marked_b->contains(iteration)) {
      tally_.averaged.add(iteration);
      return;
    }
    ++result.compared;
    switch (compare_scalars(a, b)) {
      case Pair::equal:
        tally_.level = std::min(tally_.level, level_of(a.precision));
        break;
      case Pair::consistent: {
        const Scalar& weaker = !is_exact(a.precision) ? a : b;
        std::optional<Scalar>& weakest = tally_.weakest;
        if (!weakest ||
            (weaker.precision == Precision::printed &&
             (weakest->precision != Precision::printed || weaker.digits > weakest->digits))) {
          weakest = weaker;
        }
        break;
      }
      case Pair::differs:
        if (!result.first) result.first = {iteration, a, b, ulps_between(a, b)};
        ++result.differing;
        break;
    }
  }

  void conclude(MetricComparison& result) const {
    if (result.differing > 0) {
      result.outcome = Outcome::differs;
      return;
    }
    std::vector<std::string> why;
    if (result.compared == 0 && result.only_in_b.empty() && !result.only_in_a.empty()) {
      why.emplace_back("only in A");
    } else if (result.compared == 0 && result.only_in_a.empty() && !result.only_in_b.empty()) {
      why.emplace_back("only in B");
    } else {
      if (result.compared == 0) why.emplace_back("no iteration is in both");
      if (!result.only_in_a.empty())
        why.push_back("iteration " + result.only_in_a.str() + " only in A");
      if (!result.only_in_b.empty())
        why.push_back("iteration " + result.only_in_b.str() + " only in B");
    }
    if (!tally_.averaged.empty()) {
      why.push_back("iteration " + tally_.averaged.str() +
                    " left out: the second line after a start averages two steps on one side");
    }
    if (tally_.weakest) why.push_back(why_not_proven(a_, b_, result.metric, *tally_.weakest));
    faults(a_, "A", result.metric, why);
    faults(b_, "B", result.metric, why);
    if (why.empty()) {
      result.outcome = Outcome::equal;
      result.level = tally_.level;
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
  std::map<std::string, std::set<std::int64_t>> marked_a_;  ///< by metric
  std::map<std::string, std::set<std::int64_t>> marked_b_;
  Tally tally_;
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

void Iterations::add(std::int64_t iteration) {
  constexpr std::size_t kMost = 1000;
  ++count_;
  if (!ranges_.empty() && ranges_.back().second + 1 == iteration)
    ranges_.back().second = iteration;
  else if (ranges_.size() < kMost)
    ranges_.emplace_back(iteration, iteration);
}

std::string Iterations::str() const {
  constexpr std::size_t kShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranges_.size(), kShown); ++i) {
    const auto& [first, last] = ranges_[i];
    text += (text.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
  }
  if (ranges_.size() > kShown) text += ", … (" + std::to_string(count_) + " in all)";
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
