#include "probe.hpp"

#include "child.hpp"
#include "version.hpp"

namespace qualify::scheduler::slurm {

Result<void> configuration_is_there() {
  const auto asked = in_child(
      [] {
        initialise();
        return std::string();
      },
      std::chrono::seconds(10));
  if (!asked) return tl::unexpected(asked.error());
  if (asked->well) return {};
  return fail(
      Errc::unavailable,
      "Slurm is not configured here" + (asked->printed.empty() ? "" : ": " + asked->printed),
      "libslurm", "set SLURM_CONF to the cluster's slurm.conf, or run on one of its login nodes");
}

}  // namespace qualify::scheduler::slurm
