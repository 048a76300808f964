#include "handles.hpp"

#include <array>

#include "loose_objects.hpp"

namespace qualify::git {

void start_libgit2() {
  static const int started = [] {
    const int count = git_libgit2_init();
    // Pack windows and object cache count as resident memory; the defaults are 1 GiB and 256 MiB.
    git_libgit2_opts(GIT_OPT_SET_MWINDOW_SIZE, static_cast<size_t>(4U << 20U));
    git_libgit2_opts(GIT_OPT_SET_MWINDOW_MAPPED_LIMIT, static_cast<size_t>(16U << 20U));
    git_libgit2_opts(GIT_OPT_SET_CACHE_MAX_SIZE, static_cast<ssize_t>(8U << 20U));
    return count;
  }();
  static_cast<void>(started);
}

Unexpected git_failure(int code, std::string message, const std::string& context) {
  const git_error* last = git_error_last();
  const std::string text = last != nullptr && last->message != nullptr ? last->message : "";
  // libgit2 1.5 reports another owner as "config value 'safe.directory' was not found" where the
  // user has none set.
  if (code == GIT_EOWNER || text.find("safe.directory") != std::string::npos) {
    return fail(Errc::invalid_input, "the repository belongs to another user", context,
                "git refuses those too (CVE-2022-24765). If you trust it: git config --global "
                "--add safe.directory '" +
                    context + "'");
  }
  if (text.find("objectformat") != std::string::npos ||
      text.find("object format") != std::string::npos) {
    return fail(Errc::unsupported, "the repository uses SHA-256 object names", context,
                "libgit2 " LIBGIT2_VERSION
                " reads SHA-1 repositories only: seal from a SHA-1 clone");
  }
  const Errc kind = code == GIT_ENOTFOUND    ? Errc::not_found
                    : code == GIT_EAMBIGUOUS ? Errc::invalid_input
                                             : Errc::io;
  return fail(kind, std::move(message) + (text.empty() ? "" : ": " + text), context,
              kind == Errc::io ? "git fsck says what is damaged" : "");
}

Result<Repository> open_repository(const std::filesystem::path& folder) {
  start_libgit2();
  git_repository* raw = nullptr;
  const int code =
      git_repository_open_ext(&raw, folder.c_str(), GIT_REPOSITORY_OPEN_NO_SEARCH, nullptr);
  if (code == 0) {
    Repository repository(raw);
    if (const int no = use_own_loose_reader(raw); no != 0) {
      return git_failure(no, "cannot read the repository's objects", folder.string());
    }
    return repository;
  }
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    return fail(Errc::not_found, "no such folder", folder.string());
  }
  auto failure = git_failure(code, "cannot open the git repository", folder.string());
  if (code == GIT_ENOTFOUND && failure.value().code == Errc::not_found) {
    return fail(Errc::not_found, "not the top folder of a git repository", folder.string(),
                "name the folder that holds .git, or a bare repository");
  }
  return failure;
}

std::string hex(const git_oid& id) {
  std::array<char, GIT_OID_HEXSZ + 1> text{};
  git_oid_tostr(text.data(), text.size(), &id);
  return text.data();
}

Result<Blob> read_blob(git_repository* repository, const git_oid& id, const std::string& context) {
  git_blob* raw = nullptr;
  if (const int code = git_blob_lookup(&raw, repository, &id); code != 0) {
    auto failure = git_failure(code, "cannot read git object " + hex(id), context);
    if (code == GIT_ENOTFOUND) {
      failure.value().hint = "git fsck; in a partial clone, fetch its objects first";
    }
    return failure;
  }
  return Blob(raw);
}

}  // namespace qualify::git
