#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "qualify/base/text.hpp"
#include "qualify/report/overhead.hpp"

namespace qualify::report {

using statistics::OverheadAnalysis;
using statistics::PairResult;

namespace {

std::string percent(double log_ratio) {
  return statistics::overhead_text(log_ratio);
}

/// Lines of a page; control characters of names from outside become '?'.
class Page {
 public:
  explicit Page(int width) : width_(static_cast<std::size_t>(std::max(width, 60))) {}

  /// `label` in its column, then words wrapped under each other.
  void item(const std::string& label, const std::string& text) {
    std::string line = fmt::format("{:<11}", label);
    const std::size_t indent = line.size();
    std::size_t at = 0;
    bool first = true;
    while (at < text.size()) {
      const std::size_t space = std::min(text.find(' ', at), text.size());
      const std::string word = text.substr(at, space - at);
      if (!first && line.size() + 1 + word.size() > width_) {
        add(line);
        line.assign(indent, ' ');
        first = true;
      }
      if (!first) line += ' ';
      line += word;
      first = false;
      at = space + 1;
    }
    add(line);
  }

  void add(const std::string& text) {
    std::string line = printable(text);
    line.erase(line.find_last_not_of(' ') + 1);
    text_ += line + "\n";
  }

  [[nodiscard]] std::string finish() && { return std::move(text_); }

 private:
  std::size_t width_;
  std::string text_;
};

std::string estimate_line(const OverheadAnalysis& a) {
  std::string text = fmt::format("{}, 95% interval [{}, {}]", percent(a.estimate->value),
                                 percent(a.interval->low), percent(a.interval->high));
  if (a.bounds) {
    text += fmt::format("; one-sided bounds {} and {}, {:g}% error each", percent(a.bounds->low),
                        percent(a.bounds->high), 100 * a.alpha);
  }
  return text;
}

std::string method_line(const OverheadAnalysis& a) {
  std::string text =
      fmt::format("{} on {} pairs, {:g} degrees of freedom",
                  a.crossover_used ? "AB/BA estimate" : "paired t", a.pairs.size(), a.estimate->df);
  if (a.sign_flip_p) text += fmt::format("; exact sign-flip p = {:.4g}", *a.sign_flip_p);
  if (a.period) text += "; running first: " + percent(a.period->value);
  return text;
}

std::string checks_line(const OverheadAnalysis& a) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (a.hodges_lehmann) add("Hodges-Lehmann " + percent(*a.hodges_lehmann));
  if (a.fieller && a.fieller->interval) {
    add(fmt::format("Fieller [{}, {}]", percent(std::log(a.fieller->interval->low)),
                    percent(std::log(a.fieller->interval->high))));
  }
  if (a.placebo_log_ratio) add("placebo " + percent(*a.placebo_log_ratio));
  add(fmt::format("time lost in stalls {:.2f}% deterministic, {:.2f}% nondeterministic",
                  100 * a.stall_burden_deterministic, 100 * a.stall_burden_nondeterministic));
  return text;
}

std::string rank_part(const statistics::Straggler& s) {
  return fmt::format("rank {}, {} above the median rank, in {} of {} launches", s.rank,
                     percent(s.above), s.slowest_in, s.launches);
}

std::string ranks_line(const OverheadAnalysis& a) {
  std::string text = "slowest: ";
  if (a.straggler_deterministic) {
    text += "deterministic " + rank_part(*a.straggler_deterministic);
  }
  if (a.straggler_nondeterministic) {
    text += a.straggler_deterministic ? "; " : "";
    text += "nondeterministic " + rank_part(*a.straggler_nondeterministic);
  }
  return text;
}

std::string goals_line(const OverheadAnalysis& a) {
  std::string text;
  for (const auto& g : a.goals) {
    text += fmt::format("{}{} below {}: {}", text.empty() ? "" : "; ", g.goal.name,
                        percent(std::log(g.goal.below)),
                        !g.met ? "not decided" : (*g.met ? "met" : "not met"));
  }
  return text;
}

std::string exclusions_line(const OverheadAnalysis& a) {
  // Counts are the same in both arms by construction; seconds are not.
  std::map<statistics::Exclusion, statistics::Excluded> all;
  for (const PairResult& pair : a.pairs) {
    for (const auto* window : {&pair.windows.a, &pair.windows.b}) {
      for (const auto& [reason, what] : window->excluded) {
        all[reason].count += what.count;
        all[reason].seconds += what.seconds;
      }
    }
  }
  std::string text;
  for (const auto& [reason, what] : all) {
    text += fmt::format("{}{} {} steps ({:.1f} s)", text.empty() ? "" : ", ", name_of(reason),
                        what.count, what.seconds);
  }
  return text.empty() ? "nothing" : text;
}

void pair_rows(Page& page, const std::vector<PairResult>& pairs) {
  for (const PairResult& pair : pairs) {
    const char* order = !pair.order ? "-" : *pair.order == statistics::Order::ab ? "AB" : "BA";
    if (!pair.deterministic || !pair.nondeterministic) {
      page.add(fmt::format("{:<16} {:<5} {}", pair.name.substr(0, 16), order,
                           pair.faults.empty() ? "not usable" : pair.faults.front().code));
      continue;
    }
    const auto& d = *pair.deterministic;
    const auto& n = *pair.nondeterministic;
    page.add(fmt::format("{:<16} {:<5} {:>10.5g} {:>10.5g} {:>9} {:>6} {:>12}",
                         pair.name.substr(0, 16), order, d.typical, n.typical,
                         percent(*pair.log_ratio), d.steps,
                         fmt::format("{:.0f} | {:.0f}", d.stalls_per_1000, n.stalls_per_1000)));
  }
}

}  // namespace

std::string overhead_text(const OverheadAnalysis& analysis, int width) {
  Page page(width);
  page.item("Verdict", name_of(analysis.verdict));
  for (const std::string& reason : analysis.reasons) page.item("", reason);
  if (analysis.estimate && analysis.interval) {
    page.item("Overhead", estimate_line(analysis));
  }
  std::string policy = fmt::format("{}: pass below {}, fail above {}", analysis.policy.name,
                                   percent(std::log(analysis.policy.pass_below)),
                                   percent(std::log(analysis.policy.fail_above)));
  page.item("Policy", policy);
  if (!analysis.goals.empty()) page.item("Goals", goals_line(analysis));
  if (analysis.estimate) page.item("Method", method_line(analysis));
  if (!analysis.pairs.empty()) page.item("Checks", checks_line(analysis));
  if (analysis.straggler_deterministic || analysis.straggler_nondeterministic) {
    page.item("Ranks", ranks_line(analysis));
  }
  if (!analysis.clocks.empty()) page.item("Clocks", analysis.clocks);
  page.item("Excluded", exclusions_line(analysis));
  if (analysis.further_pairs) {
    page.item("Next", fmt::format("{} further pairs would decide it if effect and noise stay as "
                                  "they are",
                                  *analysis.further_pairs));
  }
  for (const std::string& limit : analysis.limits) page.item("Limit", limit);
  page.add("");
  page.add(fmt::format("{:<16} {:<5} {:>10} {:>10} {:>9} {:>6} {:>12}", "PAIR", "ORDER", "DET s",
                       "NONDET s", "OVERHEAD", "STEPS", "STALLS/1000"));
  pair_rows(page, analysis.pairs);
  pair_rows(page, analysis.placebo);
  return std::move(page).finish();
}

}  // namespace qualify::report
