#include "qualify/journal/database.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "errors.hpp"
#include "migrations.hpp"
#include "qualify/base/files.hpp"
#include "transcript_writer.hpp"

namespace qualify::journal {

namespace {

constexpr std::uint64_t kMaxCopy = 4ULL << 30U;  // bytes of a database read into memory
constexpr int kCopyTries = 5;

// Database file format, "The Database Header": bytes 18 and 19 are 2 for write-ahead log, 1 for a
// rollback journal.
constexpr std::size_t kWriteVersion = 18;
constexpr std::size_t kReadVersion = 19;

fs::path beside(const fs::path& file, const char* suffix) {
  return fs::path(file.string() + suffix);
}

bool has_content(const fs::path& file) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  return !error && size > 0;
}

bool header_says_wal(const fs::path& file) {
  const auto fd = open_read(file);
  std::array<char, 20> header{};
  return fd &&
         ::pread(fd->get(), header.data(), header.size(), 0) ==
             static_cast<ssize_t>(header.size()) &&
         header[kReadVersion] == 2;
}

bool same_state(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec && a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

/// The file's bytes if nothing changed while they were read, and no log held newer ones before or
/// after; null when it was not so this time.
Result<std::optional<std::string>> read_undisturbed(const fs::path& file) {
  const fs::path log = beside(file, "-wal");
  const auto fd = open_read(file);
  if (!fd) return tl::unexpected(fd.error());
  struct stat before {};
  struct stat after {};
  if (::fstat(fd->get(), &before) != 0) {
    return fail_errno(errno, "cannot read", file.string());
  }
  if (has_content(log)) return std::nullopt;
  auto content = read_file(file, kMaxCopy);
  if (!content) return tl::unexpected(content.error());
  if (::fstat(fd->get(), &after) != 0) return fail_errno(errno, "cannot read", file.string());
  if (has_content(log) || !same_state(before, after) ||
      content->size() != static_cast<std::uint64_t>(after.st_size)) {
    return std::nullopt;
  }
  return std::move(*content);
}

/// URI form of a path, for flags that only URIs have.
std::string uri_of(const fs::path& file, const char* query) {
  std::string uri = "file:";
  for (const char c : fs::absolute(file).string()) {
    if (c == '?' || c == '#' || c == '%') {
      constexpr char hex[] = "0123456789ABCDEF";
      uri += '%';
      uri += hex[static_cast<unsigned char>(c) >> 4U];
      uri += hex[static_cast<unsigned char>(c) & 15U];
    } else {
      uri += c;
    }
  }
  return uri + query;
}

}  // namespace

int schema_version() {
  return migrations().back().number;
}

Database::Database(sqlite3* db, std::filesystem::path file) : db_(db), file_(std::move(file)) {}

Database::~Database() {
  transcript_.reset();  // its statements are the connection's
  sqlite3_close(db_);
}

Database::Database(Database&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)),
      file_(std::move(other.file_)),
      journal_mode_(std::move(other.journal_mode_)),
      notes_(std::move(other.notes_)),
      transcript_(std::move(other.transcript_)) {}

Database& Database::operator=(Database&& other) noexcept {
  std::swap(db_, other.db_);
  std::swap(file_, other.file_);
  std::swap(journal_mode_, other.journal_mode_);
  std::swap(notes_, other.notes_);
  std::swap(transcript_, other.transcript_);
  return *this;
}

