#pragma once

#include <git2.h>

#include <filesystem>
#include <memory>
#include <string>

#include "qualify/base/error.hpp"

/// Owned libgit2 handles and its errors as ours. Internal to this module.
namespace qualify::git {

template <auto Free>
struct Deleter {
  template <class T>
  void operator()(T* handle) const {
    Free(handle);
  }
};
using Repository = std::unique_ptr<git_repository, Deleter<git_repository_free>>;
using Object = std::unique_ptr<git_object, Deleter<git_object_free>>;
using TreeHandle = std::unique_ptr<git_tree, Deleter<git_tree_free>>;
using Blob = std::unique_ptr<git_blob, Deleter<git_blob_free>>;
using Index = std::unique_ptr<git_index, Deleter<git_index_free>>;
using StatusList = std::unique_ptr<git_status_list, Deleter<git_status_list_free>>;
using Submodule = std::unique_ptr<git_submodule, Deleter<git_submodule_free>>;
using Config = std::unique_ptr<git_config, Deleter<git_config_free>>;

/// Starts libgit2 once for the process, with small caches: what is read here is read once.
void start_libgit2();

/// libgit2's last error of this thread as an Error: ownership, SHA-256 repositories and missing
/// things get their own code and hint.
[[nodiscard]] Unexpected git_failure(int code, std::string message, const std::string& context);

[[nodiscard]] Result<Repository> open_repository(const std::filesystem::path& folder);

[[nodiscard]] std::string hex(const git_oid& id);

/// Reads a blob whole.
[[nodiscard]] Result<Blob> read_blob(git_repository* repository, const git_oid& id,
                                     const std::string& context);

}  // namespace qualify::git
