#include <algorithm>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/traces/raw.hpp"

namespace qualify::traces {

namespace {

constexpr std::uint64_t kLargestManifest = 256U << 20U;

/// The number in "rank_000007.jsonl"; -1: another name.
std::int64_t number_in(std::string_view name, std::string_view prefix, std::string_view suffix) {
  if (!name.starts_with(prefix) || !name.ends_with(suffix) ||
      name.size() <= prefix.size() + suffix.size()) {
    return -1;
  }
  name = name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  std::int64_t number = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc{} && stop == name.data() + name.size() && number >= 0 ? number : -1;
}

using ByRank = std::map<std::int64_t, RawRank>;

Result<void> add_rank_files(const fs::path& folder, std::int64_t iteration, ByRank& to,
                            Faults& faults) {
  std::error_code error;
  std::vector<fs::path> entries;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  if (error) return fail_errno(error.value(), "cannot list", folder.string());
  std::sort(entries.begin(), entries.end());
  for (const fs::path& path : entries) {
    const std::int64_t rank = number_in(path.filename().string(), "rank_", ".jsonl");
    if (rank < 0) continue;
    RawRank& entry = to[rank];
    entry.rank = rank;
    if (!entry.files.empty() && entry.files.back().iteration >= iteration) {
      faults.push_back({"duplicate-rank",
                        "rank " + std::to_string(rank) + " has two files: this and " +
                            entry.files.back().path.string(),
                        path.string()});
      continue;
    }
    entry.files.push_back({path, iteration});
  }
  return {};
}

Result<ByRank> rank_files(const fs::path& folder, Faults& faults) {
  ByRank ranks;
  if (auto good = add_rank_files(folder, -1, ranks, faults); !good)
    return tl::unexpected(good.error());
  std::map<std::int64_t, fs::path> iterations;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::int64_t iteration = number_in(at->path().filename().string(), "iter_", "");
    if (iteration >= 0) iterations.emplace(iteration, at->path());
  }
  for (const auto& [iteration, path] : iterations) {
    if (auto good = add_rank_files(path, iteration, ranks, faults); !good)
      return tl::unexpected(good.error());
  }
  for (auto& [rank, entry] : ranks) {
    // An iteration that one rank has no file of is a hole in that rank.
    if (iterations.empty() || entry.files.size() == iterations.size()) continue;
    faults.push_back({"missing-rank",
                      "rank " + std::to_string(rank) + " has files of " +
                          std::to_string(entry.files.size()) + " of " +
                          std::to_string(iterations.size()) + " iterations",
                      folder.string()});
  }
  return ranks;
}

}  // namespace

Faults rank_faults(const std::vector<std::int64_t>& ranks, const Manifest& manifest,
                   const std::string& where) {
  Faults faults;
  const std::int64_t world = manifest.world_size > 0 ? manifest.world_size
                             : ranks.empty()         ? 0
                                                     : ranks.back() + 1;
  std::vector<std::int64_t> missing;
  std::vector<std::int64_t> surplus;
  std::size_t at = 0;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (at < ranks.size() && ranks[at] == rank) {
      ++at;
    } else if (missing.size() < 100'000) {
      missing.push_back(rank);
    }
  }
  surplus.assign(ranks.begin() + static_cast<std::ptrdiff_t>(at), ranks.end());
  if (!missing.empty()) {
    faults.push_back({"missing-rank", "no trace of ranks " + ranks_text(missing), where});
  }
  if (!surplus.empty()) {
    faults.push_back({"surplus-rank",
                      "traces of ranks " + ranks_text(surplus) + ", but the manifest has " +
                          std::to_string(world) + " ranks",
                      where});
  }
  return faults;
}

Fault mixed_schemas(const fs::path& folder) {
  return {"mixed-schema", "some ranks wrote one schema, some the other", folder.string()};
}

Result<RawTrace> find_raw(const fs::path& folder) {
  RawTrace trace;
  trace.folder = folder;
  auto ranks = rank_files(folder, trace.faults);
  if (!ranks) return tl::unexpected(ranks.error());
  std::error_code ignored;
  if (ranks->empty() && fs::is_directory(folder / "traces", ignored)) {
    trace.folder = folder / "traces";
    ranks = rank_files(trace.folder, trace.faults);
    if (!ranks) return tl::unexpected(ranks.error());
  }
  if (ranks->empty()) {
    return fail(Errc::not_found, "no traces of ranks", folder.string(),
                "a folder with rank_000000.jsonl, … or iter_0000001/rank_00000.jsonl, …");
  }
  for (auto& [rank, entry] : *ranks) trace.ranks.push_back(std::move(entry));
  const fs::path file = trace.folder / kManifestName;
  if (fs::exists(file, ignored)) {
    auto text = read_file(file, kLargestManifest);
    if (!text) return tl::unexpected(text.error());
    const auto json = parse_json(*text, file.string());
    if (!json) return tl::unexpected(json.error());
    auto manifest = parse_manifest(*json, file.string());
    if (!manifest) return tl::unexpected(manifest.error());
    trace.manifest = std::move(*manifest);
    trace.manifest_text = std::move(*text);
  }
  std::vector<std::int64_t> numbers;
  for (const RawRank& rank : trace.ranks) numbers.push_back(rank.rank);
  for (Fault& fault : rank_faults(numbers, trace.manifest, trace.folder.string())) {
    trace.faults.push_back(std::move(fault));
  }
  return trace;
}

}  // namespace qualify::traces
