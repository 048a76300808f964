#include "qualify/rebuild/rebuild.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/journal/journal.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/run/state.hpp"
#include "story.hpp"
#include "swap.hpp"

namespace qualify::rebuild {

namespace {

constexpr std::size_t kMaxNamed = 500;  // items of each kind in the event; people get all

Json first_of(const std::vector<std::string>& items) {
  return std::vector<std::string>(
      items.begin(),
      items.begin() + static_cast<std::ptrdiff_t>(std::min(items.size(), kMaxNamed)));
}

/// What is damaged may hold any bytes, and goes into an event: JSON and people read it.
std::string plain(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text;
}

void remove_leftovers(const run::StatePaths& paths) {
  std::error_code ignored;
  for (const char* suffix : {"", "-wal", "-shm", "-journal"}) {
    fs::remove(new_database(paths).string() + suffix, ignored);
  }
  fs::remove(new_transcript(paths), ignored);
}

/// What SQLite does for every writer that finds the rollback journal of one that was killed.
void undo_half_a_change(const run::StatePaths& paths) {
  if (!fs::exists(paths.database().string() + "-journal")) return;
  const auto database = journal::Database::open_as_is(paths.database());
  if (database) (void)database->execute("SELECT count(*) FROM sqlite_schema");
}

/// A new database takes its place by one rename: it must be one file.
journal::OpenOptions in_one_file() {
  journal::OpenOptions options;
  options.file_system_of = [](const fs::path&) -> Result<journal::FileSystem> {
    return journal::FileSystem{"rebuilding", false};
  };
  return options;
}

Result<void> write_rows(const run::StatePaths& paths, const Rows& rows, Time now,
                        const std::string& by, const Rebuilt& result) {
  auto database = journal::Database::open(new_database(paths), in_one_file());
  if (!database) return tl::unexpected(database.error());
  return database->transaction([&]() -> Result<void> {
    for (const journal::GrowingTable& table : journal::growing_tables()) {
      const auto found = rows.find(table.name);
      if (found == rows.end()) continue;
      for (const auto& [key, row] : found->second) {
        if (auto inserted = journal::insert_row(*database, row); !inserted) {
          Error error = inserted.error();
          error.context = words_for(row);
          return Unexpected(std::move(error));
        }
      }
    }
    if (auto extended = ledger::Log(*database).extend(); !extended) return extended;
    const auto noted = journal::Journal(*database).append(now, {}, {}, 0, event::kRebuilt,
                                                          {{"by", by},
                                                           {"why", first_of(result.why)},
                                                           {"salvaged", first_of(result.salvaged)},
                                                           {"remade", first_of(result.remade)},
                                                           {"lost", first_of(result.lost)}});
    if (!noted) return tl::unexpected(noted.error());
    return {};
  });
}

/// Whether the old transcript goes on: nothing of it is damaged, and all of it is in the new
/// database as it is.
bool goes_on(const journal::Transcript& transcript, const Rows& rows) {
  return transcript.faults.empty() && !transcript.rows.empty() &&
         std::all_of(transcript.rows.begin(), transcript.rows.end(),
                     [&](const journal::TranscriptRow& row) {
                       const auto table = rows.find(row.table);
                       if (table == rows.end()) return false;
                       const auto found = table->second.find(row.key);
                       return found != table->second.end() && found->second.values == row.values;
                     });
}

}  // namespace

Result<Rebuilt> rebuild(const fs::path& folder, Time now, const std::string& by) {
  const run::StatePaths paths{folder};
  if (!fs::exists(paths.database()) && !fs::exists(paths.transcript()) &&
      !fs::exists(paths.runs())) {
    return fail(Errc::not_found, "no state folder", folder.string(), "make one with: qualify init");
  }
  const Error held{Errc::busy,
                   "a qualify or a daemon works with this state",
                   folder.string(),
                   "end it first: its jobs go on, and are re-attached to afterwards",
                   {}};
  const auto lock = FileLock::acquire_or(paths.lock(), held);
  if (!lock) return tl::unexpected(lock.error());
  const auto daemon = FileLock::acquire_or(paths.daemon_lock(), held);
  if (!daemon) return tl::unexpected(daemon.error());
  undo_half_a_change(paths);
  Rebuilt result;
  for (const Error& error : inspect(folder)) {
    if (error.code != Errc::integrity) return Unexpected(error);
    result.why.push_back(
        plain(error.context.empty() ? error.message : error.context + ": " + error.message));
  }
  if (result.why.empty()) return result;
  result.needed = true;
  remove_leftovers(paths);

  auto transcript = journal::read_transcript(paths.transcript());
  if (!transcript) {
    if (transcript.error().code != Errc::not_found) return tl::unexpected(transcript.error());
    result.why.emplace_back("there is no transcript: " + paths.transcript().string());
    transcript = journal::Transcript();
  }
  std::vector<fs::path> damaged = set_aside(paths);
  if (fs::exists(paths.database())) damaged.insert(damaged.begin(), paths.database());
  const Rows salvaged = salvage(damaged, paths.temporary());
  const Rows rows = tell(*transcript, salvaged, attempt_folders(paths), paths, result);

  if (auto written = write_rows(paths, rows, now, by, result); !written) {
    return tl::unexpected(written.error());
  }
  if (!goes_on(*transcript, rows)) {
    journal::OpenOptions options = in_one_file();
    options.transcript = new_transcript(paths);
    const auto copied = journal::Database::open(new_database(paths), options);
    if (!copied) return tl::unexpected(copied.error());
  }
  if (auto swapped = swap_in(paths, result); !swapped) return tl::unexpected(swapped.error());

  // As every command opens it; the transcript gets what it lacks.
  const auto state = run::open_state(folder);
  if (!state) return tl::unexpected(state.error());
  for (const auto& [table, entries] : rows) result.rows[table] = entries.size();
  result.faults = inspect(folder);
  return result;
}

}  // namespace qualify::rebuild
