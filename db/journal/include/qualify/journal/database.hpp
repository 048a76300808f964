#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/base/json.hpp"

struct sqlite3;
struct sqlite3_stmt;

/// The one SQLite file of a state folder, shared by journal and ledger.
namespace qualify::journal {

class TranscriptWriter;

/// A prepared statement. Bind by position from 1, step, read columns from 0. Not thread-safe.
/// A bind that cannot succeed (no such position) is a bug and throws std::logic_error.
class Statement {
 public:
  ~Statement();
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  Statement& bind(int position, std::string_view text);
  Statement& bind(int position, const char* text) { return bind(position, std::string_view(text)); }
  Statement& bind(int position, std::int64_t number);
  Statement& bind(int position, int number) { return bind(position, std::int64_t{number}); }
  Statement& bind_blob(int position, std::string_view bytes);
  Statement& bind_null(int position);
  /// True: a row is there; false: done. Errors: busy, already_exists (constraint), refused (an
  /// append-only trigger), no_space, io, integrity.
  [[nodiscard]] Result<bool> step();
  /// Text or blob bytes; empty for NULL.
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  /// The whole row: column names to text, integers or null; a blob is {"hex": …}.
  [[nodiscard]] Json row() const;
  /// Makes it ready for the next bind and step; bindings stay.
  void reset();

 private:
  friend class Database;
  friend class TranscriptWriter;
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  sqlite3* db_;
  sqlite3_stmt* statement_;
};

/// Where a folder lies.
struct FileSystem {
  std::string name;    ///< "ext4", "nfs", "lustre"; the magic number in hex when it is not known
  bool local = false;  ///< known to be on this machine's own disk or memory
};
/// statfs(2). Unknown file systems count as not local. Errors: not_found, io.
[[nodiscard]] Result<FileSystem> file_system_of(const std::filesystem::path& folder);

struct OpenOptions {
  std::chrono::milliseconds busy_timeout{10'000};  ///< how long to wait for another writer
  std::function<Result<FileSystem>(const std::filesystem::path&)> file_system_of =
      journal::file_system_of;
  /// Writers keep a copy of every committed row here (transcript.hpp), durable before a transaction
  /// returns; empty: none.
  std::filesystem::path transcript{};
};

/// STRICT tables, foreign keys, WAL on local disks only (statfs), busy_timeout first, migrations
/// applied at open, each in one transaction, and a copy `<file>.before-NNNN` made before the first
/// of them (NNNN: its number) touches an existing database. Not thread-safe; one writer process at
/// a time works, others wait up to the timeout and then get `busy`.
class Database {
 public:
  /// Creates or migrates; notes() says what was migrated, and where the copy is. Errors: io,
  /// no_space, busy, integrity (not ours, corrupt, not what its transcript says), unsupported
  /// (newer schema).
  [[nodiscard]] static Result<Database> open(const std::filesystem::path& file,
                                             const OpenOptions& options = {});
  /// Never writes, needs no write access. Where SQLite itself cannot read a write-ahead-log
  /// database without writing (log files missing, folder closed to us), a private copy in memory is
  /// read instead, and only after a proof that it was whole: no log content, and the file unchanged
  /// while it was copied; notes() says so.
  /// Errors: not_found, unsupported (older schema: run a writer; newer schema), integrity, io,
  /// busy.
  [[nodiscard]] static Result<Database> open_read_only(const std::filesystem::path& file,
                                                       const OpenOptions& options = {});
  /// Opens whatever is there, however damaged, without looking at it, for salvage from a copy: it
  /// may join the log. Errors: those of SQLite.
  [[nodiscard]] static Result<Database> open_as_is(const std::filesystem::path& file);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  [[nodiscard]] Result<Statement> prepare(std::string_view sql) const;
  [[nodiscard]] Result<void> execute(std::string_view sql) const;
  /// BEGIN IMMEDIATE … COMMIT around `work`; ROLLBACK when it fails or throws. Inside another
  /// transaction it is a part of that one: its own failure undoes only its own changes.
  /// Errors: those of `work`; busy (another writer; or the file was replaced since it was opened:
  /// somebody rebuilt it), io, no_space.
  /// An error after COMMIT is possible where there is a transcript (disk full): the change is made
  /// then, as after a kill at that moment, and the next writer catches up.
  template <class Work>
  [[nodiscard]] Result<void> transaction(Work&& work) {
    Scope scope(*this);
    if (auto begun = scope.begin(); !begun) return begun;
    Result<void> done = work();
    return done ? scope.commit() : done;
  }

  /// "wal", "delete" or "memory".
  [[nodiscard]] const std::string& journal_mode() const { return journal_mode_; }
  /// What a person should know about how it was opened; usually empty.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  /// Reads every page and checks structure, indexes and foreign keys. Empty = sound.
  /// Takes about as long as reading the file.
  [[nodiscard]] std::vector<Error> check() const;

 private:
  /// One (nested) transaction; rolls back unless committed.
  class Scope {
   public:
    explicit Scope(Database& database) : database_(&database) {}
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    [[nodiscard]] Result<void> begin();
    [[nodiscard]] Result<void> commit();

   private:
    Database* database_;
    bool nested_ = false;
    bool open_ = false;
  };

  explicit Database(sqlite3* db, std::filesystem::path file);
  [[nodiscard]] Result<void> prepare_connection(const OpenOptions& options);
  [[nodiscard]] Result<void> choose_journal_mode(const OpenOptions& options);
  [[nodiscard]] Result<void> migrate();
  [[nodiscard]] Result<std::filesystem::path> back_up(int migration) const;
  [[nodiscard]] Result<void> check_schema_for_reading() const;
  [[nodiscard]] Result<std::int64_t> number_of(std::string_view sql) const;
  [[nodiscard]] Result<std::string> text_of(std::string_view sql) const;
  [[nodiscard]] static Result<Database> open_copy(const std::filesystem::path& file,
                                                  const OpenOptions& options);

  sqlite3* db_;
  std::filesystem::path file_;
  std::string journal_mode_;
  std::vector<std::string> notes_;
  std::unique_ptr<TranscriptWriter> transcript_;
};

/// user_version of a database that all migrations were applied to.
[[nodiscard]] int schema_version();

}  // namespace qualify::journal
