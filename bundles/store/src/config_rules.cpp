#include "config_rules.hpp"

#include <algorithm>
#include <set>

#include "qualify/archive/names.hpp"
#include "qualify/spec/names.hpp"

namespace qualify::store {

namespace {

/// Throws nothing, stops nowhere: the first fault is kept.
class Rules {
 public:
  explicit Rules(const std::string& context) : context_(context) {}

  [[nodiscard]] Result<void> result() && {
    if (fault_.empty()) return {};
    return fail(Errc::integrity, "the bundle's config could not have been sealed: " + fault_,
                context_, "it was not written by qualify; get the bundle from who sealed it");
  }

  void demand(bool good, const std::string& what) {
    if (!good && fault_.empty()) fault_ = what;
  }
  void name(const char* what, const std::string& name) {
    demand(spec::is_name(name), std::string(what) + " is named '" + archive::printable(name) + "'");
  }
  /// Usable names, each once.
  template <class Item>
  void names(const char* what, const std::vector<Item>& items) {
    std::set<std::string> seen;
    for (const Item& item : items) {
      name(what, item.name);
      demand(seen.insert(item.name).second,
             std::string(what) + " '" + archive::printable(item.name) + "' stands there twice");
    }
  }
  void variable(const std::string& name) {
    demand(spec::is_variable_name(name),
           "'" + archive::printable(name) + "' is not the name of an environment variable");
  }
  void variables(const std::map<std::string, std::string>& variables) {
    for (const auto& [name, value] : variables) variable(name);
  }

 private:
  const std::string& context_;
  std::string fault_;
};

void check_container(const SealedContainer& container, Rules& rules) {
  const bool stored = container.kind != spec::ContainerKind::none &&
                      container.kind != spec::ContainerKind::reference;
  rules.demand(stored == (container.content.size > 0),
               std::string("a container of kind ") + spec::name_of(container.kind) +
                   (stored ? " has no content" : " has content"));
}

void check_topology(const spec::Topology& topology, Rules& rules) {
  const std::uint32_t least =
      std::min({topology.nodes, topology.tensor_parallel, topology.pipeline_parallel,
                topology.expert_parallel, topology.context_parallel, topology.data_parallel});
  rules.demand(least > 0, "a size of the topology is 0");
}

void check_launch(const spec::Launch& launch, Rules& rules) {
  rules.demand(launch.tasks_per_node > 0, "it has no tasks on a node");
  rules.demand(!launch.argv.empty() && !launch.argv.front().empty(), "it has no program");
}

}  // namespace

Result<void> check_rules(const Bundle& bundle, const std::string& context) {
  Rules rules(context);
  rules.name("the bundle", bundle.name);
  rules.names("code", bundle.code);
  rules.names("a config", bundle.configs);
  rules.names("an arm", bundle.arms);
  rules.names("data", bundle.data);
  for (const SealedConfig& config : bundle.configs) {
    rules.demand(spec::is_file_name(config.file_name),
                 "a config's file is named '" + archive::printable(config.file_name) + "'");
  }
  check_container(bundle.container, rules);
  rules.variables(bundle.environment);
  rules.variables(bundle.required_environment);
  for (const std::string& name : bundle.passed_environment) rules.variable(name);
  rules.demand(!bundle.arms.empty(), "it has no arms");
  for (const spec::Arm& arm : bundle.arms) rules.variables(arm.environment);
  check_topology(bundle.topology, rules);
  check_launch(bundle.launch, rules);
  for (const spec::Output& output : bundle.outputs) {
    rules.demand(spec::is_inside(output.path),
                 "the output '" + archive::printable(output.path) + "' leaves {output}");
  }
  return std::move(rules).result();
}

}  // namespace qualify::store
