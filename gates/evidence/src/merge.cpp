#include <algorithm>
#include <set>

#include "source.hpp"

namespace qualify::evidence {

namespace {

/// How good a series is as evidence: exact values first, then how many.
struct Quality {
  bool all_exact = true;
  std::size_t count = 0;
  auto operator<=>(const Quality&) const = default;
};

/// Adds a later file of the same format to the first: a restarted run goes on in new files.
void append(Source& run, Source next) {
  for (auto& [name, series] : next.series) {
    Series& to = run.series_named(name);
    for (const auto& [iteration, scalar] : series.values) {
      const std::string shown = run.file;
      run.file = next.file;
      run.add(to, iteration, scalar, "", true);
      run.file = shown;
    }
  }
  run.faults.insert(run.faults.end(), next.faults.begin(), next.faults.end());
  run.artefacts.insert(run.artefacts.end(), next.artefacts.begin(), next.artefacts.end());
}

}  // namespace

bool shares_marks(const RunMetrics& a, const RunMetrics& b) {
  const auto words = [](const std::string& text) {
    std::set<std::string> set;
    for (std::size_t at = 0; at < text.size();) {
      const auto space = std::min(text.find(' ', at), text.size());
      set.insert(text.substr(at, space - at));
      at = space + 1;
    }
    return set;
  };
  const auto in_a = words(a.wall_clock_marks);
  const auto in_b = words(b.wall_clock_marks);
  return std::any_of(in_a.begin(), in_a.end(),
                     [&](const std::string& word) { return in_b.contains(word); });
}

RunMetrics merge(std::vector<Source> sources) {
  RunMetrics run;
  // Formats keep the order in which they are tried; files of one go by their first time, then name.
  std::map<std::string, std::vector<Source>> by_format;
  for (Source& source : sources) {
    run.sources.push_back(source.file);
    by_format[source.format].push_back(std::move(source));
  }
  std::vector<Source> wholes;
  for (const Format& format : formats()) {
    const auto found = by_format.find(format.name);
    if (found == by_format.end()) continue;
    std::vector<Source>& files = found->second;
    std::sort(files.begin(), files.end(), [](const Source& a, const Source& b) {
      return std::tie(a.order_key, a.file) < std::tie(b.order_key, b.file);
    });
    Sha256 marks;
    std::size_t mark_count = 0;
    std::map<std::string, std::string> seen;
    for (Source& file : files) {
      const std::string digest = file.finish_marks();
      if (file.mark_count < 2) continue;  // a header says nothing about which run it was
      const auto [first, fresh] = seen.emplace(digest, file.file);
      if (!fresh) {
        run.faults.push_back({"copied-file",
                              "has the same wall-clock times as " + first->second +
                                  ": one file twice is not two parts of a run",
                              file.file,
                              {},
                              {}});
      }
      marks.update(digest);
      mark_count += file.mark_count;
    }
    if (mark_count > 0) {
      if (!run.wall_clock_marks.empty()) run.wall_clock_marks += ' ';
      run.wall_clock_marks += std::string(format.name) + ":" + marks.finish().hex();
    }
    if (!run.format.empty()) run.format += '+';
    run.format += format.name;
    Source whole = std::move(files.front());
    for (std::size_t i = 1; i < files.size(); ++i) append(whole, std::move(files[i]));
    wholes.push_back(std::move(whole));
  }

  std::map<std::string, std::pair<Quality, std::size_t>> best;  // metric -> whose it is
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    for (const auto& [name, series] : wholes[i].series) {
      const Quality quality{series.values.all_exact(), series.values.size()};
      const auto [found, fresh] = best.try_emplace(name, quality, i);
      if (!fresh && found->second.first < quality) found->second = {quality, i};
    }
  }
  for (std::size_t i = 0; i < wholes.size(); ++i) {
    const auto ours = [&](const std::string& metric) {
      const auto found = best.find(metric);
      return found == best.end() || found->second.second == i;
    };
    for (auto& [name, series] : wholes[i].series) {
      if (ours(name)) run.series[name] = std::move(series);
    }
    // What only concerns a metric that is taken from elsewhere concerns nobody.
    for (ReadFault& fault : wholes[i].faults) {
      if (fault.metric.empty() || ours(fault.metric)) run.faults.push_back(std::move(fault));
    }
    for (Artefact& artefact : wholes[i].artefacts) {
      if (ours(artefact.metric)) run.artefacts.push_back(std::move(artefact));
    }
  }
  return run;
}

}  // namespace qualify::evidence