Result<Database> Database::open(const fs::path& file, const OpenOptions& options) {
  sqlite3* raw = nullptr;
  const int code = sqlite3_open_v2(
      file.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Database database(raw, file);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot open", file.string());
  if (auto done = database.prepare_connection(options); !done) return tl::unexpected(done.error());
  if (auto done = database.choose_journal_mode(options); !done) return tl::unexpected(done.error());
  if (auto done = database.migrate(); !done) return tl::unexpected(done.error());
  if (!options.transcript.empty()) {
    auto transcript = TranscriptWriter::open(options.transcript, raw);
    if (!transcript) return tl::unexpected(transcript.error());
    database.transcript_ = std::move(*transcript);
  }
  return database;
}

Result<Database> Database::open_as_is(const fs::path& file) {
  sqlite3* raw = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database database(raw, file);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot open", file.string());
  // A schema with a damaged entry is then still read for the others.
  if (auto done = database.execute("PRAGMA writable_schema = ON; PRAGMA cell_size_check = ON;");
      !done) {
    return tl::unexpected(done.error());
  }
  return database;
}

Result<void> Database::prepare_connection(const OpenOptions& options) {
  // First of all: without it the very next statement may fail because somebody else writes.
  sqlite3_busy_timeout(db_, static_cast<int>(options.busy_timeout.count()));
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return execute(
      "PRAGMA foreign_keys = ON;"
      "PRAGMA trusted_schema = OFF;"
      "PRAGMA cell_size_check = ON;"
      "PRAGMA synchronous = FULL;");
}

Result<void> Database::choose_journal_mode(const OpenOptions& options) {
  const fs::path folder = file_.has_parent_path() ? file_.parent_path() : fs::path(".");
  const auto file_system = options.file_system_of(folder);
  if (!file_system) return tl::unexpected(file_system.error());
  std::string wanted = "PRAGMA journal_mode = WAL";
  if (!file_system->local) {
    // Exclusive locking keeps the log's index in this process's memory, so that a database that was
    // made on a local disk can be taken out of WAL without shared memory on a network file system.
    if (header_says_wal(file_)) {
      if (auto done = execute("PRAGMA locking_mode = EXCLUSIVE"); !done) return done;
    }
    wanted = "PRAGMA journal_mode = DELETE";
    notes_.push_back("the database lies on " + file_system->name +
                     ", which is not known to be local: no write-ahead log, readers may wait for "
                     "writers");
  }
  auto mode = text_of(wanted);
  if (!mode) return tl::unexpected(mode.error());
  journal_mode_ = std::move(*mode);
  if (file_system->local) {
    // The log file stays (emptied) when the last writer closes: readers who may not write in the
    // folder can then still follow SQLite's own protocol.
    int keep = 1;
    sqlite3_file_control(db_, "main", SQLITE_FCNTL_PERSIST_WAL, &keep);
    return execute("PRAGMA journal_size_limit = 8388608");
  }
  // A read releases what EXCLUSIVE held.
  return execute("PRAGMA locking_mode = NORMAL; SELECT count(*) FROM sqlite_schema");
}

Result<Database> Database::open_read_only(const fs::path& file, const OpenOptions& options) {
  if (!fs::exists(file)) {
    return fail(Errc::not_found, "no database", file.string(), "make one with: qualify init");
  }
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  const auto file_system = options.file_system_of(folder);
  if (!file_system) return tl::unexpected(file_system.error());
  // A log's shared memory does not work across machines.
  if (!file_system->local && header_says_wal(file)) return open_copy(file, options);

  sqlite3* raw = nullptr;
  int code = sqlite3_open_v2(
      uri_of(file, "?mode=ro").c_str(), &raw,
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
      nullptr);
  Database database(raw, file);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot open", file.string());
  sqlite3_busy_timeout(raw, static_cast<int>(options.busy_timeout.count()));
  code = sqlite3_exec(raw, "SELECT count(*) FROM sqlite_schema", nullptr, nullptr, nullptr);
  const int primary = code & 0xFF;
  if ((primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) && header_says_wal(file)) {
    return open_copy(file, options);
  }
  if (primary == SQLITE_CANTOPEN || primary == SQLITE_READONLY) {
    return fail(
        Errc::io, "a writer stopped in the middle of a change, and undoing it needs write access",
        file.string(),
        "let somebody with write access run a command that writes, for example: qualify run");
  }
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot read", file.string());
  if (auto done = database.prepare_connection(options); !done) return tl::unexpected(done.error());
  auto mode = database.text_of("PRAGMA journal_mode");
  if (!mode) return tl::unexpected(mode.error());
  database.journal_mode_ = std::move(*mode);
  if (auto done = database.check_schema_for_reading(); !done) return tl::unexpected(done.error());
  return database;
}

Result<Database> Database::open_copy(const fs::path& file, const OpenOptions& options) {
  std::optional<std::string> content;
  for (int tried = 0; tried < kCopyTries && !content; ++tried) {
    auto read = read_undisturbed(file);
    if (!read) return tl::unexpected(read.error());
    content = std::move(*read);
  }
  if (!content) {
    if (has_content(beside(file, "-wal"))) {
      return fail(
          Errc::io,
          "its write-ahead log holds changes, and joining them needs write access to the "
          "folder",
          file.string(),
          "let somebody with write access run a command that writes, for example: qualify run");
    }
    return fail(Errc::busy, "the database kept changing while it was read", file.string(),
                "try again when the writer is done");
  }
  sqlite3* raw = nullptr;
  int code =
      sqlite3_open_v2(":memory:", &raw,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Database database(raw, file);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot open", file.string());
  if (content->size() > kReadVersion) {
    // Memory has no log: its (empty) one is left out of the copy's header.
    (*content)[kWriteVersion] = 1;
    (*content)[kReadVersion] = 1;
  }
  auto* bytes = static_cast<unsigned char*>(sqlite3_malloc64(content->size() + 1));
  if (bytes == nullptr) throw std::bad_alloc();
  std::memcpy(bytes, content->data(), content->size());
  const auto size = static_cast<sqlite3_int64>(content->size());
  code = sqlite3_deserialize(raw, "main", bytes, size, size,
                             SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, "cannot read", file.string());
  if (auto done = database.prepare_connection(options); !done) return tl::unexpected(done.error());
  database.journal_mode_ = "memory";
  database.notes_.emplace_back(
      "read from a private copy, as it was at this moment: its write-ahead log cannot be shared "
      "from here");
  if (auto done = database.check_schema_for_reading(); !done) return tl::unexpected(done.error());
  return database;
}

Result<void> Database::check_schema_for_reading() const {
  const auto id = number_of("PRAGMA application_id");
  if (!id) return tl::unexpected(id.error());
  if (*id != kApplicationId) return fail_not_ours(file_);
  const auto version = number_of("PRAGMA user_version");
  if (!version) return tl::unexpected(version.error());
  if (*version > schema_version()) return fail_newer(*version, file_);
  if (*version < schema_version()) {
    return fail(Errc::unsupported,
                "made by an older qualify (schema " + std::to_string(*version) + ", this one has " +
                    std::to_string(schema_version()) + ")",
                file_.string(),
                "the next command that writes brings it up to date, for example with write access: "
                "qualify run");
  }
  return {};
}

Result<std::int64_t> Database::number_of(std::string_view sql) const {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? statement->number(0) : 0;
}

Result<std::string> Database::text_of(std::string_view sql) const {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(statement.error());
  auto row = statement->step();
  if (!row) return tl::unexpected(row.error());
  return *row ? statement->text(0) : std::string();
}

Result<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code =
      sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr);
  if (code != SQLITE_OK) return fail_sqlite(db_, code, "the database refused", file_.string());
  return Statement(db_, statement);
}

