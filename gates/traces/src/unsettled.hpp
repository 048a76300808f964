#pragma once

#include <filesystem>
#include <mutex>
#include <vector>

#include "qualify/base/files.hpp"

/// Internal to this module.
namespace qualify::traces {

/// Sealed files that are whole and have no name yet. A file system commits all that is pending at
/// once: of many files that are synced together only the first waits for it. What is left when this
/// goes is removed. Thread rule: any thread.
class Unsettled {
 public:
  Unsettled() = default;
  Unsettled(const Unsettled&) = delete;
  Unsettled& operator=(const Unsettled&) = delete;
  ~Unsettled();

  /// `temporary`, open as `fd`, becomes `path`: at the latest with the 64th file. Errors: io,
  /// no_space, of any file.
  [[nodiscard]] Result<void> add(Fd fd, fs::path temporary, fs::path path);
  /// All are durable under their names when it returns. Errors: io, no_space.
  [[nodiscard]] Result<void> settle();

 private:
  [[nodiscard]] Result<void> settle_all();
  struct File {
    Fd fd;
    fs::path temporary;
    fs::path path;
  };
  std::mutex mutex_;
  std::vector<File> files_;
};

}  // namespace qualify::traces
