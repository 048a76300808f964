#include "qualify/git/tree.hpp"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <thread>

#include "handles.hpp"
#include "lfs.hpp"
#include "qualify/archive/names.hpp"
#include "qualify/archive/tar.hpp"
#include "worktree.hpp"

namespace qualify::git {

namespace {

constexpr int kDeepestTree = 512;
constexpr int kDeepestSubmodule = 16;
constexpr std::size_t kMostFaults = 20;

struct File {
  std::string path;  ///< from the top tree
  git_oid id;
  git_filemode_t mode;
  std::size_t part;  ///< index into State::parts
};

std::string_view content_of(const git_blob* blob) {
  return {static_cast<const char*>(git_blob_rawcontent(blob)),
          static_cast<std::size_t>(git_blob_rawsize(blob))};
}

/// All faults as one error; the rest is counted once there are many.
Unexpected refuse(std::vector<Error> faults, const std::string& hint) {
  Error first = std::move(faults.front());
  const std::size_t shown = std::min(faults.size(), kMostFaults);
  for (std::size_t i = 1; i < shown; ++i) first.others.push_back(std::move(faults[i]));
  if (faults.size() > shown) {
    first.others.push_back(
        {first.code, "and " + std::to_string(faults.size() - shown) + " more", {}, {}, {}});
  }
  if (!hint.empty()) {
    Error& last = first.others.empty() ? first : first.others.back();
    last.hint += (last.hint.empty() ? "" : "; ") + hint;
  }
  return Unexpected(std::move(first));
}

}  // namespace

struct Tree::State {
  std::string commit;
  bool dirty = false;
  struct Part {
    Repository handle;
    std::string prefix;  ///< of its paths in the whole tree: "" or "third_party/x/"
  };
  std::vector<Part> parts;   ///< the repository itself, then its submodules
  bool top_is_head = false;  ///< else submodules' checkouts say nothing about this commit
  std::vector<File> files;
  std::vector<Error> faults;           ///< names, links, submodules: never allowed
  std::vector<Error> worktree_faults;  ///< allowed with allow_dirty

