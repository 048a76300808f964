#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "qualify/base/files.hpp"
#include "qualify/journal/transcript.hpp"

struct sqlite3;

namespace qualify::journal {

/// Appends what one connection has committed to the transcript. Several processes may have one
/// transcript open; they take turns by flock on the file.
class TranscriptWriter {
 public:
  /// Ends what a killed writer left unfinished, makes sure that database and transcript tell one
  /// story, and catches up. Errors: integrity (they do not), io, no_space.
  static Result<std::unique_ptr<TranscriptWriter>> open(const std::filesystem::path& file,
                                                        sqlite3* db);
  /// Everything that was committed and is not in it yet; durable when it returns.
  /// Errors: io, no_space, busy.
  Result<void> follow();

 private:
  TranscriptWriter(std::filesystem::path file, Fd fd, sqlite3* db)
      : file_(std::move(file)), fd_(std::move(fd)), db_(db) {}
  Result<void> prepare();
  Result<void> locked(const std::function<Result<void>()>& work);
  Result<void> read_end();
  Result<void> agree();
  Result<void> append_new();
  Result<void> append(const std::string& text);

  std::filesystem::path file_;
  Fd fd_;
  sqlite3* db_;
  std::vector<Statement> newer_;  ///< by growing table: rows after a key
  std::uint64_t size_ = 0;        ///< of the file, as this process left or read it
  std::string chain_;             ///< digest of the last line
  LastKeys last_;
  std::string last_table_;   ///< of the last line as read
  std::string last_values_;  ///< and its row, canonical JSON
};

}  // namespace qualify::journal