Result<void> Database::execute(std::string_view sql) const {
  const int code = sqlite3_exec(db_, std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail_sqlite(db_, code, "the database refused", file_.string());
  return {};
}

std::vector<Error> Database::check() const {
  std::vector<Error> faults;
  const auto add = [&](const Error& error) { faults.push_back(error); };
  const auto rows = [&](const char* sql, auto&& describe) {
    auto statement = prepare(sql);
    if (!statement) return add(statement.error());
    for (;;) {
      auto row = statement->step();
      if (!row) return add(row.error());
      if (!*row) return;
      if (auto text = describe(*statement); !text.empty()) {
        add({Errc::integrity, std::move(text), file_.string(), {}, {}});
      }
    }
  };
  rows("PRAGMA integrity_check",
       [](const Statement& row) { return row.text(0) == "ok" ? std::string() : row.text(0); });
  rows("PRAGMA foreign_key_check", [](const Statement& row) {
    return "row " + row.text(1) + " of " + row.text(0) + " points to nothing in " + row.text(2);
  });
  return faults;
}

Result<void> Database::Scope::begin() {
  nested_ = sqlite3_get_autocommit(database_->db_) == 0;
  auto done = database_->execute(nested_ ? "SAVEPOINT part" : "BEGIN IMMEDIATE");
  open_ = done.has_value();
  if (!done || nested_) return done;
  // What is written to a file that has lost its name is lost. The lock does not say so: whoever
  // rebuilds has another file.
  int moved = 0;
  sqlite3_file_control(database_->db_, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (moved == 0) return done;
  return fail(Errc::busy, "the database was rebuilt or replaced meanwhile",
              database_->file_.string(), "give the command again");
}

Result<void> Database::Scope::commit() {
  auto done = database_->execute(nested_ ? "RELEASE part" : "COMMIT");
  // A COMMIT that failed leaves the transaction open: the destructor rolls it back.
  if (!done) return done;
  open_ = false;
  if (nested_ || !database_->transcript_) return {};
  return database_->transcript_->follow();
}

Database::Scope::~Scope() {
  if (!open_) return;
  // SQLite itself may have rolled back already (disk full); there is nothing to do about errors.
  (void)database_->execute(nested_ ? "ROLLBACK TO part; RELEASE part" : "ROLLBACK");
}

}  // namespace qualify::journal