  /// The repository itself. Its worktree is compared with its index while its trees are walked.
  Result<void> walk_top(const git_oid& commit, const fs::path& repository);
  Result<void> walk_commit(std::size_t part, const git_oid& commit, int submodules);
  Result<void> walk_tree(std::size_t part, const git_oid& id, const std::string& prefix, int depth,
                         int submodules);
  Result<void> walk_submodule(std::size_t parent, const git_oid& commit, const std::string& path,
                              int submodules);
  void check_names();
  Result<void> write_file(const File& file, archive::TarWriter& tar) const;
  Result<void> write_lfs_object(const File& file, bool executable, const LfsPointer& pointer,
                                archive::TarWriter& tar) const;
};

namespace {

Result<git_oid> resolve_commit(git_repository* repository, const std::string& revision,
                               const std::string& context) {
  git_object* raw = nullptr;
  if (const int code = git_revparse_single(&raw, repository, revision.c_str()); code != 0) {
    auto failure = git_failure(code, "cannot resolve revision '" + revision + "'", context);
    if (failure.value().hint.empty()) {
      failure.value().hint = "git -C '" + context + "' rev-parse '" + revision + "'";
    }
    return failure;
  }
  const Object object(raw);
  git_object* peeled = nullptr;
  if (git_object_peel(&peeled, object.get(), GIT_OBJECT_COMMIT) != 0) {
    return fail(Errc::invalid_input, "revision '" + revision + "' is not a commit", context);
  }
  const Object commit(peeled);
  return *git_object_id(commit.get());
}

bool is_head(git_repository* repository, const git_oid& commit) {
  git_oid head;
  return git_reference_name_to_id(&head, repository, "HEAD") == 0 &&
         git_oid_equal(&head, &commit) != 0;
}

bool has_commit(git_repository* repository, const git_oid& commit) {
  git_object* raw = nullptr;
  if (git_object_lookup(&raw, repository, &commit, GIT_OBJECT_COMMIT) != 0) return false;
  const Object owned(raw);
  return true;
}

}  // namespace

Result<void> Tree::State::walk_top(const git_oid& commit_id, const fs::path& repository) {
  top_is_head = is_head(parts[0].handle.get(), commit_id);
  if (!top_is_head) return walk_commit(0, commit_id, 0);
  // libgit2's objects are one thread's each: the comparison gets a handle of its own.
  Result<std::vector<Error>> found;
  const auto compare = [&] {
    auto own = open_repository(repository);
    if (own)
      found = git::worktree_faults(own->get(), "");
    else
      found = tl::unexpected(own.error());
  };
  Result<void> walked;
  {
    std::jthread comparing;
    try {
      comparing = std::jthread(compare);
    } catch (const std::system_error&) {  // no more threads for this user
      compare();
    }
    walked = walk_commit(0, commit_id, 0);
  }
  if (!found) return tl::unexpected(found.error());
  worktree_faults.insert(worktree_faults.begin(), found->begin(), found->end());
  return walked;
}

Result<void> Tree::State::walk_commit(std::size_t part, const git_oid& commit_id, int submodules) {
  git_repository* const handle = parts[part].handle.get();
  const std::string prefix = parts[part].prefix;
  if (submodules == 0) {
    // walk_top() looks at its worktree.
  } else if (is_head(handle, commit_id)) {
    if (top_is_head) {
      auto found = git::worktree_faults(handle, prefix);
      if (!found) return tl::unexpected(found.error());
      worktree_faults.insert(worktree_faults.end(), found->begin(), found->end());
    }
  } else if (top_is_head && git_repository_is_bare(handle) == 0) {
    worktree_faults.push_back({Errc::refused,
                               "submodule is checked out at another commit",
                               archive::printable(prefix.substr(0, prefix.size() - 1)),
                               "git submodule update, or commit the new one",
                               {}});
  }
  git_object* raw = nullptr;
  if (const int code = git_object_lookup(&raw, handle, &commit_id, GIT_OBJECT_COMMIT); code != 0) {
    return git_failure(code, "cannot read commit " + hex(commit_id), prefix);
  }
  const Object object(raw);
  const auto* found = reinterpret_cast<const git_commit*>(object.get());
  return walk_tree(part, *git_commit_tree_id(found), prefix, 0, submodules);
}

Result<void> Tree::State::walk_tree(std::size_t part, const git_oid& id, const std::string& prefix,
                                    int depth, int submodules) {
  if (depth > kDeepestTree) {
    return fail(Errc::invalid_input, "folders are nested too deep", archive::printable(prefix));
  }
  git_tree* raw = nullptr;
  if (const int code = git_tree_lookup(&raw, parts[part].handle.get(), &id); code != 0) {
    return git_failure(code, "cannot read git tree " + hex(id), archive::printable(prefix));
  }
  const TreeHandle tree(raw);
  for (std::size_t i = 0; i < git_tree_entrycount(tree.get()); ++i) {
    const git_tree_entry* entry = git_tree_entry_byindex(tree.get(), i);
    const std::string path = prefix + git_tree_entry_name(entry);
    const git_oid& child = *git_tree_entry_id(entry);
    const git_filemode_t mode = git_tree_entry_filemode(entry);
    Result<void> done;
    if (mode == GIT_FILEMODE_TREE) {
      done = walk_tree(part, child, path + "/", depth + 1, submodules);
    } else if (mode == GIT_FILEMODE_COMMIT) {
      done = walk_submodule(part, child, path, submodules);
    } else if (mode == GIT_FILEMODE_BLOB || mode == GIT_FILEMODE_BLOB_EXECUTABLE ||
               mode == GIT_FILEMODE_LINK) {
      files.push_back({path, child, mode, part});
    } else {
      faults.push_back({Errc::invalid_input,
                        "unknown file mode in the git tree",
                        archive::printable(path),
                        {},
                        {}});
    }
    if (!done) return done;
  }
  return {};
}

Result<void> Tree::State::walk_submodule(std::size_t parent, const git_oid& commit_id,
                                         const std::string& path, int submodules) {
  if (submodules >= kDeepestSubmodule) {
    return fail(Errc::invalid_input, "submodules are nested too deep", archive::printable(path));
  }
  git_repository* const outer = parts[parent].handle.get();
  const std::string inside = path.substr(parts[parent].prefix.size());
  // Its checkout, or where git keeps its objects when it is not checked out.
  std::vector<fs::path> places;
  if (const char* workdir = git_repository_workdir(outer); workdir != nullptr) {
    places.push_back(fs::path(workdir) / inside);
  }
  const fs::path modules = fs::path(git_repository_commondir(outer)) / "modules";
  git_submodule* raw = nullptr;
  if (git_submodule_lookup(&raw, outer, inside.c_str()) == 0) {
    const Submodule submodule(raw);
    places.push_back(modules / git_submodule_name(submodule.get()));
  }
  places.push_back(modules / inside);
  for (const fs::path& place : places) {
    auto opened = open_repository(place);
    if (!opened || !has_commit(opened->get(), commit_id)) continue;
    parts.push_back({std::move(*opened), path + "/"});
    return walk_commit(parts.size() - 1, commit_id, submodules + 1);
  }
  faults.push_back({Errc::refused,
                    "submodule's commit " + hex(commit_id).substr(0, 12) + " is not here",
                    archive::printable(path),
                    "git submodule update --init --recursive",
                    {}});
  return {};
}

void Tree::State::check_names() {
  archive::TreeCheck check;
  for (const File& file : files) {
    if (auto good = archive::check_member_name(file.path); !good) {
      faults.push_back(good.error());
      continue;
    }
    if (file.mode != GIT_FILEMODE_LINK) {
      check.add_file(file.path);
      continue;
    }
    auto blob = read_blob(parts[file.part].handle.get(), file.id, file.path);
    if (!blob) {
      faults.push_back(blob.error());
      continue;
    }
    const std::string_view target = content_of(blob->get());
    // Git lets a link hold any bytes; the kernel does not.
    if (auto good = archive::check_link_target(file.path, target); !good) {
      faults.push_back(good.error());
      continue;
    }
    check.add_symlink(file.path, target);
  }
  for (Error& fault : check.faults()) faults.push_back(std::move(fault));
}

Result<void> Tree::State::write_file(const File& file, archive::TarWriter& tar) const {
  git_repository* const handle = parts[file.part].handle.get();
  auto blob = read_blob(handle, file.id, archive::printable(file.path));
  if (!blob) return tl::unexpected(blob.error());
  const std::string_view content = content_of(blob->get());
  if (file.mode == GIT_FILEMODE_LINK) return tar.symlink(file.path, content);
  const bool executable = file.mode == GIT_FILEMODE_BLOB_EXECUTABLE;

  auto pointer = parse_lfs_pointer(content);
  if (!pointer) {
    pointer.error().context = archive::printable(file.path);
    return tl::unexpected(pointer.error());
  }
  if (*pointer) return write_lfs_object(file, executable, **pointer, tar);
  if (auto done = tar.begin_file(file.path, executable, content.size()); !done) return done;
  return tar.write(std::as_bytes(std::span(content)));
}

Result<void> Tree::State::write_lfs_object(const File& file, bool executable,
                                           const LfsPointer& pointer,
                                           archive::TarWriter& tar) const {
  const std::string name = archive::printable(file.path);
  const fs::path object = lfs_object(parts[file.part].handle.get(), pointer.digest);
  std::error_code error;
  const auto size = fs::file_size(object, error);
  if (error) {
    return fail(Errc::refused, "its Git LFS object " + pointer.digest.brief() + " is not here",
                name, "git lfs fetch, for the commit that is sealed");
  }
  if (size != pointer.size) {
    return fail(Errc::integrity, "its Git LFS object has another size than its pointer says", name,
                "git lfs fsck");
  }
  if (auto done = tar.begin_file(file.path, executable, size); !done) return done;
  Sha256 hash;
  std::uint64_t left = size;
  const auto read = read_stream(object, [&](std::span<const std::byte> piece) -> Result<void> {
    if (piece.size() > left) {
      return fail(Errc::integrity, "its Git LFS object grew while it was read", name);
    }
    left -= piece.size();
    hash.update(piece);
    return tar.write(piece);
  });
  if (!read) return tl::unexpected(read.error());
  if (left != 0 || hash.finish() != pointer.digest) {
    return fail(Errc::integrity, "its Git LFS object is not the one that its pointer names", name,
                "git lfs fsck");
  }
  return {};
}

Tree::Tree(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tree::Tree(Tree&&) noexcept = default;
Tree& Tree::operator=(Tree&&) noexcept = default;
Tree::~Tree() = default;

Result<Tree> Tree::open(const fs::path& repository, const std::string& revision,
                        const TreeOptions& options) {
  auto handle = open_repository(repository);
  if (!handle) return tl::unexpected(handle.error());
  const auto commit = resolve_commit(handle->get(), revision, repository.string());
  if (!commit) return tl::unexpected(commit.error());
  auto state = std::make_unique<State>();
  state->commit = hex(*commit);
  state->parts.push_back({std::move(*handle), ""});
  if (auto done = state->walk_top(*commit, repository); !done) return tl::unexpected(done.error());
  // Git's order within a folder and the byte order of whole paths are the same but for submodules.
  std::sort(state->files.begin(), state->files.end(),
            [](const File& a, const File& b) { return a.path < b.path; });
  state->check_names();
  for (Error& fault : state->faults) fault.context = repository.string() + ": " + fault.context;
  if (!state->faults.empty()) return refuse(std::move(state->faults), {});
  for (Error& fault : state->worktree_faults) {
    fault.context = repository.string() + ": " + fault.context;
  }
  state->dirty = !state->worktree_faults.empty();
  if (state->dirty && !options.allow_dirty) {
    return refuse(std::move(state->worktree_faults),
                  "or --allow-dirty, which seals the commit without these edits and bars the "
                  "bundle from certificates");
  }
  return Tree(std::move(state));
}

const std::string& Tree::commit() const {
  return state_->commit;
}
bool Tree::dirty() const {
  return state_->dirty;
}
std::uint64_t Tree::files() const {
  return state_->files.size();
}

Digest Tree::key() const {
  Sha256 hash;
  for (const File& file : state_->files) {
    hash.update(std::to_string(static_cast<int>(file.mode)) + " " + hex(file.id) + " " + file.path);
    hash.update(std::string_view("\0", 1));
  }
  return hash.finish();
}

Result<void> Tree::write_archive(const Sink& sink) const {
  archive::TarWriter tar(sink);
  for (const File& file : state_->files) {
    if (auto done = state_->write_file(file, tar); !done) return done;
  }
  return tar.finish();
}

}  // namespace qualify::git
