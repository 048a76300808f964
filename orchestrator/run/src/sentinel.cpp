#include "qualify/run/sentinel.hpp"

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/base/text.hpp"

namespace qualify::run {

Json to_json(const Sentinel& sentinel) {
  Json files = Json::array();
  for (const OutputFile& file : sentinel.files) {
    files.push_back({{"path", file.path}, {"size", file.size}, {"digest", file.digest.str()}});
  }
  Json failed_task;
  if (sentinel.failed_task) {
    failed_task = {{"rank", sentinel.failed_task->rank}, {"node", sentinel.failed_task->node}};
  }
  return {{"schema_version", 1},
          {"nonce", sentinel.nonce},
          {"bundle", sentinel.bundle.str()},
          {"exit_code", sentinel.exit_code},
          {"signal", sentinel.signal},
          {"failed_task", std::move(failed_task)},
          {"failure", to_utf8(sentinel.failure)},  // may hold what a foreign program printed
          {"stage", sentinel.stage},
          {"host", sentinel.host},
          {"nodes", sentinel.nodes},
          {"restart_count", sentinel.restart_count},
          {"started", format_time(sentinel.started)},
          {"ended", format_time(sentinel.ended)},
          {"argv", sentinel.argv},
          {"environment", sentinel.environment},
          {"files", std::move(files)}};
}

Result<std::optional<Sentinel>> read_sentinel(const std::filesystem::path& folder) {
  const auto file = folder / kSentinelFile;
  auto text = read_file(file, 1ULL << 30U);
  if (!text && text.error().code == Errc::not_found) return std::optional<Sentinel>();
  if (!text) return tl::unexpected(text.error());
  auto json = parse_json(*text, file.string());
  if (!json) {
    return fail(Errc::integrity, "the job's result is damaged: " + json.error().message,
                file.string());
  }
  try {
    Sentinel sentinel;
    sentinel.nonce = json->at("nonce").get<std::string>();
    sentinel.bundle = Digest::parse(json->at("bundle").get<std::string>()).value();
    sentinel.exit_code = json->at("exit_code").get<int>();
    sentinel.signal = json->at("signal").get<int>();
    if (const auto task = json->find("failed_task"); task != json->end() && !task->is_null()) {
      sentinel.failed_task =
          FailedTask{task->at("rank").get<std::uint32_t>(), task->at("node").get<std::string>()};
    }
    sentinel.failure = json->at("failure").get<std::string>();
    sentinel.stage = json->at("stage").get<std::string>();
    sentinel.host = json->at("host").get<std::string>();
    sentinel.nodes = json->at("nodes").get<std::vector<std::string>>();
    sentinel.restart_count = json->at("restart_count").get<std::uint32_t>();
    sentinel.started = parse_time(json->at("started").get<std::string>()).value();
    sentinel.ended = parse_time(json->at("ended").get<std::string>()).value();
    sentinel.argv = json->at("argv").get<std::vector<std::string>>();
    sentinel.environment = json->at("environment").get<std::map<std::string, std::string>>();
    for (const Json& entry : json->at("files")) {
      sentinel.files.push_back({entry.at("path").get<std::string>(),
                                entry.at("size").get<std::uint64_t>(),
                                Digest::parse(entry.at("digest").get<std::string>()).value()});
    }
    return std::optional<Sentinel>(std::move(sentinel));
  } catch (const std::exception& error) {
    return fail(Errc::integrity, std::string("the job's result is damaged: ") + error.what(),
                file.string());
  }
}

}  // namespace qualify::run
