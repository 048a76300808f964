#include "swap.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "qualify/base/files.hpp"

namespace qualify::rebuild {

namespace {

fs::path with(const fs::path& file, const std::string& suffix) {
  return file.string() + suffix;
}

/// The file under a second name; it keeps its first.
Result<void> keep_as(const fs::path& file, const fs::path& name) {
  if (::link(file.c_str(), name.c_str()) == 0) return {};
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) {
    return fail_errno(errno, "cannot keep it as " + name.string(), file.string());
  }
  std::error_code error;  // a file system without hard links
  fs::copy_file(file, name, error);
  if (error) return fail_errno(error.value(), "cannot keep it as " + name.string(), file.string());
  const auto fd = open_read(name);
  if (!fd) return tl::unexpected(fd.error());
  if (::fsync(fd->get()) != 0) return fail_errno(errno, "cannot write", name.string());
  return {};
}

/// The lowest number that is free, or that names this very file already.
fs::path aside_name(const fs::path& file) {
  for (int number = 1;; ++number) {
    fs::path name = with(file, ".damaged-" + std::to_string(number));
    std::error_code ignored;
    if (!fs::exists(name) || fs::equivalent(file, name, ignored)) return name;
  }
}

Result<void> set_aside_as(const fs::path& file, const fs::path& name, Rebuilt& result) {
  if (!fs::exists(name)) {
    if (auto kept = keep_as(file, name); !kept) return kept;
  }
  result.kept.push_back(name);
  return {};
}

Result<void> replace(const fs::path& made, const fs::path& file) {
  if (::rename(made.c_str(), file.c_str()) != 0) {
    return fail_errno(errno, "cannot replace", file.string());
  }
  return sync_folder(file.parent_path());
}

}  // namespace

fs::path new_database(const run::StatePaths& paths) {
  return with(paths.database(), ".rebuilding");
}
fs::path new_transcript(const run::StatePaths& paths) {
  return with(paths.transcript(), ".rebuilding");
}

std::vector<fs::path> set_aside(const run::StatePaths& paths) {
  std::vector<fs::path> files;
  for (int number = 1;; ++number) {
    fs::path name = with(paths.database(), ".damaged-" + std::to_string(number));
    if (!fs::exists(name)) break;
    files.push_back(std::move(name));
  }
  std::reverse(files.begin(), files.end());
  return files;
}

Result<void> swap_in(const run::StatePaths& paths, Rebuilt& result) {
  // The transcript first: should this end here, it is what the next rebuilding begins with.
  if (fs::exists(new_transcript(paths))) {
    if (fs::exists(paths.transcript())) {
      if (auto kept = set_aside_as(paths.transcript(), aside_name(paths.transcript()), result);
          !kept) {
        return kept;
      }
    }
    if (auto done = replace(new_transcript(paths), paths.transcript()); !done) return done;
  }
  if (fs::exists(paths.database())) {
    const fs::path name = aside_name(paths.database());
    if (auto kept = set_aside_as(paths.database(), name, result); !kept) return kept;
    for (const char* suffix : {"-wal", "-journal"}) {
      const fs::path log = with(paths.database(), suffix);
      if (!fs::exists(log)) continue;
      if (auto kept = set_aside_as(log, with(name, suffix), result); !kept) return kept;
    }
    if (auto synced = sync_folder(paths.folder); !synced) return synced;
  }
  // A log is of one database: SQLite would join it to whatever has the name.
  for (const char* suffix : {"-wal", "-shm", "-journal"}) {
    std::error_code error;
    fs::remove(with(paths.database(), suffix), error);
    if (error) {
      return fail_errno(error.value(), "cannot remove", with(paths.database(), suffix).string());
    }
  }
  return replace(new_database(paths), paths.database());
}

}  // namespace qualify::rebuild
