#include "qualify/traces/seal.hpp"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "frames.hpp"
#include "pool.hpp"
#include "qualify/base/files.hpp"
#include "qualify/base/parallel.hpp"
#include "qualify/traces/raw.hpp"
#include "qualify/traces/sealed_file.hpp"
#include "unsettled.hpp"

namespace qualify::traces {

namespace {

/// One rank's files after sealing.
struct RankResult {
  std::vector<IterationSummary> iterations;
  std::string schema;
  Json files = Json::array();
  Faults faults;
  std::size_t written = 0;
  std::size_t kept = 0;
  std::uint64_t rows = 0;
  std::uint64_t source_bytes = 0;
  std::uint64_t sealed_bytes = 0;
  std::optional<Error> error;
};

std::uint64_t size_of(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  return error ? 0 : size;
}

class RankSealer {
 public:
  /// `before`: the rank's windows that are sealed already, in order.
  RankSealer(const RawTrace& trace, const RawRank& rank, std::vector<fs::path> before,
             const SealOptions& options, Frames& frames, Unsettled& files)
      : trace_(trace),
        rank_(rank),
        before_(std::move(before)),
        options_(options),
        frames_(frames),
        files_(files) {}

  Result<RankResult> seal() {
    if (auto good = take_up(); !good) return tl::unexpected(good.error());
    RawReading reading;
    reading.from = from_;
    reading.still_written = options_.still_running;
    std::optional<Error> error;
    bool any = false;
    const auto read = read_raw(rank_, trace_.manifest, reading, strings_, end_,
                               [&](const Event& event, const RawPlace& place) {
                                 any = true;
                                 if (auto good = event_at(event, place); !good)
                                   error = good.error();
                                 return !error;
                               });
    if (error) return tl::unexpected(*error);
    if (!read) return tl::unexpected(read.error());
    if (!any && result_.iterations.empty() && !options_.still_running) {
      result_.faults.push_back(
          {"no-events", "the rank recorded nothing", rank_.files.front().path.string()});
    }
    if (!options_.still_running && writer_) {
      SealedWriter::Source source;
      for (const auto& file : rank_.files) source.bytes += size_of(file.path);
      source.last_sequence = last_sequence_;
      if (auto good = close(std::move(source)); !good) return tl::unexpected(good.error());
    }
    for (const Fault& fault : faults_since_close()) result_.faults.push_back(fault);
    result_.schema = end_.schema;
    return std::move(result_);
  }

 private:
  [[nodiscard]] fs::path path_for(std::int64_t iteration) const {
    return options_.to / sealed_name(rank_.rank, iteration, options_.window);
  }

  /// Goes on behind the windows that are sealed already.
  Result<void> take_up() {
    std::uint64_t before = 0;  // bytes of files in front of from_.file
    for (const fs::path& path : before_) {
      const auto file = SealedFile::open(path);
      if (!file) return tl::unexpected(file.error());
      add_file(path, file->summary(), file->rows(), size_of(path));
      ++result_.kept;
      for (const Fault& fault : file->source().faults) result_.faults.push_back(fault);
      end_.schema = file->source().schema;
      const std::uint64_t end = file->source().bytes;
      while (from_.file < rank_.files.size() &&
             before + size_of(rank_.files[from_.file].path) <= end) {
        before += size_of(rank_.files[from_.file].path);
        ++from_.file;
      }
      from_.byte = end - before;
      from_.line = from_.byte == 0 ? 1 : file->source().lines + 1;
      from_.last_sequence = file->source().last_sequence;
      if (from_.file >= rank_.files.size() && from_.byte > 0) {
        return fail(Errc::refused, "the trace is shorter than what was sealed of it before",
                    rank_.files.back().path.string(),
                    "it is another run's; seal it into a folder of its own");
      }
    }
    for (const auto& file : rank_.files) result_.source_bytes += size_of(file.path);
    result_.source_bytes -= before + from_.byte;
    return {};
  }

  Result<void> event_at(const Event& event, const RawPlace& place) {
    if (writer_ && event.iteration >= window_end_) {
      // The record that begins a new window ends the one before.
      SealedWriter::Source source;
      for (std::size_t i = 0; i < place.file; ++i) source.bytes += size_of(rank_.files[i].path);
      source.bytes += place.byte;
      source.lines = place.line - 1;
      source.last_sequence = place.last_sequence;
      if (auto good = close(std::move(source)); !good) return good;
    }
    if (!writer_) {
      const fs::path path = path_for(event.iteration);
      auto writer = SealedWriter::create(path, rank_.rank, &frames_);
      if (!writer) return tl::unexpected(writer.error());
      writer_ = std::move(*writer);
      path_ = path;
      const std::int64_t window = options_.window;
      window_end_ = window == 0            ? INT64_MAX
                    : event.iteration == 0 ? 1
                                           : (event.iteration - 1) / window * window + window + 1;
    }
    last_sequence_ = event.rank_seq;
    return writer_->append(event, strings_);
  }

