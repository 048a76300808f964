#pragma once

#include <string>
#include <type_traits>
#include <vector>

namespace qualify::test {

/// What a program did. Output is stdout and stderr together.
struct Ran {
  int exit_code = -1;  ///< 128 + n when signal n ended it
  std::string output;
};

/// Runs argv[0] (absolute path) to its end with `input` on stdin (at most a pipe's buffer, 64 KiB).
[[nodiscard]] Ran run_program(const std::vector<std::string>& argv, const std::string& input = {});

/// What `work` returns in a child process, whose user is nobody where this process is root: for
/// tests of what somebody without rights sees. The child gets no gtest assertions through; it says
/// what it found in its text.
template <class Work>
[[nodiscard]] Ran in_child_without_rights(Work&& work);

namespace detail {
/// Forks; the child drops its rights, calls `work`, writes the text and exits 0.
[[nodiscard]] Ran fork_without_rights(std::string (*work)(void*), void* context);
}  // namespace detail

template <class Work>
Ran in_child_without_rights(Work&& work) {
  return detail::fork_without_rights(
      [](void* context) -> std::string {
        return (*static_cast<std::remove_reference_t<Work>*>(context))();
      },
      &work);
}

}  // namespace qualify::test
