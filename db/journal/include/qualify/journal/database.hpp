#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

/// The one SQLite file of a state folder, shared by journal and ledger.
namespace qualify::journal {

/// A prepared statement. Bind by position from 1, step, read columns from 0. Not thread-safe.
class Statement {
 public:
  ~Statement();
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;
  Statement& bind(int position, std::string_view text);
  Statement& bind(int position, std::int64_t number);
  Statement& bind_null(int position);
  /// True: a row is there; false: done. Errors: busy, already_exists (constraint), no_space, io,
  /// integrity.
  [[nodiscard]] Result<bool> step();
  [[nodiscard]] std::string text(int column) const;
  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] bool is_null(int column) const;
  void reset();

 private:
  friend class Database;
  Statement(sqlite3* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  sqlite3* db_;
  sqlite3_stmt* statement_;
};

/// STRICT tables, foreign keys, WAL on local disks only (statfs), busy_timeout first, migrations
/// applied at open, each in one transaction. Not thread-safe; one writer process at a time works,
/// others wait up to 10 s and then get `busy`.
class Database {
 public:
  /// Creates or migrates. Errors: io, busy, integrity (not ours, corrupt), unsupported (newer
  /// schema).
  [[nodiscard]] static Result<Database> open(const std::filesystem::path& file);
  /// Never writes, needs no write access. Errors: not_found, unsupported (older schema: run a
  /// writer).
  [[nodiscard]] static Result<Database> open_read_only(const std::filesystem::path& file);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  [[nodiscard]] Result<Statement> prepare(std::string_view sql) const;
  [[nodiscard]] Result<void> execute(std::string_view sql) const;
  /// BEGIN IMMEDIATE … COMMIT around `work`; ROLLBACK when it fails.
  template <class Work>
  [[nodiscard]] Result<void> transaction(Work&& work) {
    if (auto begun = execute("BEGIN IMMEDIATE"); !begun) return begun;
    Result<void> done = work();
    if (done) done = execute("COMMIT");
    if (!done) (void)execute("ROLLBACK");
    return done;
  }

 private:
  explicit Database(sqlite3* db) : db_(db) {}
  sqlite3* db_;
};

}  // namespace qualify::journal
