#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "qualify/base/error.hpp"

/// Names that may stand in a tree which is laid out on any file system.
namespace qualify::archive {

/// A relative path without "", "." and ".." parts, control characters or invalid UTF-8, parts of at
/// most 255 bytes, 3,840 bytes in all (PATH_MAX leaves the rest for the folder it is laid out in).
/// Errors: invalid_input, naming the path in printable form.
[[nodiscard]] Result<void> check_member_name(std::string_view path);

/// What the kernel takes as the target of the symbolic link `path`: not empty, no NUL, shorter than
/// PATH_MAX (4,096 bytes). Where it leads is TreeCheck's. Errors: invalid_input, naming `path`.
[[nodiscard]] Result<void> check_link_target(std::string_view path, std::string_view target);

/// The path with control characters and invalid UTF-8 as \xNN, cut in the middle when long.
[[nodiscard]] std::string printable(std::string_view path);

/// Collects a whole tree and says what could not be laid out everywhere: names in one folder that
/// are the same but for case or Unicode form, a name that is both file and folder, symbolic links
/// that lead out of the tree (followed component by component, as the kernel does).
class TreeCheck {
 public:
  void add_file(std::string_view path) { add(path, ""); }
  void add_symlink(std::string_view path, std::string_view target) { add(path, target); }
  /// All faults, in path order; empty = good.
  [[nodiscard]] std::vector<Error> faults() const;

 private:
  void add(std::string_view path, std::string_view target);
  [[nodiscard]] bool leaves(const std::string& path, const std::string& target) const;

  std::vector<std::string> paths_;
  std::map<std::string, std::string> links_;
};

}  // namespace qualify::archive
