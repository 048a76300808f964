#include "qualify/traces/localize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "classify.hpp"
#include "pool.hpp"
#include "qualify/base/parallel.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "rank_report.hpp"

namespace qualify::traces {

namespace {

/// Threads share texts out, so that the names of thousands of ranks are hashed once a thread; more
/// than this are let go.
constexpr std::size_t kMostTexts = 100'000;

/// A rank that both runs have.
struct Pair {
  std::int64_t rank = 0;
  std::size_t in_a = 0;
  std::size_t in_b = 0;
  std::vector<std::int64_t> differing;  ///< iterations, ascending
};

class Localizer {
 public:
  Localizer(const TraceSet& a, const TraceSet& b, const LocalizeOptions& options)
      : a_(a), b_(b), options_(options) {}

  Result<Localization> run() {
    if (auto good = check_manifests(); !good) return tl::unexpected(good.error());
    if (!a_.sealed() && !b_.sealed()) {
      if (auto good = check_schemas(); !good) return tl::unexpected(good.error());
    }
    if (auto good = read_faults(); !good) return tl::unexpected(good.error());
    pair_ranks();
    if (auto good = compare_roots(); !good) return tl::unexpected(good.error());
    if (options_.full) {
      if (auto good = compare_values(); !good) return tl::unexpected(good.error());
    }
    for (const Pair& pair : pairs_) {
      if (!pair.differing.empty()) found_.differing_ranks.push_back(pair.rank);
    }
    if (found_.differing_ranks.empty()) return settle_equality();
    // Sealed ones name it in their ranks' files, which equal roots save from being opened.
    if (auto good = check_schemas(); !good) return tl::unexpected(good.error());
    found_.outcome = Outcome::differs;
    found_.heals = !iterations_.empty() && found_.differing_iterations.back() < iterations_.back();
    if (auto good = find_frontier(); !good) return tl::unexpected(good.error());
    return std::move(found_);
  }

 private:
  Result<void> check_manifests() {
    if (a_.roots().manifest == b_.roots().manifest && a_.roots().manifest != Digest()) return {};
    auto in_a = a_.manifest();
    if (!in_a) return tl::unexpected(in_a.error());
    auto in_b = b_.manifest();
    if (!in_b) return tl::unexpected(in_b.error());
    if (!in_a->present && !in_b->present) {
      found_.reasons.push_back(
          "neither run has a manifest: that both are of one model, data and seed is taken on "
          "trust");
    }
    const auto different = differences(*in_a, *in_b, options_.allowed);
    if (!different.empty()) {
      Error error{Errc::refused,
                  "the runs are not of one thing and are not compared",
                  {},
                  "--allow NAME for what may differ, such as code; never ranks, groups or capture",
                  {}};
      for (const std::string& line : different) {
        error.others.push_back({Errc::refused, line, "manifests", {}, {}});
      }
      return tl::unexpected(error);
    }
    return {};
  }

  /// The same training in the other schema is other events, not a divergence.
  Result<void> check_schemas() {
    const auto of_a = a_.schema();
    if (!of_a) return tl::unexpected(of_a.error());
    const auto of_b = b_.schema();
    if (!of_b) return tl::unexpected(of_b.error());
    if (*of_a == *of_b || of_a->empty() || of_b->empty()) return {};
    return fail(Errc::refused,
                "the runs are recorded in two schemas: " + *of_a + " in A, " + *of_b + " in B", {},
                "record both by the same tracer");
  }

  Result<void> read_faults() {
    auto of_a = a_.faults();
    if (!of_a) return tl::unexpected(of_a.error());
    auto of_b = b_.faults();
    if (!of_b) return tl::unexpected(of_b.error());
    found_.faults_a = std::move(*of_a);
    found_.faults_b = std::move(*of_b);
    const auto say = [&](const char* side, const Faults& faults) {
      if (faults.empty()) return;
      incomplete_ = true;
      found_.reasons.push_back(
          fmt::format("{} is incomplete: {}{}", side, faults.front().message,
                      faults.size() > 1 ? fmt::format(" and {} more faults", faults.size() - 1)
                                        : std::string()));
    };
    say("A", found_.faults_a);
    say("B", found_.faults_b);
    return {};
  }

