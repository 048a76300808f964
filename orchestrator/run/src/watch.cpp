#include "qualify/run/watch.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>

#include "claim.hpp"
#include "qualify/base/files.hpp"

namespace qualify::run {

namespace {

using scheduler::Grant;
using scheduler::Job;
using scheduler::JobState;
using scheduler::Reservation;

constexpr const char* kClaimFile = "claim";

bool is_live(JobState state) {
  return state == JobState::pending || state == JobState::running || state == JobState::suspended;
}

/// The first node of the job's that was not granted.
std::optional<std::string> node_outside(const Grant& grant, const Job& job) {
  const std::vector<std::string>& granted = grant.reservation.nodes;
  for (const std::string& node : job.nodes) {
    if (std::find(granted.begin(), granted.end(), node) == granted.end()) return node;
  }
  return std::nullopt;
}

std::optional<std::string> out_of_place(const Grant& grant, const Job& job) {
  if (job.restart_count > 0) {
    return "the scheduler restarted the job (" + std::to_string(job.restart_count) + " times)";
  }
  if (const auto node = node_outside(grant, job)) {
    return "the job is on node " + *node + ", which was not granted";
  }
  if (job.start_time && !job.nodes.empty() && *job.start_time < grant.reservation.start) {
    return "the job started before the reservation, at " + format_time(*job.start_time);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> breach(const Grant& grant, const Job& job, Time now,
                                  const std::vector<Reservation>& reservations, Duration patience) {
  if (!is_live(job.state)) return std::nullopt;
  const std::string& name = grant.reservation.name;
  if (job.held_by_reservation_end) {
    return "the reservation went away while the job waited: it is held, and would run outside if "
           "released";
  }
  const bool waiting = job.state == JobState::pending;
  if (now >= grant.reservation.end) {
    // A running job is being ended by the scheduler, which takes some seconds; and by then the
    // reservation and its name may be gone.
    if (waiting) return "the reservation ended while the job waited";
    return out_of_place(grant, job);
  }
  if (job.reservation != name) {
    return job.reservation.empty() ? "the job lost its reservation"
                                   : "the job is in reservation '" + job.reservation + "'";
  }
  if (auto place = out_of_place(grant, job)) return place;
  const auto found = std::find_if(reservations.begin(), reservations.end(),
                                  [&](const Reservation& one) { return one.name == name; });
  if (found == reservations.end()) return "reservation " + name + " is not there any more";
  if (fingerprint(*found) != fingerprint(grant.reservation)) {
    return "reservation " + name + " is not what was granted any more";
  }
  const Time ready = std::max(job.submit_time.value_or(now), grant.reservation.start);
  if (waiting && now - ready > patience) {
    return "the job did not start within " + format_duration(patience) +
           (job.reason.empty() ? "" : ": " + job.reason);
  }
  return std::nullopt;
}

std::optional<Assessment> against_grant(const Grant& grant, const Job& job) {
  if (auto place = out_of_place(grant, job)) {
    return Assessment{false, std::move(*place), FailureClass::disagreement};
  }
  // Slurm takes the name from a job that has ended when the reservation goes; accounting keeps it.
  if (job.reservation != grant.reservation.name && (job.accounted || !job.reservation.empty())) {
    return Assessment{false,
                      job.reservation.empty()
                          ? "accounting does not say that the job was in its reservation"
                          : "the job was in reservation '" + job.reservation + "'",
                      FailureClass::disagreement};
  }
  const bool cut = job.state == JobState::timeout || job.state == JobState::deadline ||
                   job.state == JobState::cancelled;
  if (cut && job.end_time && *job.end_time >= grant.reservation.end) {
    const bool within =
        !job.start_time || !job.time_limit || *job.end_time - *job.start_time < *job.time_limit;
    if (within) {
      return Assessment{false, "the reservation ended while the job ran",
                        FailureClass::infrastructure};
    }
  }
  return std::nullopt;
}

Result<void> claim_attempt(const std::filesystem::path& folder, const std::string& owner) {
  const fs::path file = folder / kClaimFile;
  const char* what = "cannot claim the attempt";
  // Whole before it has its name: whoever dies on the way has claimed nothing.
  std::string own = (folder / ".claim.XXXXXX").string();
  const Fd fd(::mkostemp(own.data(), O_CLOEXEC));
  if (!fd.valid()) return fail_errno(errno, what, file.string());
  const auto write = [&]() -> Result<void> {
    if (auto done = write_all(fd.get(), std::as_bytes(std::span(owner)), file); !done) return done;
    if (::fchmod(fd.get(), 0444) != 0 || ::fsync(fd.get()) != 0) {
      return fail_errno(errno, what, file.string());
    }
    return {};
  };
  auto claimed = write();
  if (claimed && ::link(own.c_str(), file.c_str()) != 0) {
    const int error_number = errno;
    // On NFS the answer to a link that was made may be lost, and the question asked twice: the
    // number of names tells. Source: open(2), O_EXCL.
    struct stat status {};
    const bool made = ::stat(own.c_str(), &status) == 0 && status.st_nlink == 2;
    if (!made && error_number == EEXIST) {
      const std::string by = read_file(file).value_or("");
      claimed = fail(Errc::already_exists,
                     "this attempt is taken by " + (by.empty() ? "somebody else" : by) +
                         "; its folder is never written again",
                     folder.string());
    } else if (!made) {
      claimed = fail_errno(error_number, what, file.string());
      if (error_number == EPERM || error_number == EOPNOTSUPP || error_number == ENOSYS) {
        claimed.error().hint = "this file system has no hard links; --state DIR elsewhere";
      }
    }
  }
  ::unlink(own.c_str());
  return claimed ? sync_folder(folder) : claimed;
}

bool is_unnamed_claim(const std::filesystem::path& folder) {
  const auto by = read_file(folder / kClaimFile);
  return by && by->empty();
}

Result<void> withdraw_attempt(const std::filesystem::path& folder) {
  constexpr const char* owner = "the engine, which found no job";
  auto claimed = claim_attempt(folder, owner);
  if (claimed || claimed.error().code != Errc::already_exists) return claimed;
  const auto by = read_file(folder / kClaimFile);
  // An engine that was killed just after it withdrew; a job never writes this.
  return by && *by == owner ? Result<void>() : claimed;
}

}  // namespace qualify::run
