#include "heartbeat.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string_view>

#include "qualify/base/files.hpp"

namespace qualify::run {

namespace {

constexpr std::uintmax_t kLargestRead = 4U << 20U;
/// A line that is cut off by one look begins again in the next.
constexpr std::uintmax_t kOverlap = 128;

/// The last "iteration N" in a piece of a log; `otherwise` when there is none.
/// Source: docs/formats/megatron-log.md.
std::int64_t last_iteration(std::string_view text, std::int64_t otherwise) {
  constexpr std::string_view kWord = "iteration ";
  for (auto at = text.rfind(kWord); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : text.rfind(kWord, at - 1)) {
    std::string_view rest = text.substr(at + kWord.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    // A number at the very end may go on in what is not written yet.
    if (error == std::errc{} && end != rest.data() + rest.size()) return number;
  }
  return otherwise;
}

/// Bytes below a path that is being written; what vanishes meanwhile counts nothing.
std::uintmax_t bytes_below(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const auto size = fs::file_size(path, error);
    return error ? 0 : size;
  }
  std::uintmax_t bytes = 0;
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code gone;
    if (!it->is_regular_file(gone)) continue;
    const auto size = it->file_size(gone);
    if (!gone) bytes += size;
  }
  return bytes;
}

}  // namespace

Heartbeat::Heartbeat(fs::path folder, std::vector<spec::Output> outputs, Duration patience)
    : folder_(std::move(folder)), outputs_(std::move(outputs)), patience_(patience) {}

std::optional<std::string> Heartbeat::hung(Time now) {
  if (patience_ == Duration::zero()) return std::nullopt;
  if (progress_ && now < *progress_) progress_ = now;
  // Ten looks in the time that is allowed: a shared file system has other things to do.
  if (looked_ && now >= *looked_ && now - *looked_ < patience_ / 10) return std::nullopt;
  looked_ = now;
  const Signs signs = look();
  if (!progress_ || signs != last_) {
    last_ = signs;
    progress_ = now;
    return std::nullopt;
  }
  if (now - *progress_ < patience_) return std::nullopt;
  return "hung: no new iteration for " + format_duration(now - *progress_) +
         (last_.iteration > 0 ? " after iteration " + std::to_string(last_.iteration)
                              : std::string());
}

Heartbeat::Signs Heartbeat::look() {
  return {iteration_in_log(), output_bytes()};
}

std::int64_t Heartbeat::iteration_in_log() {
  const fs::path log = folder_ / "logs" / "stdout.log";
  std::error_code error;
  const std::uintmax_t size = fs::file_size(log, error);
  if (error || size == log_read_) return last_.iteration;
  const std::uintmax_t from =
      std::max(log_read_ - std::min(log_read_, kOverlap), size - std::min(size, kLargestRead));
  std::ifstream in(log, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(from));
  std::string text(size - from, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  log_read_ = from + text.size();
  return last_iteration(text, last_.iteration);
}

std::uintmax_t Heartbeat::output_bytes() const {
  // A bundle that declares no outputs means all: what its runs leave is read as metrics.
  if (outputs_.empty()) return bytes_below(folder_ / "output");
  std::uintmax_t bytes = 0;
  for (const spec::Output& output : outputs_) {
    if (output.kind == "metrics" || output.kind == "trace") {
      bytes += bytes_below(folder_ / "output" / output.path);
    }
  }
  return bytes;
}

}  // namespace qualify::run
