#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "config_json.hpp"
#include "index.hpp"
#include "inputs.hpp"
#include "media_types.hpp"
#include "parallel.hpp"
#include "qualify/spec/credentials.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::store {

namespace {

namespace fs = std::filesystem;

constexpr int kBehind = 10;  ///< nice(1): a tenth of a processor beside one at 0

constexpr char kLaunchHint[] =
    "list its name under 'passed_environment': it is then passed at launch and never recorded";

Error credential(const std::string& what, const std::string& why, const std::string& context) {
  return {Errc::refused, what + " looks like a credential: " + why, context, kLaunchHint, {}};
}

/// Everything in the spec itself that looks like a credential.
std::vector<Error> credentials_in(const spec::BundleSpec& spec) {
  std::vector<Error> faults;
  const std::string file = spec.file.string();
  const auto check_environment = [&](const std::map<std::string, std::string>& environment,
                                     const std::string& where) {
    for (const auto& [name, value] : environment) {
      if (auto why = spec::credential_in(name, value)) {
        faults.push_back(credential(where + " '" + name + "'", *why, file));
      }
    }
  };
  const auto check_arguments = [&](const std::vector<std::string>& arguments,
                                   const std::string& where) {
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& argument = arguments[i];
      auto why = spec::credential_in(argument);
      if (!why && argument.starts_with("--")) {
        const std::size_t equals = argument.find('=');
        if (equals != std::string::npos) {
          why = spec::credential_in(argument.substr(2, equals - 2), argument.substr(equals + 1));
        } else if (i + 1 < arguments.size() && !arguments[i + 1].starts_with("--")) {
          why = spec::credential_in(argument.substr(2), arguments[i + 1]);
        }
      }
      if (why)
        faults.push_back(
            credential("argument " + std::to_string(i + 1) + " of " + where, *why, file));
    }
  };
  check_environment(spec.environment, "environment variable");
  check_environment(spec.required_environment, "required environment variable");
  check_arguments(spec.launch.argv, "the launch");
  for (const spec::Arm& arm : spec.arms) {
    check_environment(arm.environment, "environment variable of arm '" + arm.name + "'");
    check_arguments(arm.arguments, "arm '" + arm.name + "'");
  }
  return faults;
}

/// An input that fails says where the spec names it.
Error named_in(const spec::BundleSpec& spec, const spec::Mark& mark, Error error) {
  const std::string place = "named in " + spec.file.string() + ":" + std::to_string(mark.line) +
                            ":" + std::to_string(mark.column);
  error.hint += (error.hint.empty() ? "" : "; ") + place;
  return error;
}

Unexpected all(std::vector<Error> faults) {
  Error first = std::move(faults.front());
  for (std::size_t i = 1; i < faults.size(); ++i) {
    auto others = std::exchange(faults[i].others, {});
    first.others.push_back(std::move(faults[i]));
    for (Error& other : others) first.others.push_back(std::move(other));
  }
  return Unexpected(std::move(first));
}

/// Order in the file means nothing for named inputs.
template <class Item>
void sort_by_name(std::vector<Item>& items) {
  std::sort(items.begin(), items.end(),
            [](const Item& a, const Item& b) { return a.name < b.name; });
}

/// All inputs, in parallel; the faults of all of them.
Result<void> seal_inputs(const spec::BundleSpec& spec, SealContext& context, Bundle& bundle) {
  bundle.code.resize(spec.code.size());
  bundle.configs.resize(spec.configs.size());
  bundle.data.resize(spec.data.size());
  std::vector<std::pair<spec::Mark, std::function<Result<void>()>>> tasks;
  const auto add = [&tasks](spec::Mark mark, auto& target, auto freeze) {
    tasks.emplace_back(mark, [&target, freeze]() -> Result<void> {
      auto sealed = freeze();
      if (!sealed) return tl::unexpected(sealed.error());
      target = std::move(*sealed);
      return {};
    });
  };
  // The longest first: a container is mostly the largest input.
  add(spec.container.mark, bundle.container,
      [&] { return seal_container(spec.container, context); });
  for (std::size_t i = 0; i < spec.code.size(); ++i) {
    add(spec.code[i].mark, bundle.code[i], [&, i] { return seal_code(spec.code[i], context); });
  }
  for (std::size_t i = 0; i < spec.data.size(); ++i) {
    add(spec.data[i].mark, bundle.data[i], [&, i] { return seal_data(spec.data[i], context); });
  }
  for (std::size_t i = 0; i < spec.configs.size(); ++i) {
    add(spec.configs[i].mark, bundle.configs[i],
        [&, i] { return seal_config(spec.configs[i], context); });
  }
  // Data folders read their files in parallel too, and share what there is.
  const auto folders = static_cast<unsigned>(std::max<std::size_t>(spec.data.size(), 1));
  const unsigned jobs = effective_jobs(context.jobs);
  context.jobs_a_folder = std::max(1U, jobs / std::min(jobs, folders));
  std::vector<Result<void>> done(tasks.size());
  const auto caller = std::this_thread::get_id();
  for_each_index(tasks.size(), context.jobs, [&](std::size_t i) {
    // All wait for the longest, which the caller has: where processors are few, the others yield.
    if (std::this_thread::get_id() != caller) ::setpriority(PRIO_PROCESS, 0, kBehind);
    done[i] = tasks[i].second();
  });
  std::vector<Error> faults;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!done[i]) faults.push_back(named_in(spec, tasks[i].first, std::move(done[i].error())));
  }
  if (!faults.empty()) return all(std::move(faults));
  bundle.dirty = context.dirty;
  sort_by_name(bundle.code);
  sort_by_name(bundle.configs);
  sort_by_name(bundle.data);
  return {};
}

