#include "worktree.hpp"

#include "lfs.hpp"
#include "qualify/archive/names.hpp"
#include "qualify/base/files.hpp"

namespace qualify::git {

namespace {

const char* describe(unsigned status) {
  if ((status & GIT_STATUS_CONFLICTED) != 0) return "has a merge conflict";
  if ((status & (GIT_STATUS_WT_DELETED | GIT_STATUS_INDEX_DELETED)) != 0) return "is deleted";
  if ((status & GIT_STATUS_INDEX_NEW) != 0) return "is added but not committed";
  if ((status &
       (GIT_STATUS_INDEX_MODIFIED | GIT_STATUS_INDEX_TYPECHANGE | GIT_STATUS_INDEX_RENAMED)) != 0) {
    return "has staged changes";
  }
  if ((status & GIT_STATUS_WT_UNREADABLE) != 0) return "cannot be read";
  return "has changes";
}

/// libgit2 runs no LFS filter, and so takes a checked-out LFS object for an edited pointer.
bool is_checked_out_lfs(git_repository* repository, const git_status_entry& entry) {
  if (entry.status != GIT_STATUS_WT_MODIFIED || entry.index_to_workdir == nullptr) return false;
  const git_diff_file& file = entry.index_to_workdir->old_file;
  const auto blob = read_blob(repository, file.id, file.path);
  if (!blob) return false;
  const std::string_view content(static_cast<const char*>(git_blob_rawcontent(blob->get())),
                                 static_cast<std::size_t>(git_blob_rawsize(blob->get())));
  const auto pointer = parse_lfs_pointer(content);
  if (!pointer || !*pointer) return false;
  const auto hashed =
      hash_file(std::filesystem::path(git_repository_workdir(repository)) / file.path);
  return hashed && hashed->digest == (*pointer)->digest;
}

}  // namespace

Result<std::vector<Error>> worktree_faults(git_repository* repository, const std::string& prefix) {
  std::vector<Error> faults;
  if (git_repository_is_bare(repository) != 0) return faults;
  const std::string context = git_repository_workdir(repository);
  const auto add = [&](const char* path, const char* what, const char* hint) {
    faults.push_back(
        {Errc::refused, std::string(what), prefix + archive::printable(path), hint, {}});
  };

  git_index* raw_index = nullptr;
  if (const int code = git_repository_index(&raw_index, repository); code != 0) {
    return git_failure(code, "cannot read the git index", context);
  }
  const Index index(raw_index);
  for (std::size_t i = 0; i < git_index_entrycount(index.get()); ++i) {
    const git_index_entry* entry = git_index_get_byindex(index.get(), i);
    if ((entry->flags & GIT_INDEX_ENTRY_VALID) != 0) {
      add(entry->path, "is marked assume-unchanged, which hides edits",
          "git update-index --no-assume-unchanged PATH");
    }
    if ((entry->flags_extended & GIT_INDEX_ENTRY_SKIP_WORKTREE) != 0) {
      add(entry->path, "is marked skip-worktree, which hides edits",
          "git update-index --no-skip-worktree PATH, or git sparse-checkout disable");
    }
  }

  git_status_options options;
  git_status_options_init(&options, GIT_STATUS_OPTIONS_VERSION);
  options.show = GIT_STATUS_SHOW_INDEX_AND_WORKDIR;
  // Submodules are walked by the caller, at the commits that the tree names.
  options.flags = GIT_STATUS_OPT_EXCLUDE_SUBMODULES | GIT_STATUS_OPT_INCLUDE_UNREADABLE;
  git_status_list* raw = nullptr;
  if (const int code = git_status_list_new(&raw, repository, &options); code != 0) {
    return git_failure(code, "cannot compare the worktree with its commit", context);
  }
  const StatusList list(raw);
  for (std::size_t i = 0; i < git_status_list_entrycount(list.get()); ++i) {
    const git_status_entry* entry = git_status_byindex(list.get(), i);
    if (entry->status == GIT_STATUS_CURRENT || entry->status == GIT_STATUS_WT_NEW ||
        entry->status == GIT_STATUS_IGNORED || is_checked_out_lfs(repository, *entry)) {
      continue;
    }
    const git_diff_delta* delta =
        entry->index_to_workdir != nullptr ? entry->index_to_workdir : entry->head_to_index;
    add(delta->old_file.path, describe(entry->status), "commit it, or git stash");
  }
  return faults;
}

}  // namespace qualify::git
