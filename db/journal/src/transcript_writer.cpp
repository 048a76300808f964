#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "errors.hpp"
#include "transcript_line.hpp"
#include "transcript_writer.hpp"

namespace qualify::journal {

namespace {

constexpr std::size_t kFlush = 4U << 20U;  // bytes of lines in memory at once
constexpr std::size_t kEnd = 16U << 10U;   // bytes that are read first to find the last lines

Result<std::string> read_at(int fd, std::uint64_t offset, std::size_t size, const fs::path& file) {
  std::string bytes(size, '\0');
  std::size_t have = 0;
  while (have < size) {
    const ssize_t count =
        ::pread(fd, bytes.data() + have, size - have, static_cast<off_t>(offset + have));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot read", file.string());
    if (count == 0) return fail(Errc::io, "cannot read: it got shorter meanwhile", file.string());
    have += static_cast<std::size_t>(count);
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<TranscriptWriter>> TranscriptWriter::open(const fs::path& file,
                                                                 sqlite3* db) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!fd.valid()) return fail_errno(errno, "cannot open", file.string());
  std::unique_ptr<TranscriptWriter> writer(new TranscriptWriter(file, std::move(fd), db));
  if (auto done = writer->prepare(); !done) return tl::unexpected(done.error());
  auto done = writer->locked([&]() -> Result<void> {
    if (auto read = writer->read_end(); !read) return read;
    if (writer->size_ == 0) {  // perhaps made by this open
      const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
      if (auto synced = sync_folder(folder); !synced) return synced;
    }
    if (auto agreed = writer->agree(); !agreed) return agreed;
    return writer->append_new();
  });
  if (!done) return tl::unexpected(done.error());
  return writer;
}

Result<void> TranscriptWriter::prepare() {
  for (const GrowingTable& table : growing_tables()) {
    const std::string sql = std::string("SELECT ") + table.key + " AS \"key\", * FROM " +
                            table.name + " WHERE " + table.key + " > ?1 ORDER BY " + table.key;
    sqlite3_stmt* statement = nullptr;
    const int code =
        sqlite3_prepare_v3(db_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    if (code != SQLITE_OK) return fail_sqlite(db_, code, "the database refused", table.name);
    newer_.push_back(Statement(db_, statement));
  }
  return {};
}

Result<void> TranscriptWriter::locked(const std::function<Result<void>()>& work) {
  while (::flock(fd_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return fail_errno(errno, "cannot lock", file_.string());
  }
  auto done = work();
  ::flock(fd_.get(), LOCK_UN);
  return done;
}

Result<void> TranscriptWriter::follow() {
  return locked([&]() -> Result<void> {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) {
      return fail_errno(errno, "cannot read", file_.string());
    }
    if (static_cast<std::uint64_t>(status.st_size) != size_) {  // another process wrote
      if (auto read = read_end(); !read) return read;
    }
    return append_new();
  });
}

/// Finds where the story stands: the last whole line, proven by the one before it.
Result<void> TranscriptWriter::read_end() {
  struct stat status {};
  if (::fstat(fd_.get(), &status) != 0) return fail_errno(errno, "cannot read", file_.string());
  const auto total = static_cast<std::uint64_t>(status.st_size);
  std::string end;
  std::size_t last = std::string::npos;    // where the last whole line begins
  std::size_t before = std::string::npos;  // and the one before it
  std::size_t stop = 0;                    // just after the last whole line
  for (std::size_t wanted = kEnd;; wanted *= 2) {
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(wanted, total));
    auto read = read_at(fd_.get(), total - size, size, file_);
    if (!read) return tl::unexpected(read.error());
    end = std::move(*read);
    const bool all = size == total;
    const auto begin_of = [&](std::size_t line_stop) -> std::size_t {
      const std::size_t feed = line_stop < 2 ? std::string::npos : end.rfind('\n', line_stop - 2);
      if (feed != std::string::npos) return feed + 1;
      return all ? 0 : std::string::npos;
    };
    const std::size_t feed = end.rfind('\n');
    if (feed == std::string::npos && !all) continue;
    stop = feed == std::string::npos ? 0 : feed + 1;
    last = stop == 0 ? 0 : begin_of(stop);
    if (last == std::string::npos) continue;
    before = last == 0 ? 0 : begin_of(last);
    if (before == std::string::npos) continue;
    break;
  }
  if (stop < end.size()) {
    // A writer was killed in the middle of a line. It had not said that it was done.
    if (::ftruncate(fd_.get(), static_cast<off_t>(total - (end.size() - stop))) != 0) {
      return fail_errno(errno, "cannot write", file_.string());
    }
  }
  size_ = total - (end.size() - stop);
  chain_.clear();
  last_.clear();
  if (size_ == 0) return {};
  const std::string_view text(end);
  std::string chain_before;
  if (last > before) {
    if (const auto line = parse_line(text.substr(before, last - before - 1))) {
      chain_before = line->chain;
    }
  }
  const auto line = parse_line(text.substr(last, stop - last - 1));
  if (!line || chain_of(chain_before, *line) != line->chain) {
    return fail(Errc::integrity, "the transcript of the database is damaged in its last lines",
                file_.string(), kRebuildHint);
  }
  chain_ = line->chain;
  last_ = line->after;
  last_table_ = line->table;
  last_values_ = canonical_bytes(line->row);
  return {};
}

/// The database has at least what its transcript has, and the last row is the same.
Result<void> TranscriptWriter::agree() {
  if (size_ == 0) return {};
  const auto differ = [&](const std::string& what) {
    return fail(Errc::integrity, what, file_.string(),
                "was an older copy of the database put back? Look with: qualify doctor; " +
                    std::string(kRebuildHint));
  };
  for (std::size_t i = 0; i < growing_tables().size(); ++i) {
    const GrowingTable& table = growing_tables()[i];
    const auto known = last_.find(table.name);
    if (known == last_.end()) continue;
    newer_[i].bind(1, known->second - 1);
    auto row = newer_[i].step();
    if (!row) return tl::unexpected(row.error());
    if (!*row || newer_[i].number(0) != known->second) {
      newer_[i].reset();
      return differ(std::string("the database lacks rows of '") + table.name +
                    "' that its transcript has");
    }
    Json values = newer_[i].row();
    values.erase("key");
    newer_[i].reset();
    if (last_table_ == table.name && last_values_ != canonical_bytes(values)) {
      return differ(std::string("row ") + std::to_string(known->second) + " of '" + table.name +
                    "' is not what its transcript has");
    }
  }
  return {};
}

Result<void> TranscriptWriter::append_new() {
  // One moment for all tables, so that no row comes before what it points to.
  int code = sqlite3_exec(db_, "BEGIN", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail_sqlite(db_, code, "the database refused");
  const std::uint64_t size_before = size_;
  const std::string chain_before = chain_;
  const LastKeys last_before = last_;
  std::string text;
  const auto read_all = [&]() -> Result<void> {
    for (std::size_t i = 0; i < growing_tables().size(); ++i) {
      const GrowingTable& table = growing_tables()[i];
      const auto known = last_.find(table.name);
      newer_[i].bind(1, known == last_.end() ? table.first - 1 : known->second);
      for (;;) {
        auto row = newer_[i].step();
        if (!row) return tl::unexpected(row.error());
        if (!*row) break;
        TranscriptLine line;
        line.table = table.name;
        last_[table.name] = newer_[i].number(0);
        line.after = last_;
        line.row = newer_[i].row();
        line.row.erase("key");
        line.chain = chain_of(chain_, line);
        chain_ = line.chain;
        text += to_text(line);
        if (text.size() >= kFlush) {
          if (auto done = append(text); !done) return done;
          text.clear();
        }
      }
      newer_[i].reset();
    }
    return text.empty() ? Result<void>() : append(text);
  };
  auto done = read_all();
  for (Statement& statement : newer_) statement.reset();
  (void)sqlite3_exec(db_, "COMMIT", nullptr, nullptr, nullptr);
  if (done && size_ != size_before && ::fdatasync(fd_.get()) != 0) {
    done = fail_errno(errno, "cannot write", file_.string());
  }
  if (!done) {
    // Half a story is none: the next try tells it from here.
    (void)::ftruncate(fd_.get(), static_cast<off_t>(size_before));
    size_ = size_before;
    chain_ = chain_before;
    last_ = last_before;
    Error error = done.error();
    error.message = "recorded, but not yet in the transcript: " + error.message;
    if (error.hint.empty()) error.hint = "give the command again when that is cured";
    return Unexpected(std::move(error));
  }
  return {};
}

Result<void> TranscriptWriter::append(const std::string& text) {
  auto done = write_all(fd_.get(), std::as_bytes(std::span(text)), file_);
  if (done) size_ += text.size();
  return done;
}

}  // namespace qualify::journal
