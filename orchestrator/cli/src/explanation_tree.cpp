#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "explanation.hpp"
#include "qualify/policy/gate.hpp"
#include "qualify/scheduler/hostlist.hpp"

namespace qualify::cli {

namespace {

constexpr std::size_t kMost = 8;  ///< entries of one list; --json has all

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

/// The first 12 digits of "sha256:…" or of an id.
std::string brief(const std::string& text) {
  const auto colon = text.find(':');
  return text.substr(colon == std::string::npos ? 0 : colon + 1, 12);
}

std::string plural(std::size_t count, const std::string& one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

/// At most kMost of a list, then how many there are more.
template <class List, class Add>
void some_of(const List& list, const std::string& what, Branch& to, const Add& add) {
  std::size_t done = 0;
  for (const Json& each : list) {
    if (done++ == kMost) {
      to.add("and " + std::to_string(list.size() - kMost) + " more " + what + ": --json has all");
      break;
    }
    add(each);
  }
}

std::string metric_text(const Json& metric) {
  std::string text = text_of(metric, "metric") + ": " + text_of(metric, "outcome");
  if (const std::string level = text_of(metric, "level"); !level.empty()) text += " at " + level;
  if (const Json first = metric.value("first", Json()); first.is_object()) {
    const auto side = [&](const char* key) {
      const Json value = first.value(key, Json::object());
      const std::string bits = text_of(value, "bits");
      return text_of(value, "text") + (bits.empty() ? "" : " (" + bits + ")");
    };
    return text + " from iteration " + first.at("iteration").dump() + ": " + side("a") +
           " against " + side("b");
  }
  if (const std::string why = text_of(metric, "why"); !why.empty()) return text + ": " + why;
  return text + ", " + plural(metric.value("compared", std::size_t{0}), "iteration");
}

/// What differs comes first, what could not be told next.
std::vector<Json> by_weight(const Json& metrics) {
  std::vector<Json> sorted(metrics.begin(), metrics.end());
  const auto rank = [](const Json& metric) {
    const std::string outcome = text_of(metric, "outcome");
    return outcome == "differs" ? 0 : outcome == "inconclusive" ? 1 : 2;
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const Json& a, const Json& b) { return rank(a) < rank(b); });
  return sorted;
}

void add_comparison(const Json& pair, Branch& to) {
  std::string text = text_of(pair, "run_a") + " and " + text_of(pair, "run_b") + ": ";
  const Json comparison = pair.value("comparison", Json());
  const Json ratio = pair.value("step_time_ratio", Json());
  if (ratio.is_number()) {
    to.add(text + fmt::format("ratio of step times {:.4f}", ratio.get<double>()));
    return;
  }
  if (!comparison.is_object()) {
    to.add(text + "not compared");
    return;
  }
  text += text_of(comparison, "outcome");
  if (const std::string level = text_of(comparison, "level"); !level.empty())
    text += " at " + level;
  Branch& branch = to.add(text);
  const std::vector<Json> metrics = by_weight(comparison.value("metrics", Json::array()));
  some_of(metrics, "metrics", branch, [&](const Json& metric) { branch.add(metric_text(metric)); });
  const Json environment = pair.value("environment", Json());
  if (!environment.is_object()) return;
  for (const Json& difference : environment.value("differences", Json::array())) {
    if (text_of(difference, "class") == "identity") continue;
    branch.add("other surroundings: " + text_of(difference, "name") + ": " +
               text_of(difference, "a") + " against " + text_of(difference, "b"));
  }
}

void add_overhead(const Json& overhead, Branch& to) {
  if (!overhead.is_object()) return;
  const Json bounds = overhead.value("one_sided_bounds", Json());
  const Json ratio = overhead.value("ratio", Json());
  if (!ratio.is_number()) return;
  std::string text = fmt::format("ratio {:.4f}", ratio.get<double>());
  if (bounds.is_array() && bounds.size() == 2 && bounds[0].is_number() && bounds[1].is_number()) {
    text += fmt::format(", one-sided bounds {:.4f} and {:.4f}", bounds[0].get<double>(),
                        bounds[1].get<double>());
  }
  to.add(text);
}

/// What was measured comes first; what holds nothing is counted only.
void add_files(const std::string& evidence, const Json& files, Branch& to) {
  const auto rank = [](const Json& file) {
    const std::string kind = text_of(file, "kind");
    return kind == "metrics" ? 0 : kind == "trace" ? 1 : kind == "checkpoint" ? 2 : 3;
  };
  std::vector<Json> full;
  for (const Json& file : files) {
    if (file.value("size", std::uint64_t{0}) > 0) full.push_back(file);
  }
  std::stable_sort(full.begin(), full.end(),
                   [&](const Json& a, const Json& b) { return rank(a) < rank(b); });
  std::string text = "evidence " + brief(evidence) + ": " + plural(files.size(), "file");
  if (const std::size_t empty = files.size() - full.size(); empty > 0) {
    text += ", " + std::to_string(empty) + " of them empty";
  }
  Branch& branch = to.add(text);
  some_of(full, "files", branch, [&](const Json& file) {
    branch.add(fmt::format("{}: {}, {} bytes, {}{}", text_of(file, "path"), text_of(file, "kind"),
                           file.value("size", std::uint64_t{0}), brief(text_of(file, "digest")),
                           file.value("stored", true) ? "" : ", its digest alone"));
  });
}

void add_attempt(const Json& attempt, Branch& to) {
  const std::string job = text_of(attempt, "job");
  std::string text = "attempt " + attempt.at("number").dump() + ": " +
                     (job.empty() ? "no job" : "job " + job.substr(0, 24));
  if (const std::string state = text_of(attempt, "state"); !state.empty()) text += ", " + state;
  if (const std::string failure = text_of(attempt, "failure"); !failure.empty()) {
    text += ", " + text_of(attempt, "failure_class") + " failure: " + failure;
  }
  Branch& branch = to.add(text);
  const auto nodes = attempt.value("nodes", std::vector<std::string>());
  if (!nodes.empty()) {
    branch.add(plural(nodes.size(), "node") + ": " + scheduler::compress_hostlist(nodes));
  }
}

void add_run(const Json& run, Branch& to) {
  Branch& branch = to.add(text_of(run, "run") + ": arm " + text_of(run, "arm"));
  if (const std::string evidence = text_of(run, "evidence"); !evidence.empty()) {
    add_files(evidence, run.at("files"), branch);
  } else {
    branch.add("no evidence");
  }
  for (const Json& attempt : run.at("attempts")) add_attempt(attempt, branch);
}

void add_basis(const Json& all, Branch& root) {
  const Json& bundle = all.at("bundle");
  const policy::Scale size{all.at("topology").value("nodes", 0U),
                           all.at("topology").value("gpus_per_node", 0U)};
  root.add("bundle " + text_of(bundle, "name") + " " + brief(text_of(bundle, "digest")) + ": " +
           text_of(bundle, "recipe") + " recipe, " + size.str() +
           (bundle.value("dirty", Json()) == true ? ", dirty" : ""));
  root.add(
      "policy " + brief(text_of(all, "policy")) + ", plan " + brief(text_of(all, "plan")) +
      ", by " + text_of(all, "scheduler") +
      (text_of(all, "reservation").empty() ? "" : ", reservation " + text_of(all, "reservation")));
}

}  // namespace

Branch explanation_tree(const Json& all) {
  const std::string verdict = text_of(all, "verdict");
  const std::string level = text_of(all, "level");
  Branch root{text_of(all, "qualification") + ": " + (verdict.empty() ? "not judged" : verdict) +
              (level.empty() ? "" : " at " + level + ", a " + text_of(all, "claim")) + " (gate " +
              text_of(all, "gate") + ", " + text_of(all, "kind") + ")"};
  for (const Json& reason : all.at("reasons")) root.add("why: " + reason.get<std::string>());
  for (const Json& limit : all.at("limits")) root.add("limit: " + limit.get<std::string>());
  if (const std::string by = text_of(all, "cancelled"); !by.empty()) root.add("given up by " + by);
  add_basis(all, root);
  if (const Json& pairs = all.at("comparisons"); !pairs.empty()) {
    Branch& branch = root.add("comparisons, judged " + text_of(all, "judged").substr(0, 19) + "Z");
    add_overhead(all.at("overhead"), branch);
    some_of(pairs, "pairs", branch, [&](const Json& pair) { add_comparison(pair, branch); });
  }
  Branch& runs = root.add("runs");
  if (const Json& baseline = all.at("baseline"); baseline.is_object()) {
    Branch& branch =
        runs.add("baseline " + text_of(baseline, "name") + ": run " + text_of(baseline, "run") +
                 " of certificate " + brief(text_of(baseline, "certificate")) + ", bundle " +
                 brief(text_of(baseline, "bundle")));
    add_files(text_of(baseline, "evidence"), baseline.at("files"), branch);
  }
  for (const Json& run : all.at("runs")) add_run(run, runs);
  const std::string certificate = text_of(all, "certificate");
  root.add(certificate.empty() ? "no certificate"
                               : "certificate " + brief(certificate) + ": qualify cert verify " +
                                     brief(certificate));
  return root;
}

}  // namespace qualify::cli