  Result<void> close(SealedWriter::Source source) {
    source.schema = end_.schema;
    source.faults = faults_since_close();
    for (const Fault& fault : source.faults) result_.faults.push_back(fault);
    const auto summary = writer_->finish(strings_, source, &files_);
    if (!summary) return tl::unexpected(summary.error());
    const std::uint64_t bytes = writer_->bytes();
    writer_.reset();
    std::uint64_t rows = 0;
    for (const auto& iteration : summary->iterations) rows += iteration.rows;
    add_file(path_, *summary, rows, bytes);
    ++result_.written;
    window_end_ = INT64_MIN;
    return {};
  }

  Faults faults_since_close() {
    Faults fresh(end_.faults.begin() + static_cast<std::ptrdiff_t>(told_), end_.faults.end());
    told_ = end_.faults.size();
    return fresh;
  }

  void add_file(const fs::path& path, const RankSummary& summary, std::uint64_t rows,
                std::uint64_t bytes) {
    result_.rows += rows;
    result_.sealed_bytes += bytes;
    result_.files.push_back({{"name", path.filename().string()},
                             {"rows", rows},
                             {"bytes", bytes},
                             {"iterations", summary.iterations.size()}});
    for (const IterationSummary& iteration : summary.iterations) {
      result_.iterations.push_back({iteration.iteration, iteration.rows, iteration.root, {}, 0, 0});
    }
  }

  const RawTrace& trace_;
  const RawRank& rank_;
  std::vector<fs::path> before_;
  const SealOptions& options_;
  Frames& frames_;
  Unsettled& files_;
  Strings strings_;
  RankResult result_;
  RawPlace from_;
  RawEnd end_;
  std::size_t told_ = 0;  ///< of the reading's faults that are in a file
  std::optional<SealedWriter> writer_;
  fs::path path_;
  std::int64_t window_end_ = INT64_MIN;
  std::int64_t last_sequence_ = -1;
};

Json to_json(const Faults& faults) {
  Json list = Json::array();
  for (const Fault& fault : faults) {
    list.push_back({{"code", fault.code}, {"message", fault.message}, {"where", fault.where}});
  }
  return list;
}

Roots roots_of(const RawTrace& trace, const std::vector<RankResult>& results,
               const SealOptions& options) {
  Roots roots;
  roots.window = options.window;
  if (!trace.manifest_text.empty()) roots.manifest = digest_of(to_json(trace.manifest));
  std::map<std::int64_t, std::size_t> column;
  for (const RankResult& result : results) {
    for (const auto& iteration : result.iterations) column.emplace(iteration.iteration, 0);
  }
  for (auto& [iteration, at] : column) {
    at = roots.iterations.size();
    roots.iterations.push_back(iteration);
  }
  roots.hashes.reset(results.size() * column.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    roots.ranks.push_back(trace.ranks[i].rank);
    for (const auto& iteration : results[i].iterations) {
      roots.hashes[i * column.size() + column[iteration.iteration]] = iteration.root;
    }
  }
  return roots;
}

/// A rank that lacks an iteration which others have was cut short.
void find_short_ranks(const Roots& roots, const std::string& where, Faults& faults) {
  std::vector<std::int64_t> lacking;
  for (std::size_t rank = 0; rank < roots.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < roots.iterations.size(); ++i) {
      if (roots.at(rank, i) != Hash{}) continue;
      lacking.push_back(roots.ranks[rank]);
      break;
    }
  }
  if (lacking.empty()) return;
  faults.push_back(
      {"truncated", "ranks " + ranks_text(lacking) + " lack iterations that others have", where});
}

Result<void> write_outcome(const RawTrace& trace, const SealOptions& options,
                           const std::vector<RankResult>& results, Sealed& sealed) {
  Roots roots = roots_of(trace, results, options);
  find_short_ranks(roots, trace.folder.string(), sealed.faults);
  roots.complete = sealed.faults.empty();
  Json files = Json::object();
  for (std::size_t i = 0; i < results.size(); ++i) {
    files[std::to_string(trace.ranks[i].rank)] = results[i].files;
  }
  const std::string packed = pack_roots(roots);
  const Json record = {
      {"schema_version", 1}, {"complete", roots.complete},       {"window", roots.window},
      {"rows", sealed.rows}, {"faults", to_json(sealed.faults)}, {"roots", sha256(packed).str()},
      {"files", files}};
  if (!trace.manifest_text.empty()) {
    if (auto done =
            write_file_atomic(options.to / kManifestName, canonical_bytes(to_json(trace.manifest)));
        !done) {
      return done;
    }
  }
  if (auto done = write_file_atomic(options.to / kSealName, record.dump(1) + "\n"); !done)
    return done;
  // Last: a folder with roots is one whose sealing is over.
  if (auto done = write_file_atomic(options.to / kRootsName, packed); !done) return done;
  sealed.roots = std::move(roots);
  return {};
}

/// Windows in `folder` by rank, in order of their first iterations.
std::map<std::int64_t, std::vector<fs::path>> sealed_before(const fs::path& folder) {
  std::map<std::int64_t, std::vector<fs::path>> windows;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    std::int64_t rank = 0;
    if (!name.starts_with("rank_") || !name.ends_with(".arrow")) continue;
    const auto [stop, bad] = std::from_chars(name.data() + 5, name.data() + name.size(), rank);
    if (bad == std::errc{}) windows[rank].push_back(at->path());
  }
  for (auto& [rank, paths] : windows) {
    std::sort(paths.begin(), paths.end(), [](const fs::path& a, const fs::path& b) {
      const auto& x = a.native();
      const auto& y = b.native();
      return x.size() != y.size() ? x.size() < y.size() : x < y;  // numbers grow beyond 7 digits
    });
  }
  return windows;
}

