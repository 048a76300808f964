#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "qualify/base/files.hpp"
#include "support/program.hpp"

namespace qualify::test {

/// Installs the npm packages once, as the lock file pins them. Empty on success.
inline std::string install_npm_packages() {
  const fs::path folder = JUDGES_FOLDER;
  const auto lock = FileLock::acquire(folder.string() + ".lock", true);
  const std::string pinned = read_file(fs::path(JUDGES_SOURCE) / "package-lock.json").value();
  if (read_file(folder / "installed.json").value_or("") == pinned) return {};
  fs::create_directories(folder);
  for (const char* file : {"package.json", "package-lock.json"}) {
    fs::copy_file(fs::path(JUDGES_SOURCE) / file, folder / file,
                  fs::copy_options::overwrite_existing);
  }
  // --force: the packages declare newer Node releases than Debian's; they run on 18.20 and on 20.
  const auto ran = run_program({NPM_PROGRAM, "ci", "--force", "--ignore-scripts", "--no-audit",
                                "--no-fund", "--prefix", folder.string()});
  if (ran.exit_code != 0) return ran.output;
  return write_file_atomic(folder / "installed.json", pinned) ? "" : "cannot write";
}

/// In SetUp(): skips the test where the packages are not here and cannot be had.
inline void need_npm_packages() {
  const std::string fault = install_npm_packages();
  for (const char* offline : {"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ENETUNREACH"}) {
    if (fault.find(offline) != std::string::npos) {
      GTEST_SKIP() << "no network, and the npm packages were not installed before";
    }
  }
  ASSERT_EQ(fault, "");
  ::setenv("JUDGES", JUDGES_FOLDER, 1);
}

}  // namespace qualify::test