  void pair_ranks() {
    const auto& of_a = a_.roots().ranks;
    const auto& of_b = b_.roots().ranks;
    std::vector<std::int64_t> only_a;
    std::vector<std::int64_t> only_b;
    pairs_.reserve(std::min(of_a.size(), of_b.size()));
    for (std::size_t i = 0, j = 0; i < of_a.size() || j < of_b.size();) {
      if (j == of_b.size() || (i < of_a.size() && of_a[i] < of_b[j])) {
        only_a.push_back(of_a[i++]);
      } else if (i == of_a.size() || of_b[j] < of_a[i]) {
        only_b.push_back(of_b[j++]);
      } else {
        pairs_.push_back({of_a[i], i, j, {}});
        ++i;
        ++j;
      }
    }
    say_only("ranks", only_a, only_b);
    found_.ranks = pairs_.size();
  }

  void say_only(const char* what, const std::vector<std::int64_t>& only_a,
                const std::vector<std::int64_t>& only_b) {
    for (const auto& [side, list] : {std::pair("A", &only_a), std::pair("B", &only_b)}) {
      if (list->empty()) continue;
      incomplete_ = true;
      found_.reasons.push_back(fmt::format("only {} has {} {}", side, what, ranks_text(*list)));
    }
  }

  Result<void> compare_roots() {
    const Roots& x = a_.roots();
    const Roots& y = b_.roots();
    std::vector<std::pair<std::size_t, std::size_t>> columns;
    std::vector<std::int64_t> only_a;
    std::vector<std::int64_t> only_b;
    const auto wanted = [&](std::int64_t iteration) {
      return iteration >= options_.from_iteration && iteration <= options_.to_iteration;
    };
    for (std::size_t i = 0, j = 0; i < x.iterations.size() || j < y.iterations.size();) {
      if (j == y.iterations.size() ||
          (i < x.iterations.size() && x.iterations[i] < y.iterations[j])) {
        if (wanted(x.iterations[i])) only_a.push_back(x.iterations[i]);
        ++i;
      } else if (i == x.iterations.size() || y.iterations[j] < x.iterations[i]) {
        if (wanted(y.iterations[j])) only_b.push_back(y.iterations[j]);
        ++j;
      } else {
        if (wanted(x.iterations[i])) {
          columns.emplace_back(i, j);
          iterations_.push_back(x.iterations[i]);
        }
        ++i;
        ++j;
      }
    }
    say_only("iterations", only_a, only_b);
    found_.iterations = iterations_.size();
    if (pairs_.empty() || columns.empty()) {
      return fail(Errc::refused, "the runs have no rank and iteration in common",
                  a_.folder().string() + ", " + b_.folder().string());
    }
    if (same_rows(x, y)) return {};  // one memcmp for all that is equal
    std::set<std::int64_t> differing;
    for (Pair& pair : pairs_) {
      for (const auto& [i, j] : columns) {
        const Hash& one = x.at(pair.in_a, i);
        const Hash& other = y.at(pair.in_b, j);
        if (one == other) {
          incomplete_ = incomplete_ || one == Hash{};
          continue;
        }
        if (one == Hash{} || other == Hash{}) {  // one side lacks it: a fault, no difference
          incomplete_ = true;
          continue;
        }
        pair.differing.push_back(x.iterations[i]);
        differing.insert(x.iterations[i]);
      }
    }
    found_.differing_iterations.assign(differing.begin(), differing.end());
    return {};
  }

  bool same_rows(const Roots& x, const Roots& y) const {
    return x.hashes == y.hashes && x.ranks == y.ranks && x.iterations == y.iterations &&
           x.complete && y.complete;
  }

  /// Every value: files byte by byte, and by value where bytes differ. Roots that say otherwise
  /// lie.
  Result<void> compare_values() {
    if (a_.sealed() && b_.sealed()) {
      std::vector<std::optional<Error>> errors(pairs_.size());
      for_each_index(pairs_.size(), options_.jobs, [&](std::size_t i) {
        if (auto good = compare_values(pairs_[i]); !good) errors[i] = good.error();
      });
      for (auto& error : errors) {
        if (error) return tl::unexpected(*error);
      }
    }
    found_.full = true;
    return {};
  }

