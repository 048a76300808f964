#include <algorithm>
#include <nlohmann/json.hpp>

#include "node_files.hpp"
#include "qualify/base/files.hpp"

namespace qualify::run {

namespace {

/// Names of the nodes that wrote a record, sorted.
std::vector<std::string> names_found(const JobPlan& plan) {
  std::vector<std::string> names;
  std::error_code error;
  const std::string ending = kVerifyEnding;
  for (const auto& entry : fs::directory_iterator(plan.folder / kNodesFolder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > ending.size() && name.ends_with(ending)) {
      names.push_back(name.substr(0, name.size() - ending.size()));
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// A node's record of one step, when it is there, whole and of this attempt.
Result<Json> read_record(const JobPlan& plan, const std::string& name, const char* ending) {
  const fs::path file = node_file(plan, name, ending);
  const auto text = read_file(file, 256ULL << 20U);
  if (!text) return tl::unexpected(text.error());
  auto record = parse_json(*text, file.string());
  if (!record) return record;
  try {
    if (record->at("nonce").get<std::string>() != plan.nonce ||
        record->at("node").get<std::string>() != name) {
      return fail(Errc::integrity, "is the record of another attempt or node", file.string());
    }
    (void)record->at("faults").get<std::vector<std::string>>();
    (void)record->at("gpus").at("gpus");
    if (std::string_view(ending) == kCollectEnding && !record->at("files").is_array()) {
      return fail(Errc::integrity, "is no record of a collection", file.string());
    }
  } catch (const std::exception&) {
    return fail(Errc::integrity, "is no record of a node", file.string());
  }
  return record;
}

/// What changed on a node while the workload ran and makes its result doubtful.
void compare_gpus(const Json& before, const Json& after, std::vector<std::string>& faults) {
  const Json& was = before.at("gpus");
  const Json& is = after.at("gpus");
  if (was.size() != is.size()) {
    faults.push_back("it had " + std::to_string(was.size()) + " GPUs before the run and " +
                     std::to_string(is.size()) + " after it");
    return;
  }
  for (std::size_t i = 0; i < was.size(); ++i) {
    const std::string uuid = was[i].at("uuid").dump();
    if (was[i].at("uuid") != is[i].at("uuid")) {
      faults.push_back("GPU " + std::to_string(i) + " was " + uuid + " before the run and is " +
                       is[i].at("uuid").dump());
      continue;
    }
    const Json errors_before = was[i].value("uncorrected_ecc_errors", Json());
    const Json errors_after = is[i].value("uncorrected_ecc_errors", Json());
    if (errors_before != errors_after) {
      faults.push_back("GPU " + uuid + " had uncorrected memory errors during the run: " +
                       errors_before.dump() + " before, " + errors_after.dump() + " after");
    }
  }
}

}  // namespace

NodeRecords join_nodes(const JobPlan& plan, const std::vector<std::string>& expected,
                       bool collected) {
  NodeRecords joined;
  std::vector<std::string> names = names_found(plan);
  for (const std::string& name : expected) {
    if (!std::binary_search(names.begin(), names.end(), name)) {
      joined.silent = true;
      joined.faults.push_back("node " + name + ": it left no record");
    }
  }
  if (expected.empty() && names.size() != plan.nodes) {
    joined.faults.push_back(std::to_string(names.size()) + " of " + std::to_string(plan.nodes) +
                            " nodes left a record");
  }
  for (const std::string& name : names) {
    const auto verify = read_record(plan, name, kVerifyEnding);
    if (!verify) {
      joined.faults.push_back("node " + name + ": " + verify.error().describe());
      continue;
    }
    std::vector<std::string> faults = verify->at("faults").get<std::vector<std::string>>();
    Json line = {{"node", name}, {"verify", *verify}, {"collect", nullptr}};
    if (collected) {
      auto collect = read_record(plan, name, kCollectEnding);
      if (!collect) {
        joined.silent = true;
        faults.push_back("it did not collect: " + collect.error().describe());
      } else {
        for (const Json& file : collect->at("files")) joined.files.push_back(file);
        for (const Json& fault : collect->at("faults")) faults.push_back(fault.get<std::string>());
        compare_gpus(verify->at("gpus"), collect->at("gpus"), faults);
        collect->erase("files");  // they stand in the sentinel, with those of all nodes
        line["collect"] = std::move(*collect);
      }
    }
    for (const std::string& fault : faults) {
      joined.faults.push_back("node " + name + ": " + fault);
    }
    joined.names.push_back(name);
    joined.lines.push_back(std::move(line));
  }
  return joined;
}

}  // namespace qualify::run
