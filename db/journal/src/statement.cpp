#include <sqlite3.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "errors.hpp"
#include "qualify/journal/database.hpp"

namespace qualify::journal {

namespace {

void must(int code) {
  if (code == SQLITE_NOMEM) throw std::bad_alloc();
  if (code != SQLITE_OK) {
    throw std::logic_error(std::string("cannot bind: ") + sqlite3_errstr(code));
  }
}

}  // namespace

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_), statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(db_, other.db_);
  std::swap(statement_, other.statement_);
  return *this;
}

Statement& Statement::bind(int position, std::string_view text) {
  must(sqlite3_bind_text64(statement_, position, text.data() != nullptr ? text.data() : "",
                           text.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(int position, std::int64_t number) {
  must(sqlite3_bind_int64(statement_, position, number));
  return *this;
}

Statement& Statement::bind_blob(int position, std::string_view bytes) {
  must(sqlite3_bind_blob64(statement_, position, bytes.data() != nullptr ? bytes.data() : "",
                           bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind_null(int position) {
  must(sqlite3_bind_null(statement_, position));
  return *this;
}

Result<bool> Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  Unexpected error = fail_sqlite(db_, code, "the database refused");
  sqlite3_reset(statement_);
  return error;
}

std::string Statement::text(int column) const {
  // Blob first, then its length: the other order may convert (SQLite, "sqlite3_column_blob").
  const void* bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_, column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Json Statement::row() const {
  Json row = Json::object();
  for (int i = 0; i < sqlite3_column_count(statement_); ++i) {
    Json& value = row[sqlite3_column_name(statement_, i)];
    switch (sqlite3_column_type(statement_, i)) {
      case SQLITE_INTEGER:
        value = number(i);
        break;
      case SQLITE_NULL:
        break;
      case SQLITE_BLOB: {
        const std::string bytes = text(i);
        value = {
            {"hex", to_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()})}};
        break;
      }
      default:  // no table has real numbers
        value = text(i);
    }
  }
  return row;
}

void Statement::reset() {
  sqlite3_reset(statement_);
}

}  // namespace qualify::journal
