#include "qualify/traces/trace_set.hpp"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/base/files.hpp"
#include "qualify/base/parallel.hpp"
#include "qualify/traces/raw.hpp"
#include "qualify/traces/seal.hpp"
#include "qualify/traces/sealed_file.hpp"

namespace qualify::traces {

namespace {

constexpr std::uint64_t kLargestRecord = 1U << 30U;

/// A raw rank after its first reading.
struct Scanned {
  RankSummary summary;
  std::vector<RawPlace> starts;  ///< by iteration
  RawEnd end;
  std::optional<Error> error;
};

Scanned scan(const RawRank& rank, const Manifest& manifest) {
  Scanned scanned;
  Strings strings;
  Summariser summariser(scanned.summary);
  std::int64_t iteration = -1;
  const auto read = read_raw(rank, manifest, {}, strings, scanned.end,
                             [&](const Event& event, const RawPlace& place) {
                               if (event.iteration != iteration) {
                                 iteration = event.iteration;
                                 scanned.starts.push_back(place);
                               }
                               summariser.add(event, strings);
                               return true;
                             });
  if (!read) scanned.error = read.error();
  summariser.finish();
  return scanned;
}

bool same_nodes(const RankSummary& fresh, const IterationSummary& kept,
                const std::vector<std::string>& kept_names) {
  const auto& nodes = fresh.iterations.front().nodes;
  return std::equal(nodes.begin(), nodes.end(), kept.nodes.begin(), kept.nodes.end(),
                    [&](const Node& a, const Node& b) {
                      return a.hash == b.hash && a.rows == b.rows && a.kind == b.kind &&
                             fresh.names[a.name] == kept_names[b.name];
                    });
}

}  // namespace

struct TraceSet::State {
  fs::path folder;
  bool sealed = false;
  Roots roots;
  // raw
  RawTrace raw;
  std::vector<Scanned> scanned;
  Faults faults;

  Result<Json> record(const char* name) const {
    const auto text = read_file(folder / name, kLargestRecord);
    if (!text) return tl::unexpected(text.error());
    return parse_json(*text, (folder / name).string());
  }

  Result<void> check_root(std::size_t rank, const IterationSummary& summary,
                          const std::string& where) const {
    const auto at =
        std::lower_bound(roots.iterations.begin(), roots.iterations.end(), summary.iteration);
    if (at != roots.iterations.end() && *at == summary.iteration &&
        roots.at(rank, static_cast<std::size_t>(at - roots.iterations.begin())) == summary.root) {
      return {};
    }
    return fail(Errc::integrity,
                "the summary of iteration " + std::to_string(summary.iteration) +
                    " is not the one that the roots name",
                where, "seal the trace again from its source; it matches nothing as it is");
  }

  Result<Iteration> read_sealed(std::size_t rank, std::int64_t number, Strings& strings) const {
    const fs::path path = folder / sealed_name(roots.ranks[rank], number, roots.window);
    const auto file = SealedFile::open(path);
    if (!file) return tl::unexpected(file.error());
    Iteration found;
    auto events = file->read(number, strings);
    if (!events) return tl::unexpected(events.error());
    found.events = std::move(*events);
    RankSummary fresh;
    Summariser summariser(fresh);
    for (const Event& event : found.events) summariser.add(event, strings);
    summariser.finish();
    for (const IterationSummary& kept : file->summary().iterations) {
      if (kept.iteration != number) continue;
      const bool lies = fresh.iterations.size() != 1 ||
                        fresh.iterations.front().iteration != number ||
                        fresh.iterations.front().root != kept.root ||
                        !same_nodes(fresh, kept, file->summary().names);
      if (lies) {
        return fail(
            Errc::integrity,
            "the summary of iteration " + std::to_string(number) + " is not that of its rows",
            path.string(), "seal the trace again from its source");
      }
    }
    if (fresh.iterations.empty()) {
      return fail(Errc::integrity,
                  "iteration " + std::to_string(number) + " is in the roots and not in the file",
                  path.string(), "seal the trace again from its source");
    }
    if (auto good = check_root(rank, fresh.iterations.front(), path.string()); !good)
      return tl::unexpected(good.error());
    found.summary = fresh.iterations.front();
    found.names = std::move(fresh.names);
    return found;
  }

