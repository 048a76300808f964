#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/journal/database.hpp"

/// A second copy of everything that was committed, in one file of chained JSON lines beside the
/// database: what a lost or damaged database is rebuilt from. Format: docs/formats/transcript.md;
/// why: docs/decisions/0009-transcript.md.
namespace qualify::journal {

/// Tables that only grow, with the key that grows by one; the rest of the schema follows from them.
/// In this order a row never points to one that comes later.
struct GrowingTable {
  const char* name;
  const char* key;     ///< integer, strictly increasing
  std::int64_t first;  ///< of the first row
};
[[nodiscard]] const std::vector<GrowingTable>& growing_tables();

/// By table, the key of its last row in the transcript; a table without rows is left out.
using LastKeys = std::map<std::string, std::int64_t>;

/// A row in the transcript's form.
struct TranscriptRow {
  std::size_t line = 0;  ///< from 1
  std::string table;
  std::int64_t key = 0;
  std::string values;  ///< canonical JSON: columns to text, integers, null; blobs as {"hex": …}
};

/// A line that is damaged, as far as it can be told.
struct TranscriptFault {
  std::size_t line = 0;
  std::string why;
  LastKeys before;           ///< as the line before says
  std::string chain_before;  ///< digest of the line before
  std::string chain;         ///< its own digest; empty: not legible
};

struct Transcript {
  std::vector<TranscriptRow> rows;  ///< whole ones, as their digests prove
  std::vector<TranscriptFault> faults;
  LastKeys last;      ///< as the last whole line says: rows that were committed
  bool torn = false;  ///< the last line has no end: a writer was killed in the middle of it
};

/// Reads and proves every line. A damaged one costs itself alone: the chain goes on from the digest
/// that it states. Errors: not_found, io.
[[nodiscard]] Result<Transcript> read_transcript(const std::filesystem::path& file);

/// Whether `row`, found elsewhere, is what the damaged line had: its digest says so.
[[nodiscard]] bool is_row_of(const TranscriptFault& fault, const TranscriptRow& row);

/// One row of a growing table in the transcript's form; nothing when there is none.
/// Errors: integrity, io.
[[nodiscard]] Result<std::optional<TranscriptRow>> row_of(const Database& database,
                                                          const GrowingTable& table,
                                                          std::int64_t key);
/// Largest key; nothing for an empty table.
[[nodiscard]] Result<std::optional<std::int64_t>> last_key_of(const Database& database,
                                                              const GrowingTable& table);
/// Writes a row as it is. Errors: those of Statement::step, invalid_input (no such column).
[[nodiscard]] Result<void> insert_row(const Database& database, const TranscriptRow& row);

}  // namespace qualify::journal
