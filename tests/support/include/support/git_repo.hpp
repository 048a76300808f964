#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace qualify::test {

/// Runs a program with a clean environment (empty HOME, fixed git identity and dates, UTC) and
/// returns its standard output. A nonzero exit fails the current test and names the command.
std::string run(const std::vector<std::string>& argv, const std::filesystem::path& folder = {});
/// The same for a program whose exit code is the question; output is dropped.
int exit_code_of(const std::vector<std::string>& argv, const std::filesystem::path& folder = {});

/// A real repository made by the `git` command.
class GitRepo {
 public:
  /// `git init` with extra arguments.
  explicit GitRepo(std::filesystem::path folder, const std::vector<std::string>& arguments = {});
  /// `git <arguments>` in it; its output without the last newline.
  std::string git(std::vector<std::string> arguments) const;  // NOLINT(*-use-nodiscard)
  void write(const std::string& path, const std::string& content) const;
  /// Adds everything and commits; returns the commit.
  std::string commit(const std::string& message = "work") const;  // NOLINT(*-use-nodiscard)
  [[nodiscard]] const std::filesystem::path& path() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

}  // namespace qualify::test