  Result<Iteration> read_raw_iteration(std::size_t rank, std::int64_t number,
                                       Strings& strings) const {
    const Scanned& one = scanned[rank];
    Iteration found;
    for (std::size_t i = 0; i < one.summary.iterations.size(); ++i) {
      if (one.summary.iterations[i].iteration != number) continue;
      RawReading reading;
      reading.from = one.starts[i];
      reading.to_iteration = number;
      RawEnd end;
      const auto read = read_raw(raw.ranks[rank], raw.manifest, reading, strings, end,
                                 [&](const Event& event, const RawPlace&) {
                                   found.events.push_back(event);
                                   return true;
                                 });
      if (!read) return tl::unexpected(read.error());
      found.summary = one.summary.iterations[i];
      found.names = one.summary.names;
    }
    return found;
  }
};

TraceSet::TraceSet(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceSet::TraceSet(TraceSet&&) noexcept = default;
TraceSet& TraceSet::operator=(TraceSet&&) noexcept = default;
TraceSet::~TraceSet() = default;

Result<TraceSet> TraceSet::open(const fs::path& folder, const Options& options) {
  return open(folder, read_roots(folder), options);
}

Result<std::pair<TraceSet, TraceSet>> TraceSet::open_both(const fs::path& a, const fs::path& b,
                                                          const Options& options) {
  auto [roots_a, roots_b] = read_both_roots(a, b);
  auto opened_a = open(a, std::move(roots_a), options);
  if (!opened_a) return tl::unexpected(opened_a.error());
  auto opened_b = open(b, std::move(roots_b), options);
  if (!opened_b) return tl::unexpected(opened_b.error());
  return std::pair(std::move(*opened_a), std::move(*opened_b));
}

Result<TraceSet> TraceSet::open(const fs::path& folder, Result<Roots> roots,
                                const Options& options) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  if (roots) {
    state->sealed = true;
    state->roots = std::move(*roots);
    return TraceSet(std::move(state));
  }
  if (roots.error().code != Errc::not_found) return tl::unexpected(roots.error());
  auto raw = find_raw(folder);
  if (!raw) {
    std::error_code error;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      const std::string name = at->path().filename().string();
      if (!name.ends_with(".arrow") && !name.ends_with(".unsealed")) continue;
      return fail(Errc::refused, "the trace is not sealed to its end: it has no roots",
                  folder.string(), "qualify trace seal SOURCE --output " + folder.string());
    }
    return tl::unexpected(raw.error());
  }
  state->raw = std::move(*raw);
  auto& ranks = state->raw.ranks;
  state->scanned.resize(ranks.size());
  std::atomic<std::size_t> done{0};
  for_each_index(ranks.size(), options.jobs, [&](std::size_t i) {
    state->scanned[i] = scan(ranks[i], state->raw.manifest);
    if (options.progress) options.progress(++done, ranks.size());
  });
  state->faults = state->raw.faults;
  std::set<std::int64_t> iterations;
  std::set<std::string> schemas;
  for (const Scanned& one : state->scanned) {
    if (one.error) return tl::unexpected(*one.error);
    for (const auto& iteration : one.summary.iterations) iterations.insert(iteration.iteration);
    for (const Fault& fault : one.end.faults) state->faults.push_back(fault);
    if (!one.end.schema.empty()) schemas.insert(one.end.schema);
  }
  if (schemas.size() > 1) {
    state->faults.push_back(mixed_schemas(state->raw.folder));
  }
  Roots& to = state->roots;
  to.iterations.assign(iterations.begin(), iterations.end());
  to.hashes.reset(ranks.size() * to.iterations.size());
  std::vector<std::int64_t> lacking;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    to.ranks.push_back(ranks[i].rank);
    const auto& own = state->scanned[i].summary.iterations;
    for (const auto& iteration : own) {
      const auto at =
          std::lower_bound(to.iterations.begin(), to.iterations.end(), iteration.iteration);
      to.hashes[i * to.iterations.size() + static_cast<std::size_t>(at - to.iterations.begin())] =
          iteration.root;
    }
    if (own.size() < to.iterations.size()) lacking.push_back(ranks[i].rank);
  }
  if (!lacking.empty()) {
    state->faults.push_back({"truncated",
                             "ranks " + ranks_text(lacking) + " lack iterations that others have",
                             state->raw.folder.string()});
  }
  to.complete = state->faults.empty();
  if (state->raw.manifest.present) to.manifest = digest_of(to_json(state->raw.manifest));
  return TraceSet(std::move(state));
}

