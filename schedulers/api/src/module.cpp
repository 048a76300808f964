#include "qualify/scheduler/module.hpp"

#include <dlfcn.h>

namespace qualify::scheduler {

namespace {

struct Entry {
  const char* (*description)() = nullptr;
  Scheduler* (*create)(Error*) = nullptr;
};

Result<Entry> open_module(const std::filesystem::path& file) {
  // GLOBAL: libslurm's own plugins resolve their symbols against it.
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    return fail(Errc::unavailable, std::string("cannot load the backend: ") + ::dlerror(),
                file.string());
  }
  const auto interface =
      reinterpret_cast<int (*)()>(::dlsym(handle, "qualify_scheduler_interface"));
  Entry entry;
  entry.description = reinterpret_cast<decltype(entry.description)>(
      ::dlsym(handle, "qualify_scheduler_description"));
  entry.create =
      reinterpret_cast<decltype(entry.create)>(::dlsym(handle, "qualify_scheduler_create"));
  if (interface == nullptr || entry.description == nullptr || entry.create == nullptr) {
    return fail(Errc::unsupported, "not a qualify scheduler module", file.string());
  }
  if (interface() != kModuleInterface) {
    return fail(Errc::unsupported,
                "built for interface " + std::to_string(interface()) + ", this qualify has " +
                    std::to_string(kModuleInterface),
                file.string(), "install module and qualify of the same release");
  }
  return entry;
}

}  // namespace

Result<std::unique_ptr<Scheduler>> load_module(const std::filesystem::path& file) {
  const auto entry = open_module(file);
  if (!entry) return tl::unexpected(entry.error());
  Error error;
  std::unique_ptr<Scheduler> scheduler(entry->create(&error));
  if (scheduler == nullptr) return Unexpected(std::move(error));
  return scheduler;
}

Result<std::string> describe_module(const std::filesystem::path& file) {
  const auto entry = open_module(file);
  if (!entry) return tl::unexpected(entry.error());
  return std::string(entry->description());
}

}  // namespace qualify::scheduler
