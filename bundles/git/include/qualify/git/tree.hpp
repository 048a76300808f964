#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

/// Code from the git object database of one commit: never from the worktree, so that no filter,
/// line ending, export-ignore, export-subst or uncommitted edit gets in.
namespace qualify::git {

struct TreeOptions {
  /// Seal the commit although the worktree differs from it. The edits are still not taken.
  bool allow_dirty = false;
};

/// The files of one commit, submodules and LFS objects included. One object per thread.
class Tree {
 public:
  /// Resolves `revision` in the repository at `repository` (its top folder, or a bare one), and
  /// checks everything that can be checked without reading file content:
  /// - the worktree, when HEAD is this commit: changed, staged or conflicting tracked files,
  ///   assume-unchanged and skip-worktree flags (untracked files are not part of any commit);
  /// - names: not UTF-8, "." or "..", too long, clashing by case or Unicode form;
  /// - symbolic links that leave the tree; submodules that are not there.
  /// Errors: not_found (repository, revision), invalid_input (names, links), refused (worktree,
  /// submodules), all faults in Error::others; unsupported (SHA-256 repository), io.
  [[nodiscard]] static Result<Tree> open(const std::filesystem::path& repository,
                                         const std::string& revision,
                                         const TreeOptions& options = {});
  Tree(Tree&&) noexcept;
  Tree& operator=(Tree&&) noexcept;
  ~Tree();

  [[nodiscard]] const std::string& commit() const;  ///< 40 hex
  [[nodiscard]] bool dirty() const;                 ///< only with allow_dirty
  [[nodiscard]] std::uint64_t files() const;        ///< number of files and links
  /// Over paths, modes and object ids: equal keys = equal archives. LFS objects are named by the
  /// pointers in it.
  [[nodiscard]] Digest key() const;

  /// The normalised tar (qualify/archive/tar.hpp). Every object is checked against its id by
  /// libgit2, every LFS object against its SHA-256. Errors: integrity, refused (LFS object
  /// missing), io, the sink's.
  [[nodiscard]] Result<void> write_archive(const Sink& sink) const;

 private:
  struct State;
  explicit Tree(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace qualify::git
