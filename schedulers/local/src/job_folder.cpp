#include "job_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <nlohmann/json.hpp>

namespace qualify::scheduler::local {

namespace {

/// The file's JSON object; nothing when there is no file.
Result<std::optional<Json>> read_json(const fs::path& file) {
  auto text = read_file(file);
  if (!text) {
    if (text.error().code == Errc::not_found) return std::optional<Json>();
    return tl::unexpected(text.error());
  }
  auto json = parse_json(*text, file.string());
  if (!json) return tl::unexpected(json.error());
  return std::optional<Json>(std::move(*json));
}

Unexpected damaged(const fs::path& file) {
  return fail(Errc::integrity, "a local job's record is damaged", file.string(),
              "move the folder away; the attempt then counts as lost");
}

Time time_of(const Json& json, const char* key) {
  return parse_time(json.at(key).get<std::string>()).value();
}

template <class Read>
auto guarded(const fs::path& file, Read&& read) -> decltype(read()) {
  try {
    return read();
  } catch (const nlohmann::json::exception&) {
    return damaged(file);
  } catch (const tl::bad_expected_access<Error>&) {
    return damaged(file);
  }
}

}  // namespace

Result<void> write_request(const fs::path& job_folder, const Request& request) {
  const Json json = {{"nonce", request.nonce},
                     {"name", request.name},
                     {"executable", request.executable},
                     {"plan_file", request.plan_file},
                     {"folder", request.folder},
                     {"environment", request.environment},
                     {"time_limit_us", request.time_limit.count()},
                     {"submit_time", format_time(request.submit_time)}};
  // Readable by the owner only: the environment may hold values passed at launch.
  return write_file_atomic(job_folder / "request.json", json.dump(1), 0600);
}

Result<void> forget_environment(const fs::path& job_folder, Request request) {
  request.environment.clear();
  return write_request(job_folder, request);
}

Result<Request> read_request(const fs::path& job_folder) {
  const fs::path file = job_folder / "request.json";
  auto json = read_json(file);
  if (!json) return tl::unexpected(json.error());
  if (!*json) return fail(Errc::not_found, "no such local job", job_folder.string());
  return guarded(file, [&]() -> Result<Request> {
    const Json& from = **json;
    Request request;
    request.nonce = from.at("nonce").get<std::string>();
    request.name = from.at("name").get<std::string>();
    request.executable = from.at("executable").get<std::string>();
    request.plan_file = from.at("plan_file").get<std::string>();
    request.folder = from.at("folder").get<std::string>();
    request.environment = from.at("environment").get<std::map<std::string, std::string>>();
    request.time_limit = Duration(from.at("time_limit_us").get<std::int64_t>());
    request.submit_time = time_of(from, "submit_time");
    return request;
  });
}

Result<void> write_started(const fs::path& job_folder, const Started& started) {
  const fs::path file = job_folder / "started.json";
  Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) {
    if (errno == EEXIST) return fail(Errc::already_exists, "started before", file.string());
    return fail_errno(errno, "cannot create", file.string());
  }
  const std::string text =
      Json({{"pid", started.pid}, {"time", format_time(started.time)}}).dump(1);
  if (auto done = write_all(fd.get(), std::as_bytes(std::span(text)), file); !done) return done;
  if (::fsync(fd.get()) != 0) return fail_errno(errno, "cannot sync", file.string());
  return sync_folder(job_folder);
}

Result<std::optional<Started>> read_started(const fs::path& job_folder) {
  const fs::path file = job_folder / "started.json";
  auto text = read_file(file);
  if (!text && text.error().code == Errc::not_found) return std::optional<Started>();
  if (!text) return tl::unexpected(text.error());
  // O_EXCL makes the file before its content: an empty one is a start whose record was cut off.
  if (text->empty()) return std::optional<Started>(Started{});
  auto json = parse_json(*text, file.string());
  if (!json) return damaged(file);
  return guarded(file, [&]() -> Result<std::optional<Started>> {
    return Started{json->at("pid").get<int>(), time_of(*json, "time")};
  });
}

Result<void> write_ended(const fs::path& job_folder, const Ended& ended) {
  const Json json = {{"time", format_time(ended.time)},
                     {"state", name_of(ended.state)},
                     {"exit_code", ended.exit_code},
                     {"signal", ended.signal},
                     {"reason", ended.reason}};
  return write_file_atomic(job_folder / "ended.json", json.dump(1));
}

Result<std::optional<Ended>> read_ended(const fs::path& job_folder) {
  const fs::path file = job_folder / "ended.json";
  auto json = read_json(file);
  if (!json) return tl::unexpected(json.error());
  if (!*json) return std::optional<Ended>();
  return guarded(file, [&]() -> Result<std::optional<Ended>> {
    const Json& from = **json;
    Ended ended;
    ended.time = time_of(from, "time");
    ended.exit_code = from.at("exit_code").get<int>();
    ended.signal = from.at("signal").get<int>();
    ended.reason = from.at("reason").get<std::string>();
    const auto state = from.at("state").get<std::string>();
    for (const JobState candidate :
         {JobState::completed, JobState::cancelled, JobState::timeout, JobState::failed}) {
      if (state == name_of(candidate)) ended.state = candidate;
    }
    return ended;
  });
}

bool is_alive(const fs::path& job_folder) {
  const Fd fd(::open((job_folder / "alive").c_str(), O_RDONLY | O_CLOEXEC));
  return fd.valid() && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace qualify::scheduler::local
