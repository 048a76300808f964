#include "qualify/run/node.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "gpus.hpp"
#include "layout_check.hpp"
#include "node_files.hpp"
#include "qualify/base/files.hpp"
#include "qualify/run/job.hpp"
#include "qualify/run/launch.hpp"
#include "qualify/scheduler/hostlist.hpp"

namespace qualify::run {

namespace {

using Environment = std::map<std::string, std::string>;
using Faults = std::vector<std::string>;

/// How long a file may take to be seen on another node: caches of network file systems keep the
/// absence of a name for some seconds (NFS: acregmax, acdirmax).
constexpr Duration kFileSystemLag = std::chrono::seconds(30);

std::string variable(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::uint32_t number_in(const Environment& environment, const std::string& name) {
  const std::string text = variable(environment, name);
  std::uint32_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string node_name(const JobContext& context) {
  const std::string name = variable(context.environment, "SLURMD_NODENAME");
  return name.empty() ? context.host : name;
}

/// What the plan says about where this is, against what the scheduler says here.
void check_place(const JobPlan& plan, const JobContext& context, const std::string& name,
                 Faults& faults) {
  const auto granted = [&](const std::string& node) {
    return std::find(plan.granted_nodes.begin(), plan.granted_nodes.end(), node) !=
           plan.granted_nodes.end();
  };
  if (!granted(name)) faults.push_back("node " + name + " was not granted");
  if (const auto restarts = number_in(context.environment, "SLURM_RESTART_COUNT"); restarts > 0) {
    faults.push_back("the scheduler restarted the job (" + std::to_string(restarts) + " times)");
  }
  if (plan.scheduler != "slurm") return;
  const std::string list = variable(context.environment, "SLURM_JOB_NODELIST");
  const auto nodes = scheduler::expand_hostlist(list);
  if (!nodes) {
    faults.push_back(nodes.error().describe());
    return;
  }
  if (nodes->size() != plan.nodes) {
    faults.push_back("the job has " + std::to_string(nodes->size()) + " nodes (" + list + "), " +
                     std::to_string(plan.nodes) + " were planned");
  }
  if (std::find(nodes->begin(), nodes->end(), name) == nodes->end()) {
    faults.push_back("this node is not among those of the job: " + list);
  }
  for (const std::string& node : *nodes) {
    if (!granted(node)) faults.push_back("the job has node " + node + ", which was not granted");
  }
  const std::string reservation = variable(context.environment, "SLURM_JOB_RESERVATION");
  if (reservation != plan.reservation) {
    faults.push_back(
        "the job runs in " +
        (reservation.empty() ? "no reservation" : "reservation '" + reservation + "'") + ", '" +
        plan.reservation + "' was granted");
  }
}

void check_bundle(const JobPlan& plan, const JobContext& context, Faults& faults, Json& record) {
  const auto store = store::BlobStore::open_read_only(plan.store);
  if (!store) {
    faults.push_back(store.error().describe());
    return;
  }
  const auto bundle = store::load(*store, plan.bundle);
  if (!bundle) {
    faults.push_back(bundle.error().describe());
    return;
  }
  const JobLayout layout{plan.folder / "bundle", plan.folder / "output"};
  for (std::string& fault : check_layout(*store, *bundle, layout.bundle)) {
    faults.push_back(std::move(fault));
  }
  const spec::Arm* arm = bundle->arm(plan.arm);
  if (arm == nullptr) {
    faults.push_back("the bundle has no arm '" + plan.arm + "'");
    return;
  }
  const auto environment = workload_environment(*bundle, *arm, plan, layout, context.environment);
  if (!environment) {
    faults.push_back(environment.error().describe());
    return;
  }
  record["environment"] = printable(recorded_environment(*bundle, *environment));
}

Json describe_system() {
  utsname names{};
  ::uname(&names);
  std::string cpu;
  std::string text = read_file("/proc/cpuinfo", 64ULL << 20U).value_or("");
  if (const std::size_t at = text.find("model name"); at != std::string::npos) {
    const std::size_t begin = std::min(text.find(": ", at) + 2, text.size());
    cpu = text.substr(begin, text.find('\n', begin) - begin);
  }
  return {{"kernel", std::string(names.release)},
          {"machine", std::string(names.machine)},
          {"cpu", cpu},
          {"cpus", ::sysconf(_SC_NPROCESSORS_ONLN)}};
}

/// Which nodes have fewer GPUs than planned is known only where there is a driver to ask.
void check_gpus(const JobPlan& plan, const Json& gpus, Faults& faults) {
  if (!gpus.at("fault").is_null() || gpus.at("gpus").size() >= plan.gpus_per_node) return;
  faults.push_back("the driver sees " + std::to_string(gpus.at("gpus").size()) + " GPUs, " +
                   std::to_string(plan.gpus_per_node) + " are needed");
}

/// The environment of the node's first task, as it really was; null where none was noted.
Result<Json> task_environment(const JobPlan& plan, const std::string& name, Faults& faults) {
  const auto text = read_file(node_file(plan, name, kEnvironmentEnding));
  if (!text && text.error().code == Errc::not_found) return Json(nullptr);
  if (!text) return tl::unexpected(text.error());
  Environment environment;
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\0', begin), text->size());
    const std::string entry = text->substr(begin, end - begin);
    const std::size_t equals = entry.find('=');
    if (equals != std::string::npos)
      environment[entry.substr(0, equals)] = entry.substr(equals + 1);
    begin = end + 1;
  }
  const auto store = store::BlobStore::open_read_only(plan.store);
  if (!store) return tl::unexpected(store.error());
  const auto bundle = store::load(*store, plan.bundle);
  if (!bundle) return tl::unexpected(bundle.error());
  for (const auto& [required, value] : bundle->required_environment) {
    const auto found = environment.find(required);
    if (found != environment.end() && found->second == value) continue;
    faults.push_back("the tasks got " + required + "=" +
                     (found == environment.end() ? "(nothing)" : found->second) +
                     ", the bundle requires " + value);
  }
  return Json(printable(recorded_environment(*bundle, std::move(environment))));
}

Result<void> write_record(const JobPlan& plan, const std::string& name, const char* ending,
                          const Json& record) {
  const fs::path file = node_file(plan, name, ending);
  if (auto made = make_folders(file.parent_path()); !made) return made;
  return write_file_atomic(file, record.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
                           0444);
}

/// Hashes a file, which may not be seen from here yet.
Result<HashedFile> hash_when_seen(const fs::path& path, Clock& clock) {
  constexpr Duration kPause = std::chrono::milliseconds(500);
  for (Duration waited{};; waited += kPause) {
    auto hashed = hash_file(path);
    if (hashed || hashed.error().code != Errc::not_found || waited >= kFileSystemLag) return hashed;
    clock.sleep_for(kPause);
  }
}

}  // namespace

Result<Faults> verify_node(const JobPlan& plan, const JobContext& context, Clock& clock) {
  const std::string name = node_name(context);
  Faults faults;
  Json record = {{"schema_version", 1},
                 {"step", "verify"},
                 {"node", name},
                 {"host", context.host},
                 {"nonce", plan.nonce},
                 {"job", variable(context.environment, "SLURM_JOB_ID")},
                 {"node_list", variable(context.environment, "SLURM_JOB_NODELIST")},
                 {"restart_count", number_in(context.environment, "SLURM_RESTART_COUNT")},
                 {"time", format_time(clock.now())},
                 {"bundle", plan.bundle.str()},
                 {"system", describe_system()},
                 {"gpus", describe_gpus(context.gpu_library)}};
  check_place(plan, context, name, faults);
  check_gpus(plan, record["gpus"], faults);
  check_bundle(plan, context, faults, record);
  record["faults"] = faults;
  if (auto written = write_record(plan, name, kVerifyEnding, record); !written) {
    return tl::unexpected(written.error());
  }
  return faults;
}

Result<Faults> collect_node(const JobPlan& plan, const JobContext& context, Clock& clock) {
  const std::string name = node_name(context);
  Faults faults;
  const auto text = read_file(plan.folder / kCollectList, 1ULL << 30U);
  if (!text) return tl::unexpected(text.error());
  const auto list = parse_json(*text, kCollectList);
  if (!list) return tl::unexpected(list.error());
  Json files = Json::array();
  const std::size_t first = number_in(context.environment, "SLURM_NODEID");
  for (std::size_t i = first; i < list->size(); i += plan.nodes) {
    const auto path = (*list)[i].get<std::string>();
    const auto hashed = hash_when_seen(plan.folder / path, clock);
    if (!hashed) {
      faults.push_back(hashed.error().describe());
      continue;
    }
    files.push_back({{"path", path}, {"size", hashed->size}, {"digest", hashed->digest.str()}});
  }
  auto environment = task_environment(plan, name, faults);
  if (!environment) return tl::unexpected(environment.error());
  const Json record = {{"schema_version", 1},
                       {"step", "collect"},
                       {"node", name},
                       {"nonce", plan.nonce},
                       {"time", format_time(clock.now())},
                       {"gpus", describe_gpus(context.gpu_library)},
                       {"task_environment", std::move(*environment)},
                       {"files", std::move(files)},
                       {"faults", faults}};
  if (auto written = write_record(plan, name, kCollectEnding, record); !written) {
    return tl::unexpected(written.error());
  }
  return faults;
}

}  // namespace qualify::run