const fs::path& TraceSet::folder() const {
  return state_->folder;
}
bool TraceSet::sealed() const {
  return state_->sealed;
}
const Roots& TraceSet::roots() const {
  return state_->roots;
}

Result<Manifest> TraceSet::manifest() const {
  if (!state_->sealed) return state_->raw.manifest;
  if (state_->roots.manifest == Digest()) return Manifest{};
  const auto json = state_->record(kManifestName);
  if (!json) return tl::unexpected(json.error());
  const std::string where = (state_->folder / kManifestName).string();
  auto manifest = parse_manifest(*json, where);
  if (!manifest) return tl::unexpected(manifest.error());
  if (digest_of(to_json(*manifest)) != state_->roots.manifest) {
    return fail(Errc::integrity, "the manifest is not the one that was sealed", where,
                "seal the trace again from its source");
  }
  return manifest;
}

Result<Faults> TraceSet::faults() const {
  if (!state_->sealed) return state_->faults;
  Faults faults;
  if (state_->roots.complete) return faults;
  const auto json = state_->record(kSealName);
  if (!json) return tl::unexpected(json.error());
  const auto list = json->find("faults");
  if (list != json->end() && list->is_array()) {
    for (const Json& one : *list) {
      if (!one.is_object()) continue;
      faults.push_back({one.value("code", ""), one.value("message", ""), one.value("where", "")});
    }
  }
  if (faults.empty()) faults.push_back({"unsealed", "sealed as incomplete", folder().string()});
  return faults;
}

Result<std::string> TraceSet::schema() const {
  if (!state_->sealed) {
    return state_->scanned.empty() ? std::string() : state_->scanned.front().end.schema;
  }
  for (const fs::path& path : files(0)) {
    const auto file = SealedFile::open(path);
    if (!file) return tl::unexpected(file.error());
    return file->source().schema;
  }
  return std::string();
}

Result<TraceSet::Iteration> TraceSet::read(std::size_t rank_index, std::int64_t iteration,
                                           Strings& strings) const {
  const auto& all = state_->roots.iterations;
  const auto at = std::lower_bound(all.begin(), all.end(), iteration);
  if (at == all.end() || *at != iteration ||
      state_->roots.at(rank_index, static_cast<std::size_t>(at - all.begin())) == Hash{}) {
    return Iteration{};
  }
  return state_->sealed ? state_->read_sealed(rank_index, iteration, strings)
                        : state_->read_raw_iteration(rank_index, iteration, strings);
}

Result<RankSummary> TraceSet::summary(std::size_t rank_index) const {
  if (!state_->sealed) return state_->scanned[rank_index].summary;
  RankSummary all;
  for (const fs::path& path : files(rank_index)) {
    const auto file = SealedFile::open(path);
    if (!file) return tl::unexpected(file.error());
    const RankSummary& part = file->summary();
    const auto base = static_cast<std::uint32_t>(all.names.size());
    all.names.insert(all.names.end(), part.names.begin(), part.names.end());
    for (IterationSummary iteration : part.iterations) {
      if (auto good = state_->check_root(rank_index, iteration, path.string()); !good)
        return tl::unexpected(good.error());
      for (Node& node : iteration.nodes) node.name += base;
      all.iterations.push_back(std::move(iteration));
    }
  }
  return all;
}

std::vector<fs::path> TraceSet::files(std::size_t rank_index) const {
  std::vector<fs::path> paths;
  if (!state_->sealed) return paths;
  const Roots& roots = state_->roots;
  for (std::size_t i = 0; i < roots.iterations.size(); ++i) {
    if (roots.at(rank_index, i) == Hash{}) continue;
    fs::path path =
        folder() / sealed_name(roots.ranks[rank_index], roots.iterations[i], roots.window);
    if (paths.empty() || paths.back() != path) paths.push_back(std::move(path));
  }
  return paths;
}

}  // namespace qualify::traces
