#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "qualify/base/files.hpp"
#include "source.hpp"
#include "spool.hpp"

namespace qualify::evidence {

namespace {

/// Packed values of one run that stay in memory.
constexpr std::size_t kInMemory = 16U << 20U;

Result<std::string> read_head(const fs::path& path) {
  auto fd = open_read(path);
  if (!fd) return tl::unexpected(fd.error());
  std::string head(kHead, '\0');
  std::size_t size = 0;
  while (size < head.size()) {
    const ssize_t count = ::read(fd->get(), head.data() + size, head.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot read", path.string());
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  head.resize(size);
  return head;
}

std::string known_formats() {
  std::string names;
  for (const std::string& known : format_names()) names += (names.empty() ? "" : ", ") + known;
  return "Known formats: " + names;
}

/// Null: told by content. Errors: usage.
Result<const Format*> format_called(const std::string& name) {
  if (name.empty()) return nullptr;
  const auto& all = formats();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Format& known) { return name == known.name; });
  if (found != all.end()) return &*found;
  return fail(Errc::usage, "no metric format is called \"" + name + "\"", {}, known_formats());
}

/// Null when the file is in no format of ours.
Result<std::optional<Source>> read_one(const fs::path& path, const Format* forced,
                                       const std::shared_ptr<Spool>& spool) {
  const auto head = read_head(path);
  if (!head) return tl::unexpected(head.error());
  if (forced != nullptr) return forced->read({path, *head, true, spool});
  for (const Format& format : formats()) {
    if (format.read == nullptr) continue;
    auto source = format.read({path, *head, false, spool});
    if (!source || *source) return source;
  }
  return std::optional<Source>();
}

/// Regular files below `folder`, by path. Links to files are followed, links to folders are not.
Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;  // a dangling link is no file
    if (it->is_regular_file(ignored)) files.push_back(it->path());
  }
  if (error) return fail_errno(error.value(), "cannot read folder", folder.string());
  std::sort(files.begin(), files.end());
  return files;
}

/// The largest event file in `folder`; a restarted run has some that hold only a header. By name,
/// as TensorBoard finds them.
void find_event_file(const fs::path& folder, std::pair<std::uintmax_t, fs::path>& largest) {
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (!it->is_regular_file(ignored)) continue;
    if (it->path().filename().string().find(".tfevents.") == std::string::npos) continue;
    std::pair<std::uintmax_t, fs::path> found{it->file_size(ignored), it->path()};
    if (!ignored && largest < found) largest = std::move(found);
  }
}

std::string event_file_beside(const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  std::pair<std::uintmax_t, fs::path> largest;
  find_event_file(folder, largest);
  if (!largest.second.empty()) return largest.second.lexically_normal().string();
  // Megatron is mostly given a folder of its own for them.
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) find_event_file(it->path(), largest);
  }
  return largest.second.lexically_normal().string();
}

}  // namespace

const std::vector<Format>& formats() {
  static const std::vector<Format> all = {
      {"tensorboard", read_event_file},    {"golden-values", read_golden},
      {"trace-pr6610", read_pr6610_trace}, {"trace-fork", read_fork_trace},
      {"json-lines", read_json_lines},     {"csv", read_csv},
      {"megatron-log", read_megatron_log}, {"checkpoint", nullptr},  // a folder, not a file
  };
  return all;
}

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : formats()) names.emplace_back(format.name);
  return names;
}

Result<RunMetrics> read_metrics(const fs::path& path, const std::string& format,
                                const fs::path& scratch) {
  return read_metrics_as(
      path, [&](const fs::path&) { return format; }, scratch);
}

Result<RunMetrics> read_metrics_as(const fs::path& path,
                                   const std::function<std::string(const fs::path&)>& format_of,
                                   const fs::path& scratch) {
  const std::shared_ptr<Spool> spool =
      scratch.empty() ? nullptr : std::make_shared<Spool>(scratch, kInMemory);
  const auto forced = format_called(format_of(path));
  if (!forced) return tl::unexpected(forced.error());
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return fail(Errc::not_found, "no such file or folder", path.string());
  }
  const bool folder = fs::is_directory(status);
  if (!folder && !fs::is_regular_file(status)) {
    return fail(Errc::invalid_input, "is neither a file nor a folder", path.string(),
                "A pipe is read twice and cannot be: write it to a file first");
  }
  const bool checkpoint = *forced != nullptr && (*forced)->read == nullptr;
  if (checkpoint && !folder) {
    return fail(Errc::invalid_input, "a checkpoint is a folder, this is a file", path.string());
  }
  if (folder && (checkpoint || (*forced == nullptr && is_checkpoint(path)))) {
    auto source = read_checkpoint(path, spool);
    if (!source) return tl::unexpected(source.error());
    std::vector<Source> one;
    one.push_back(std::move(*source));
    return merge(std::move(one));
  }
  std::vector<fs::path> files{path};
  if (folder) {
    auto below = files_below(path);
    if (!below) return tl::unexpected(below.error());
    files = std::move(*below);
  }
  std::vector<Source> sources;
  for (const fs::path& file : files) {
    const auto format = format_called(format_of(file));
    if (!format) return tl::unexpected(format.error());
    if (*format != nullptr && (*format)->read == nullptr) continue;  // of a checkpoint
    auto source = read_one(file, *format, spool);
    // Another project's schema within a folder is another file that is there.
    if (!source && folder && source.error().code == Errc::unsupported) continue;
    if (!source) return tl::unexpected(source.error());
    if (*source) sources.push_back(std::move(**source));
  }
  if (sources.empty() && !folder && fs::file_size(path, error) == 0) {
    return fail(Errc::invalid_input, "is empty", path.string());
  }
  if (sources.empty()) {
    return fail(Errc::invalid_input, "holds no metrics in a known format", path.string(),
                known_formats());
  }
  RunMetrics run = merge(std::move(sources));
  if (!folder && run.format != "tensorboard") run.event_file_beside = event_file_beside(path);
  if (spool && spool->error()) return Unexpected(*spool->error());
  return run;
}

}  // namespace qualify::evidence