  Result<void> compare_values(const Pair& pair) {
    const auto files_a = a_.files(pair.in_a);
    const auto files_b = b_.files(pair.in_b);
    bool same = files_a.size() == files_b.size();
    bool identical = same;
    for (std::size_t i = 0; i < std::max(files_a.size(), files_b.size()); ++i) {
      if (i < files_a.size() && i < files_b.size()) {
        const auto bytes = SealedFile::same_bytes(files_a[i], files_b[i]);
        if (!bytes) return tl::unexpected(bytes.error());
        if (*bytes) continue;
      }
      identical = false;
      std::optional<SealedFile> one;
      std::optional<SealedFile> other;
      for (const auto& [files, to] : {std::pair(&files_a, &one), std::pair(&files_b, &other)}) {
        if (i >= files->size()) continue;
        auto file = SealedFile::open((*files)[i]);
        if (!file) return tl::unexpected(file.error());
        *to = std::move(*file);
      }
      if (one && other) {
        const auto equal = SealedFile::same_values(*one, *other);
        if (!equal) return tl::unexpected(equal.error());
        if (*equal && pack(one->summary()) == pack(other->summary())) continue;
        same = same && *equal;
      }
      for (const auto* file : {&one, &other}) {
        if (!*file) continue;
        if (auto good = (*file)->check(); !good) return good;
      }
    }
    // The same bytes are the same values, whatever anybody says of them.
    if (identical && pair.differing.empty()) return {};
    // Files that are as their summaries say, and roots that are not.
    if (auto good = a_.summary(pair.in_a); !good) return tl::unexpected(good.error());
    if (auto good = b_.summary(pair.in_b); !good) return tl::unexpected(good.error());
    if (!same && pair.differing.empty() && iterations_.size() == a_.roots().iterations.size()) {
      return fail(Errc::integrity,
                  fmt::format("rank {} differs in values and not in its roots", pair.rank),
                  a_.folder().string(), "seal both traces again");
    }
    return {};
  }

  Result<Localization> settle_equality() {
    found_.outcome = incomplete_ ? Outcome::inconclusive : Outcome::equal;
    if (found_.outcome == Outcome::equal && !found_.full && (a_.sealed() || b_.sealed())) {
      found_.reasons.push_back(
          "by the sealed roots; --full compares the values themselves and finds roots that lie");
    }
    return std::move(found_);
  }

  /// The reports of all pairs in `which` that differ in `iteration`.
  Result<std::vector<RankReport>> read_reports(const std::vector<std::size_t>& which,
                                               std::int64_t iteration) {
    std::vector<RankReport> reports(which.size());
    for_each_index(which.size(), options_.jobs, [&](std::size_t i) {
      auto strings = pool_.take();
      const Pair& pair = pairs_[which[i]];
      reports[i] = report_rank(a_, pair.in_a, b_, pair.in_b, iteration, *strings);
      if (strings->size() <= kMostTexts) pool_.give(std::move(strings));
    });
    for (RankReport& report : reports) {
      if (report.error) return tl::unexpected(*report.error);
      found_.events_read += report.events;
    }
    return reports;
  }

  /// Ranks that something from `from` reaches by groups, in an iteration or more.
  [[nodiscard]] std::set<std::int64_t> reached(std::set<std::int64_t> from,
                                               const Manifest& manifest) const {
    if (manifest.groups.empty()) {  // nothing says that any rank is apart
      for (const Pair& pair : pairs_) from.insert(pair.rank);
      return from;
    }
    for (bool grows = true; grows;) {
      grows = false;
      for (const auto& [name, ranks] : manifest.groups) {
        const auto in = [&](std::int64_t rank) { return from.contains(rank); };
        if (std::none_of(ranks.begin(), ranks.end(), in) ||
            std::all_of(ranks.begin(), ranks.end(), in)) {
          continue;
        }
        from.insert(ranks.begin(), ranks.end());
        grows = true;
      }
    }
    return from;
  }

