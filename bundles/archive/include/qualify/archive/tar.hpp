#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

/// Tar as bundles use it: written in one exact form, read in the forms that tools write.
namespace qualify::archive {

/// Writes POSIX.1-2017 ustar with pax records in one exact form, so that equal input gives equal
/// bytes: uid, gid and mtime 0, no names of users, modes 0644, 0755 and 0777 (links), no entries
/// for folders, a pax record only where ustar cannot say it (a name over 100 bytes or not ASCII:
/// `path`, `linkpath`; a size over 8 GiB: `size`), two zero blocks at the end. The caller gives
/// entries in ascending byte order of their paths. Not thread-safe.
class TarWriter {
 public:
  explicit TarWriter(Sink sink) : sink_(std::move(sink)) {}

  /// A file of exactly `size` bytes, which write() then delivers in pieces.
  [[nodiscard]] Result<void> begin_file(std::string_view path, bool executable, std::uint64_t size);
  [[nodiscard]] Result<void> write(std::span<const std::byte> data);
  [[nodiscard]] Result<void> symlink(std::string_view path, std::string_view target);
  /// Closes the archive; nothing may follow.
  [[nodiscard]] Result<void> finish();

 private:
  Result<void> header(std::string_view path, std::string_view target, char type, unsigned mode,
                      std::uint64_t size);
  Result<void> put(std::string_view text);
  Result<void> pad();

  Sink sink_;
  std::string last_path_;
  std::uint64_t left_ = 0;     ///< bytes of the open file still to come
  std::uint64_t padding_ = 0;  ///< zero bytes after it
};

struct Entry {
  enum class Kind { file, folder, symlink, hardlink, other };
  std::string path;  ///< as in the archive; check with check_member_name before use
  Kind kind = Kind::file;
  bool executable = false;
  std::uint64_t size = 0;    ///< bytes
  std::string target;        ///< of links
  std::uint64_t offset = 0;  ///< of the content, from the archive's begin
};

/// Fills the span as far as it can; 0 = end.
using Source = std::function<Result<std::size_t>(std::span<std::byte>)>;

/// Reads ustar, pax and GNU long names, in one pass. Header sums, numbers and bounds are checked;
/// nothing is written anywhere. Not thread-safe.
class TarReader {
 public:
  explicit TarReader(Source source) : source_(std::move(source)) {}

  /// The next entry, skipping what was not read of the last one; nothing at the end.
  /// Errors: integrity (not a tar, cut short), those of the source.
  [[nodiscard]] Result<std::optional<Entry>> next();
  /// Up to `buffer.size()` bytes of the current entry; 0 = its end.
  [[nodiscard]] Result<std::size_t> read(std::span<std::byte> buffer);

 private:
  Result<bool> block(std::span<std::byte> buffer);  ///< false at a clean end of input
  Result<void> skip(std::uint64_t count);
  Result<std::string> small_content(std::uint64_t size);

  Source source_;
  std::uint64_t position_ = 0;
  std::uint64_t left_ = 0;
  std::uint64_t padding_ = 0;
};

}  // namespace qualify::archive
