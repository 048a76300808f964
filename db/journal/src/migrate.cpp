#include <fcntl.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "errors.hpp"
#include "migrations.hpp"
#include "qualify/base/files.hpp"
#include "qualify/journal/database.hpp"

namespace qualify::journal {

namespace {

/// The part of a name after the database's own: "before-0003", "before-0003.2".
std::string backup_name(const fs::path& file, int migration, int copy) {
  return fmt::format("{}.before-{:04}", file.string(), migration) +
         (copy == 1 ? std::string() : "." + std::to_string(copy));
}

Result<void> make_durable(const fs::path& file) {
  const auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  if (::fchmod(fd->get(), 0444) != 0 || ::fsync(fd->get()) != 0) {
    return fail_errno(errno, "cannot write", file.string());
  }
  return {};
}

}  // namespace

/// Called while this connection holds the write lock: nothing changes until the migration that
/// follows. A second connection reads, for VACUUM INTO does not work inside a transaction.
Result<fs::path> Database::back_up(int migration) const {
  const fs::path partial = fs::path(backup_name(file_, migration, 1) + ".partial");
  // Of a process that was killed; whoever holds the write lock is the only one here.
  std::error_code ignored;
  fs::remove(partial, ignored);
  fs::remove(fs::path(partial.string() + "-journal"), ignored);

  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(file_.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  const Database reader(raw, file_);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot open", file_.string());
  // A database that is damaged already must not be migrated, nor its copy be called whole.
  if (auto faults = reader.check(); !faults.empty()) {
    faults.front().hint = kRebuildHint;
    return Unexpected(std::move(faults.front()));
  }
  auto copy = reader.prepare("VACUUM INTO ?1");
  if (!copy) return tl::unexpected(copy.error());
  copy->bind(1, partial.string());
  if (auto done = copy->step(); !done) {
    fs::remove(partial, ignored);
    Error error = done.error();
    error.message = "cannot copy the database before it is migrated: " + error.message;
    error.context = partial.string();
    return Unexpected(std::move(error));
  }
  if (auto done = make_durable(partial); !done) return tl::unexpected(done.error());

  const auto made = hash_file(partial);
  if (!made) return tl::unexpected(made.error());
  for (int copies = 1;; ++copies) {
    const fs::path wanted = backup_name(file_, migration, copies);
    if (fs::exists(wanted)) {
      // An earlier try that did not get further left the same; anything else is kept.
      const auto there = hash_file(wanted);
      if (!there) return tl::unexpected(there.error());
      if (there->digest != made->digest) continue;
      fs::remove(partial, ignored);
    } else if (::rename(partial.c_str(), wanted.c_str()) != 0) {
      return fail_errno(errno, "cannot rename", partial.string());
    }
    const fs::path folder = file_.has_parent_path() ? file_.parent_path() : fs::path(".");
    if (auto done = sync_folder(folder); !done) return tl::unexpected(done.error());
    return wanted;
  }
}

Result<void> Database::migrate() {
  const auto version = number_of("PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  if (*version == schema_version()) {
    // The usual case takes no write lock.
    const auto id = number_of("PRAGMA application_id");
    if (!id) return tl::unexpected(id.error());
    if (*id != kApplicationId) return fail_not_ours(file_);
    return {};
  }
  fs::path copy;  // as it was before; empty for a database that is being made
  std::optional<std::int64_t> from;
  for (const Migration& migration : migrations()) {
    auto done = transaction([&]() -> Result<void> {
      // Read inside the transaction: another process may have migrated since.
      const auto current = number_of("PRAGMA user_version");
      if (!current) return tl::unexpected(current.error());
      const auto id = number_of("PRAGMA application_id");
      if (!id) return tl::unexpected(id.error());
      const auto tables = number_of("SELECT count(*) FROM sqlite_schema");
      if (!tables) return tl::unexpected(tables.error());
      const bool empty = *tables == 0 && *id == 0 && *current == 0;
      if (!empty && *id != kApplicationId) return fail_not_ours(file_);
      if (*current > schema_version()) return fail_newer(*current, file_);
      if (*current >= migration.number) return {};
      if (!from && !empty) {
        auto made = back_up(migration.number);
        if (!made) return tl::unexpected(made.error());
        copy = std::move(*made);
      }
      if (!from) from = *current;
      if (auto applied = execute(migration.sql); !applied) {
        Error error = applied.error();
        error.context = std::string(migration.name) + " on " + file_.string();
        return tl::unexpected(std::move(error));
      }
      return execute("PRAGMA user_version = " + std::to_string(migration.number));
    });
    if (!done) {
      Error error = done.error();
      if (!copy.empty()) {
        error.hint += (error.hint.empty() ? "" : "; ") +
                      std::string("nothing was lost: as it was before, it is ") + copy.string();
      }
      return Unexpected(std::move(error));
    }
  }
  if (!copy.empty()) {
    notes_.push_back(fmt::format("{}: brought from schema {} to {}; as it was before: {}",
                                 file_.filename().string(), *from, schema_version(),
                                 copy.filename().string()));
  }
  return {};
}

}  // namespace qualify::journal