  Result<void> find_frontier() {
    const auto manifest = a_.manifest();
    if (!manifest) return tl::unexpected(manifest.error());
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!pairs_[i].differing.empty()) left.push_back(i);
    }
    while (!left.empty()) {
      std::int64_t iteration = INT64_MAX;
      for (const std::size_t i : left) iteration = std::min(iteration, pairs_[i].differing.front());
      std::vector<std::size_t> now;
      for (const std::size_t i : left) {
        if (pairs_[i].differing.front() == iteration) now.push_back(i);
      }
      if (auto good = add_frontier(now, iteration, *manifest); !good) return good;
      std::set<std::int64_t> ranks;
      for (const std::size_t i : now) ranks.insert(pairs_[i].rank);
      // What differs later on ranks that these can't have reached has another origin.
      const auto reach = reached(std::move(ranks), *manifest);
      std::erase_if(left, [&](std::size_t i) { return reach.contains(pairs_[i].rank); });
    }
    std::set<std::int64_t> origins;
    for (const FrontierEvent& event : found_.frontier)
      origins.insert(event.ranks.begin(), event.ranks.end());
    for (const std::int64_t rank : found_.differing_ranks) {
      if (!origins.contains(rank)) found_.followers.push_back(rank);
    }
    return {};
  }

  Result<void> add_frontier(const std::vector<std::size_t>& which, std::int64_t iteration,
                            const Manifest& manifest) {
    auto reports = read_reports(which, iteration);
    if (!reports) return tl::unexpected(reports.error());
    std::vector<std::uint32_t> first(reports->size(), kNever);
    std::vector<Crossing> crossings;
    for (std::size_t i = 0; i < reports->size(); ++i) {
      RankReport& report = (*reports)[i];
      if (!report.first) {
        return fail(Errc::integrity,
                    fmt::format("rank {} has two roots and one content in iteration {}",
                                pairs_[which[i]].rank, iteration),
                    a_.folder().string(), "seal both traces again");
      }
      first[i] = static_cast<std::uint32_t>(report.first->divergence.at_a);
      for (Crossing crossing : report.crossings) {
        crossing.rank = static_cast<std::uint32_t>(i);
        crossings.push_back(crossing);
      }
      report.crossings = {};
    }
    const auto arrives = earliest_arrivals(first, std::move(crossings));
    std::vector<const RankReport*> minimal;
    for (std::size_t i = 0; i < reports->size(); ++i) {
      if (first[i] < arrives[i]) minimal.push_back(&(*reports)[i]);
    }
    // Each was reached by another, in a circle: exchanges are recorded in the order in which they
    // were posted, which need not be that of their ends. Then none is known to follow.
    if (minimal.empty()) {
      for (const RankReport& report : *reports) minimal.push_back(&report);
    }
    const Neighbours neighbours{
        [&](std::int64_t rank) {
          const auto at = std::lower_bound(
              pairs_.begin(), pairs_.end(), rank,
              [](const Pair& pair, std::int64_t number) { return pair.rank < number; });
          return at != pairs_.end() && at->rank == rank;
        },
        manifest};
    const bool earliest = found_.frontier.empty();
    for (FrontierEvent& event : frontier_events(minimal, neighbours)) {
      found_.frontier.push_back(std::move(event));
    }
    if (earliest && !found_.frontier.empty()) {
      found_.capture_plan =
          next_capture(found_.frontier.front(), *reports, manifest, found_.capture_reason);
    }
    return {};
  }

  const TraceSet& a_;
  const TraceSet& b_;
  const LocalizeOptions& options_;
  Localization found_;
  std::vector<Pair> pairs_;
  std::vector<std::int64_t> iterations_;  ///< that both have and are wanted
  bool incomplete_ = false;
  Pool<Strings> pool_;
};

}  // namespace

Result<Localization> localize(const TraceSet& a, const TraceSet& b,
                              const LocalizeOptions& options) {
  return Localizer(a, b, options).run();
}

}  // namespace qualify::traces
