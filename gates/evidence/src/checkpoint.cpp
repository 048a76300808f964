// Checkpoint folders: which files, and the SHA-256 of each. docs/formats/checkpoint.md
// Layout: megatron/training/checkpointing.py (get_checkpoint_name,
// get_checkpoint_tracker_filename).

#include <algorithm>
#include <charconv>

#include "qualify/base/files.hpp"
#include "source.hpp"

namespace qualify::evidence {

namespace {

constexpr std::string_view kTracker = "latest_checkpointed_iteration.txt";

std::optional<std::int64_t> iteration_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  if (name == "release") return 0;
  if (!name.starts_with("iter_") || name.size() < 6) return std::nullopt;
  std::int64_t iteration = 0;
  const auto [stop, error] = std::from_chars(name.data() + 5, name.data() + name.size(), iteration);
  if (error != std::errc{} || stop != name.data() + name.size()) return std::nullopt;
  return iteration;
}

Result<void> read_iteration(Source& source, const fs::path& folder, std::int64_t iteration) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored)) files.push_back(it->path());
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  std::sort(files.begin(), files.end());
  bool distributed = false;
  bool complete = false;
  for (const fs::path& file : files) {
    const std::string name = file.lexically_relative(folder).string();
    distributed = distributed || name.ends_with(".distcp") || name == "common.pt";
    complete = complete || name == "metadata.json";
    const auto hashed = hash_file(file);
    if (!hashed) return tl::unexpected(hashed.error());
    source.add(source.series_named("checkpoint/" + name), iteration,
               of_digest(hashed->digest.hex(), Precision::sha256), "");
  }
  if (files.empty() || (distributed && !complete)) {
    source.fault("incomplete-checkpoint",
                 files.empty() ? "the checkpoint holds no file"
                               : "metadata.json, which is written last, is not there",
                 "/" + folder.filename().string());
  }
  return {};
}

}  // namespace

bool is_checkpoint(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / kTracker, error) ||
         (iteration_of(folder) &&
          (fs::exists(folder / "metadata.json", error) || fs::exists(folder / "common.pt", error)));
}

Result<Source> read_checkpoint(const fs::path& folder, std::shared_ptr<Spool> spool) {
  Source source(std::move(spool));
  source.format = "checkpoint";
  source.file = folder.string();
  if (const auto own = iteration_of(folder)) {
    if (auto done = read_iteration(source, folder, *own); !done)
      return tl::unexpected(done.error());
    return source;
  }
  std::vector<std::pair<std::int64_t, fs::path>> iterations;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const auto iteration = iteration_of(it->path());
    if (iteration && it->is_directory()) iterations.emplace_back(*iteration, it->path());
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  std::sort(iterations.begin(), iterations.end());
  for (const auto& [iteration, path] : iterations) {
    if (auto done = read_iteration(source, path, iteration); !done) {
      return tl::unexpected(done.error());
    }
  }
  std::string latest = "none";
  if (const auto tracker = read_file(folder / kTracker, 4096)) {
    latest = tracker->substr(0, tracker->find_first_of(" \r\n"));
  }
  const auto named = parse_number(latest);
  const bool there = std::any_of(iterations.begin(), iterations.end(), [&](const auto& one) {
    return latest == "release" ? one.second.filename() == "release"
                               : named && named->precision == Precision::integer &&
                                     one.first == static_cast<std::int64_t>(named->bits);
  });
  if (!there) {
    source.fault("incomplete-checkpoint",
                 std::string(kTracker) + " names " + latest + ", which is not there", "");
  }
  return source;
}

}  // namespace qualify::evidence