Result<void> check_options(const SealOptions& options) {
  if (options.window < 0) return fail(Errc::usage, "a window has at least one iteration");
  if (options.still_running && options.window == 0) {
    return fail(Errc::usage, "while training runs, whole windows are sealed: how long is one?", {},
                "such as --window 10");
  }
  const auto before = read_roots(options.to);
  if (before && before->window != options.window) {
    return fail(
        Errc::refused,
        "the folder was sealed with windows of " + std::to_string(before->window) + " iterations",
        options.to.string(), "give the same --window, or another folder");
  }
  return {};
}

}  // namespace

Result<Sealed> seal(const fs::path& folder, const SealOptions& options) {
  if (auto good = check_options(options); !good) return tl::unexpected(good.error());
  auto trace = find_raw(folder);
  if (!trace) return tl::unexpected(trace.error());
  if (auto made = make_folders(options.to); !made) return tl::unexpected(made.error());
  if (!options.ranks.empty()) {
    std::erase_if(trace->ranks, [&](const RawRank& rank) {
      return std::find(options.ranks.begin(), options.ranks.end(), rank.rank) ==
             options.ranks.end();
    });
  }
  const auto before = sealed_before(options.to);
  std::vector<RankResult> results(trace->ranks.size());
  std::atomic<std::size_t> done{0};
  Pool<Frames> pool;
  Unsettled files;
  for_each_index(results.size(), options.jobs, [&](std::size_t i) {
    auto frames = pool.take();
    const auto windows = before.find(trace->ranks[i].rank);
    auto result = RankSealer(*trace, trace->ranks[i],
                             windows == before.end() ? std::vector<fs::path>() : windows->second,
                             options, *frames, files)
                      .seal();
    pool.give(std::move(frames));
    if (result) {
      results[i] = std::move(*result);
    } else {
      results[i].error = result.error();
    }
    if (options.progress) options.progress(++done, results.size());
  });
  if (auto good = files.settle(); !good) return tl::unexpected(good.error());
  Sealed sealed;
  sealed.ranks = results.size();
  sealed.faults = trace->faults;
  std::set<std::string> schemas;
  for (RankResult& result : results) {
    if (result.error) return tl::unexpected(*result.error);
    if (!result.schema.empty()) schemas.insert(result.schema);
    sealed.files_written += result.written;
    sealed.files_kept += result.kept;
    sealed.rows += result.rows;
    sealed.source_bytes += result.source_bytes;
    sealed.sealed_bytes += result.sealed_bytes;
    for (Fault& fault : result.faults) sealed.faults.push_back(std::move(fault));
  }
  if (schemas.size() > 1) sealed.faults.push_back(mixed_schemas(trace->folder));
  if (!options.still_running && options.ranks.empty()) {
    if (auto good = write_outcome(*trace, options, results, sealed); !good)
      return tl::unexpected(good.error());
  }
  return sealed;
}

}  // namespace qualify::traces
