#include <algorithm>
#include <set>

#include "qualify/run/launch.hpp"

namespace qualify::run {

namespace {

/// "nvcr.io/nvidia/pytorch@sha256:…" as enroot takes it: the registry ends at a '#', and a digest
/// stands where a tag would.
std::string enroot_uri(const std::string& reference) {
  const std::size_t at = reference.rfind('@');
  std::string image = reference.substr(0, at);
  const std::size_t slash = image.find('/');
  const std::string host = image.substr(0, slash);
  const bool registry = slash != std::string::npos &&
                        (host.find_first_of(".:") != std::string::npos || host == "localhost");
  // A tag before the digest says nothing more.
  const std::size_t colon = image.rfind(':');
  if (colon != std::string::npos && colon > image.rfind('/')) image.erase(colon);
  if (registry) image[slash] = '#';
  return "docker://" + image + ":" + reference.substr(at + 1);
}

bool mentions_container(const std::vector<std::string>& arguments) {
  return std::any_of(arguments.begin(), arguments.end(), [](const std::string& argument) {
    return argument.find("{container}") != std::string::npos;
  });
}

Result<std::string> mount(const std::filesystem::path& path, bool writable) {
  const std::string text = path.string();
  if (text.find_first_of(",:") != std::string::npos) {
    return fail(Errc::invalid_input, "a path with ',' or ':' cannot be mounted in a container",
                text);
  }
  return text + ":" + text + (writable ? "" : ":ro");
}

}  // namespace

void add_rendezvous(std::map<std::string, std::string>& environment, const JobPlan& plan,
                    const std::string& first_node) {
  // Nodes are held whole, so that a fixed port is free, and equal in both runs of a pair.
  environment.emplace("MASTER_ADDR", first_node);
  environment.emplace("MASTER_PORT", "29500");
  environment["QUALIFY_TASKS_PER_NODE"] = std::to_string(plan.tasks_per_node);
  if (plan.tasks_per_node != 1) return;
  // One task a node is torchrun's form: it takes its options from PET_….
  environment.emplace("PET_NNODES", std::to_string(plan.nodes));
  environment.emplace("PET_MASTER_ADDR", environment["MASTER_ADDR"]);
  environment.emplace("PET_MASTER_PORT", environment["MASTER_PORT"]);
  if (plan.gpus_per_node > 0) {
    environment.emplace("PET_NPROC_PER_NODE", std::to_string(plan.gpus_per_node));
  }
}

std::vector<std::string> srun_argv(const std::string& srun, const JobPlan& plan,
                                   std::uint32_t tasks_per_node, bool stop_at_failure) {
  std::vector<std::string> argv = {
      srun, "--nodes=" + std::to_string(plan.nodes),
      "--ntasks=" + std::to_string(std::uint64_t{plan.nodes} * tasks_per_node),
      "--ntasks-per-node=" + std::to_string(tasks_per_node),
      // 0: a task that ended does not bring the others to an end after a while.
      "--wait=0", std::string("--kill-on-bad-exit=") + (stop_at_failure ? "1" : "0")};
  if (plan.gpus_per_node > 0) {
    argv.push_back("--gpus-per-node=" + std::to_string(plan.gpus_per_node));
  }
  return argv;
}

Result<std::vector<std::string>> container_options(const store::Bundle& bundle,
                                                   const spec::Arm& arm, const JobPlan& plan,
                                                   const JobLayout& layout) {
  using spec::ContainerKind;
  const store::SealedContainer& container = bundle.container;
  if (container.kind == ContainerKind::none || mentions_container(bundle.launch.argv) ||
      mentions_container(arm.arguments)) {
    return std::vector<std::string>();
  }
  if (plan.scheduler != "slurm") {
    return fail(Errc::unsupported, "only srun enters the bundle's container by itself",
                "scheduler " + plan.scheduler,
                "start it in launch.argv, with {container} as its path");
  }
  std::string image;
  if (container.kind == ContainerKind::reference) {
    image = enroot_uri(container.reference);
  } else if (container.kind == ContainerKind::sqsh) {
    const auto store = store::BlobStore::open_read_only(plan.store);
    if (!store) return tl::unexpected(store.error());
    image = store->path_of(container.content.digest).string();
  } else {
    return fail(
        Errc::unsupported,
        std::string("srun does not enter a container of kind ") + spec::name_of(container.kind), {},
        "start it in launch.argv, with {container} as its path");
  }
  std::string mounts;
  const auto add_mount = [&](const std::filesystem::path& path, bool writable) -> Result<void> {
    const auto text = mount(path, writable);
    if (!text) return tl::unexpected(text.error());
    mounts += (mounts.empty() ? "" : ",") + *text;
    return {};
  };
  if (auto added = add_mount(plan.folder, true); !added) return tl::unexpected(added.error());
  for (const store::SealedData& data : bundle.data) {
    if (data.path.empty()) continue;
    if (auto added = add_mount(data.path, false); !added) return tl::unexpected(added.error());
  }
  std::vector<std::string> options = {"--container-image=" + image, "--container-mounts=" + mounts,
                                      "--container-workdir=" + layout.output.string(),
                                      "--no-container-mount-home"};
  // An image's own variables win over the job's unless they are named.
  std::set<std::string> names;
  for (const auto* declared : {&bundle.environment, &arm.environment}) {
    for (const auto& [name, value] : *declared) names.insert(name);
  }
  names.insert(bundle.passed_environment.begin(), bundle.passed_environment.end());
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
  if (!list.empty()) options.push_back("--container-env=" + list);
  return options;
}

}  // namespace qualify::run
