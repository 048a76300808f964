#include "support/git_repo.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "support/program.hpp"

namespace qualify::test {

namespace {

/// env -i: nothing that the person or the machine sets may change what a test sees.
Ran run_clean(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  std::vector<std::string> words{"/usr/bin/env",
                                 "-i",
                                 "PATH=/usr/local/bin:/usr/bin:/bin",
                                 "HOME=/nonexistent",
                                 "TZ=UTC",
                                 "LC_ALL=C.UTF-8",
                                 "GIT_CONFIG_NOSYSTEM=1",
                                 "GIT_CONFIG_COUNT=3",
                                 "GIT_CONFIG_KEY_0=protocol.file.allow",
                                 "GIT_CONFIG_VALUE_0=always",
                                 "GIT_CONFIG_KEY_1=init.defaultBranch",
                                 "GIT_CONFIG_VALUE_1=main",
                                 "GIT_CONFIG_KEY_2=gc.auto",
                                 "GIT_CONFIG_VALUE_2=0",
                                 "GIT_AUTHOR_NAME=Tester",
                                 "GIT_AUTHOR_EMAIL=t@example.com",
                                 "GIT_COMMITTER_NAME=Tester",
                                 "GIT_COMMITTER_EMAIL=t@example.com",
                                 "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
                                 "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z"};
  if (!folder.empty()) words.insert(words.begin() + 2, {"-C", folder.string()});
  words.insert(words.end(), argv.begin(), argv.end());
  return run_program(words);
}

std::string joined(const std::vector<std::string>& argv) {
  std::string text;
  for (const std::string& word : argv) text += (text.empty() ? "" : " ") + word;
  return text;
}

}  // namespace

std::string run(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  Ran ran = run_clean(argv, folder);
  EXPECT_EQ(ran.exit_code, 0) << joined(argv) << "\n" << ran.output;
  return ran.output;
}

int exit_code_of(const std::vector<std::string>& argv, const std::filesystem::path& folder) {
  return run_clean(argv, folder).exit_code;
}

GitRepo::GitRepo(std::filesystem::path folder, const std::vector<std::string>& arguments)
    : folder_(std::move(folder)) {
  std::vector<std::string> argv{"git", "init", "-q"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  argv.push_back(folder_.string());
  run(argv);
}

std::string GitRepo::git(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "git");
  std::string output = run(arguments, folder_);
  if (output.ends_with('\n')) output.pop_back();
  return output;
}

void GitRepo::write(const std::string& path, const std::string& content) const {
  std::filesystem::create_directories((folder_ / path).parent_path());
  std::ofstream(folder_ / path, std::ios::binary) << content;
}

std::string GitRepo::commit(const std::string& message) const {
  git({"add", "-A"});
  git({"commit", "-q", "-m", message});
  return git({"rev-parse", "HEAD"});
}

}  // namespace qualify::test
