#pragma once

#include <filesystem>

namespace qualify::test {

/// /dev/shm where there is one, for tests that write durably thousands of times and need not know
/// that the disk can; otherwise the usual place.
[[nodiscard]] std::filesystem::path memory_folder();

/// A fresh folder, removed at the end unless the current test failed: then it stays and is named.
class TempFolder {
 public:
  TempFolder() : TempFolder(std::filesystem::temp_directory_path()) {}
  explicit TempFolder(const std::filesystem::path& parent);
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path operator/(const std::filesystem::path& name) const {
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace qualify::test
