#include "errors.hpp"

#include <sqlite3.h>

#include <cerrno>
#include <string_view>

#include "qualify/journal/database.hpp"

namespace qualify::journal {

namespace {

/// Triggers say which kind of refusal it is by the beginning of their message.
Errc code_of_constraint(int extended, std::string_view text) {
  if (extended == SQLITE_CONSTRAINT_TRIGGER) {
    return text.starts_with("exists: ") ? Errc::already_exists : Errc::refused;
  }
  if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
      extended == SQLITE_CONSTRAINT_ROWID) {
    return Errc::already_exists;
  }
  if (extended == SQLITE_CONSTRAINT_FOREIGNKEY) return Errc::not_found;
  return Errc::invalid_input;
}

}  // namespace

Unexpected fail_sqlite(sqlite3* db, int code, std::string what, const std::string& context) {
  const int extended = db != nullptr ? sqlite3_extended_errcode(db) : code;
  const std::string text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int system_error = db != nullptr ? sqlite3_system_errno(db) : 0;
  std::string message = std::move(what) + ": " + text;
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return fail(Errc::busy, std::move(message), context,
                  "another qualify is writing; try again when it is done");
    case SQLITE_CONSTRAINT:
      return fail(code_of_constraint(extended, text), std::move(message), context);
    case SQLITE_FULL:
      return fail(Errc::no_space, std::move(message), context, "make room on that disk");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return fail(Errc::integrity, std::move(message), context, kRebuildHint);
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      return fail(Errc::io, std::move(message), context,
                  "the file and its folder must be writable by you");
    case SQLITE_IOERR:
      if (system_error == ENOSPC || system_error == EDQUOT) {
        return fail(Errc::no_space, std::move(message), context, "make room on that disk");
      }
      return fail(Errc::io, std::move(message), context);
    default:
      return fail(Errc::internal, std::move(message), context);
  }
}

Unexpected fail_not_ours(const std::filesystem::path& file) {
  return fail(Errc::integrity, "not a qualify database", file.string(),
              "another program made this file: use another state folder; or its header is damaged: "
              "qualify doctor --rebuild");
}

Unexpected fail_newer(std::int64_t version, const std::filesystem::path& file) {
  return fail(Errc::unsupported,
              "made by a newer qualify (schema " + std::to_string(version) + ", this one knows " +
                  std::to_string(schema_version()) + ")",
              file.string(), "use that version; a database is never taken back to an older one");
}

}  // namespace qualify::journal
