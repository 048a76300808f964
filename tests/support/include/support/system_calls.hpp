#pragma once

#include <functional>
#include <string>
#include <vector>

/// Programs that are killed, or refused, at their every system call; by strace.
namespace qualify::test {

/// Every system call by which files change, and those by which a program gets to them.
[[nodiscard]] const std::vector<std::string>& file_calls();

/// Runs `argv` with SIGKILL at the n-th of each of `calls`, for every n, until it gets to its end
/// (strace counts each call by itself); `check` looks at what each leaves, under a name of the
/// point. Stops at the first failure. Returns the number of kills.
int kill_at_every_step(const std::vector<std::string>& argv, const std::vector<std::string>& calls,
                       const std::function<void(const std::string& point)>& check);

/// The same with the disk full (ENOSPC) from the n-th call on instead of a kill; the program must
/// end by itself, with any exit code. Returns the number of tries in which it met a full disk.
int fill_disk_at_every_step(
    const std::vector<std::string>& argv, const std::vector<std::string>& calls,
    const std::function<void(const std::string& point, int exit_code)>& check);

}  // namespace qualify::test