/// Holds off garbage collection; its time is the file system's at the begin of the seal.
Result<std::pair<FileLock, struct timespec>> begin_seal(const BlobStore& store) {
  const fs::path path = store.root() / kCollectLock;
  auto lock = FileLock::acquire_shared(path);
  if (!lock) return tl::unexpected(lock.error());
  struct stat status {};
  if (::futimens(lock->fd(), nullptr) != 0 || ::fstat(lock->fd(), &status) != 0) {
    return fail_errno(errno, "cannot read the time of", path.string());
  }
  return std::pair(std::move(*lock), status.st_mtim);
}

Result<Bundle> seal_into(const spec::BundleSpec& spec, BlobStore& store,
                         const SealOptions& options) {
  if (auto faults = credentials_in(spec); !faults.empty()) return all(std::move(faults));
  const auto began = begin_seal(store);
  if (!began) return tl::unexpected(began.error());
  Bundle bundle;
  bundle.name = spec.name;
  bundle.recipe = spec.recipe;
  bundle.model = spec.model;
  bundle.environment = spec.environment;
  bundle.passed_environment = spec.passed_environment;
  std::sort(bundle.passed_environment.begin(), bundle.passed_environment.end());
  bundle.required_environment = spec.required_environment;
  bundle.arms = spec.arms;
  bundle.topology = spec.topology;
  bundle.seeds = spec.seeds;
  bundle.launch = spec.launch;
  bundle.outputs = spec.outputs;
  StatCache cache(store, began->second, options.settle);
  SealContext context{store, cache, options.allow_dirty, options.jobs, false};
  const auto frozen = seal_inputs(spec, context, bundle);
  // What was read is worth remembering also when another input failed; a cache that cannot be
  // written costs time only.
  static_cast<void>(cache.save());
  if (!frozen) return tl::unexpected(frozen.error());
  // Beyond this point the inputs are frozen.
  auto bytes = canonical_json(to_json(bundle));
  if (!bytes) return tl::unexpected(bytes.error());
  auto config = store.add_bytes(*bytes, kConfigType);
  if (!config) return tl::unexpected(config.error());
  auto manifest = store.add_bytes(canonical_bytes(manifest_json(bundle, *config)), kManifestType);
  if (!manifest) return tl::unexpected(manifest.error());
  bundle.digest = manifest->digest;
  IndexEntry entry{*manifest, ref_name_for(bundle.name, bundle.digest), {}};
  for (const SealedData& data : bundle.data) {
    if (!data.path.empty()) entry.data_paths.emplace(data.name, data.path);
  }
  if (auto done = add_to_index(store, entry); !done) return tl::unexpected(done.error());
  return bundle;
}

}  // namespace

Result<Bundle> seal(const spec::BundleSpec& spec, BlobStore& store, const SealOptions& options) {
  auto sealed = seal_into(spec, store, options);
  if (!sealed && sealed.error().code == Errc::no_space) {
    // What was read stays for the next try; on a full disk that may be what is in the way.
    std::string& hint = sealed.error().hint;
    hint += (hint.empty() ? "" : "; ") +
            std::string("qualify bundle gc --delete --grace 1s frees what no bundle names");
  }
  return sealed;
}

}  // namespace qualify::store
