#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/scheduler/grant.hpp"

namespace qualify::scheduler {

namespace {

/// Flags under which Slurm lets jobs out of the reservation, changes its nodes, or takes it away.
/// Each was seen to do so on a running controller (22.05.8).
struct ForbiddenFlag {
  const char* name;
  const char* why;
};
constexpr std::array kForbidden = {
    ForbiddenFlag{"REPLACE", "nodes are swapped, also when a job starts"},
    ForbiddenFlag{"REPLACE_DOWN", "nodes that go down are swapped after the grant"},
    ForbiddenFlag{"FLEX", "jobs may run before its start and outside its nodes"},
    ForbiddenFlag{"NO_HOLD_JOBS_AFTER_END", "a pending job runs unreserved after its end"},
    ForbiddenFlag{"MAGNETIC", "it captures jobs that never asked for it"},
    ForbiddenFlag{"PURGE_COMP", "it is deleted after some idle seconds"},
    ForbiddenFlag{"TIME_FLOAT", "its start moves with the clock, and jobs are always denied"},
    ForbiddenFlag{"HOURLY", "a pending job moves to the next instance"},
    ForbiddenFlag{"DAILY", "a pending job moves to tomorrow's instance"},
    ForbiddenFlag{"WEEKLY", "a pending job moves to next week's instance"},
    ForbiddenFlag{"WEEKDAY", "a pending job moves to another day's instance"},
    ForbiddenFlag{"WEEKEND", "a pending job moves to another day's instance"},
    ForbiddenFlag{"SKIP", "the next instance is skipped"},
    ForbiddenFlag{"ANY_NODES", "it holds no particular nodes"},
    ForbiddenFlag{"FIRST_CORES", "it holds cores, not whole nodes"},
    ForbiddenFlag{"PARTIAL_CORES", "it holds cores, not whole nodes"},
};

bool has_flag(const Reservation& reservation, const char* flag) {
  return std::find(reservation.flags.begin(), reservation.flags.end(), flag) !=
         reservation.flags.end();
}

/// A job may name several reservations: "a,b".
bool asks_for(const Job& job, const std::string& reservation) {
  return ("," + job.reservation + ",").find("," + reservation + ",") != std::string::npos;
}

/// "3,072".
std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

/// What keeps a node from being used, as a person says it; Slurm's own words where none is known.
std::string in_words(const std::string& state) {
  const auto has = [&](const char* word) {
    return ("+" + state + "+").find(std::string("+") + word + "+") != std::string::npos;
  };
  if (has("NOT_RESPONDING")) return has("DOWN") ? "down and not responding" : "not responding";
  if (has("DOWN")) return "down";
  if (has("DRAIN")) return has("IDLE") ? "drained" : "draining";
  if (has("MAINTENANCE")) return "in maintenance";
  if (has("FAIL")) return "failing";
  return state;
}

std::string clock_text(Time time) {
  return format_time(time).substr(0, 19) + "Z";
}

/// Names the fields in which what was granted and what is there differ.
std::string changes(const Reservation& granted, const Reservation& now) {
  const Json before = to_json(granted);
  const Json after = to_json(now);
  std::string text;
  for (auto it = before.begin(); it != before.end(); ++it) {
    if (after.at(it.key()) == it.value()) continue;
    std::string was = it.value().dump();
    std::string is = after.at(it.key()).dump();
    if (was.size() + is.size() > 120) was = is = "";
    text += (text.empty() ? "" : "; ") + it.key();
    if (!was.empty()) text += " was " + was + ", is " + is;
  }
  return text;
}

/// Collects faults about one reservation at one moment.
class Preflight {
 public:
  Preflight(const Grant& grant, const Requirement& requirement, const Snapshot& snapshot,
            const std::vector<std::string>& own)
      : grant_(grant), requirement_(requirement), snapshot_(snapshot), own_(own) {}

  std::vector<Fault> run() {
    const auto found = std::find_if(
        snapshot_.reservations.begin(), snapshot_.reservations.end(),
        [&](const Reservation& candidate) { return candidate.name == grant_.reservation.name; });
    if (found == snapshot_.reservations.end()) {
      add("reservation-missing",
          "reservation " + grant_.reservation.name + " is not there, or not visible to you");
      return std::move(faults_);
    }
    const Reservation& reservation = *found;
    if (fingerprint(reservation) != fingerprint(grant_.reservation)) {
      add("fingerprint-changed",
          "the reservation is not what was granted: " + changes(grant_.reservation, reservation));
    }
    for (Fault& fault : unfit_for_grant(reservation, snapshot_.nodes))
      faults_.push_back(std::move(fault));
    check_time(reservation);
    check_granted_nodes(reservation);
    check_nodes(reservation);
    check_foreign_jobs(reservation);
    check_overlap(reservation);
    return std::move(faults_);
  }

 private:
  void add(std::string code, std::string message, bool may_pass = false) {
    faults_.push_back({std::move(code), std::move(message), may_pass});
  }

  void check_time(const Reservation& reservation) {
    if (snapshot_.now < reservation.start) {
      add("not-started",
          "the reservation starts at " + clock_text(reservation.start) + ", in " +
              format_duration(reservation.start - snapshot_.now) + " by the controller's clock",
          true);
    }
    const Time begin = std::max(snapshot_.now, reservation.start);
    if (snapshot_.now >= reservation.end) {
      add("ended", "the reservation ended at " + clock_text(reservation.end));
    } else if (begin + requirement_.duration > reservation.end) {
      add("too-long", "the plan needs " + format_duration(requirement_.duration) + ", " +
                          format_duration(reservation.end - begin) + " are left before " +
                          clock_text(reservation.end));
    }
  }

  const Node* node(const std::string& name) const {
    const auto found = std::find_if(snapshot_.nodes.begin(), snapshot_.nodes.end(),
                                    [&](const Node& candidate) { return candidate.name == name; });
    return found == snapshot_.nodes.end() ? nullptr : &*found;
  }

  /// Slurm takes a node that left the cluster's configuration out of its reservations.
  void check_granted_nodes(const Reservation& reservation) {
    for (const std::string& name : grant_.reservation.nodes) {
      const auto& nodes = reservation.nodes;
      if (std::find(nodes.begin(), nodes.end(), name) != nodes.end() || node(name) != nullptr) {
        continue;
      }
      add("node-missing", "node " + name + ", which was granted, is not in the cluster any more");
    }
  }

  void check_nodes(const Reservation& reservation) {
    std::uint32_t usable = 0;
    std::uint64_t gpus = 0;
    for (const std::string& name : reservation.nodes) {
      const Node* const found = node(name);
      if (found == nullptr) {
        add("node-missing", "node " + name + " is not known to the controller");
        continue;
      }
      if (!found->usable) {
        std::string message = "node " + name + " is " + in_words(found->state);
        if (!found->reason.empty()) message += ": '" + found->reason + "'";
        if (found->reason_time) message += " since " + clock_text(*found->reason_time);
        unusable_.push_back({"node-unusable", std::move(message), true});
        continue;
      }
      if (found->gpus < requirement_.gpus_per_node) {
        add("too-few-gpus", "node " + name + " has " + std::to_string(found->gpus) + " GPUs, " +
                                std::to_string(requirement_.gpus_per_node) + " are needed");
        continue;
      }
      ++usable;
      gpus += found->gpus;
    }
    const std::uint64_t needed =
        std::uint64_t{requirement_.nodes} * std::max(requirement_.gpus_per_node, 1U);
    const bool enough = usable >= requirement_.nodes;
    if (!enough) {
      for (Fault& fault : unusable_) faults_.push_back(std::move(fault));
      const std::string counted =
          requirement_.gpus_per_node > 0
              ? grouped(gpus) + " of " + grouped(needed) + " GPUs usable"
              : grouped(usable) + " of " + grouped(requirement_.nodes) + " nodes usable";
      add("too-few-nodes", counted, true);
    }
    for (const std::string& pinned : requirement_.pinned_nodes) {
      if (std::find(reservation.nodes.begin(), reservation.nodes.end(), pinned) ==
          reservation.nodes.end()) {
        add("node-outside", "pinned node " + pinned + " is not in the reservation");
      } else if (enough) {
        // The others would do, but this one is asked for.
        for (Fault& fault : unusable_) {
          if (fault.message.starts_with("node " + pinned + " ")) faults_.push_back(fault);
        }
      }
    }
  }

  void check_foreign_jobs(const Reservation& reservation) {
    const std::set<std::string> nodes(reservation.nodes.begin(), reservation.nodes.end());
    for (const Job& job : snapshot_.jobs) {
      if (is_terminal(job.state)) continue;
      if (!job.nonce.empty() && std::find(own_.begin(), own_.end(), job.nonce) != own_.end()) {
        continue;
      }
      if (job.nodes.empty()) {
        if (asks_for(job, reservation.name)) {
          add("foreign-job-waiting",
              "job " + job.id + " (" + job.name + (job.user.empty() ? "" : ", user " + job.user) +
                  ") waits for this reservation and may start before you",
              true);
        }
        continue;
      }
      const auto on = std::find_if(job.nodes.begin(), job.nodes.end(),
                                   [&](const std::string& node) { return nodes.contains(node); });
      if (on == job.nodes.end()) continue;
      add("foreign-job",
          "job " + job.id + " (" + job.name + (job.user.empty() ? "" : ", user " + job.user) +
              ") is on node " + *on,
          true);
    }
  }

  void check_overlap(const Reservation& reservation) {
    const std::set<std::string> nodes(reservation.nodes.begin(), reservation.nodes.end());
    const Time begin = std::max(snapshot_.now, reservation.start);
    const Time end = begin + requirement_.duration;
    for (const Reservation& other : snapshot_.reservations) {
      if (other.name == reservation.name || other.start >= end || other.end <= begin) continue;
      const auto shared =
          std::find_if(other.nodes.begin(), other.nodes.end(),
                       [&](const std::string& node) { return nodes.contains(node); });
      if (shared == other.nodes.end()) continue;
      add("overlap", "reservation " + other.name + (has_flag(other, "MAINT") ? " (MAINT)" : "") +
                         " overlaps on node " + *shared + " from " + clock_text(other.start) +
                         " to " + clock_text(other.end));
    }
  }

  const Grant& grant_;
  const Requirement& requirement_;
  const Snapshot& snapshot_;
  const std::vector<std::string>& own_;
  std::vector<Fault> unusable_;
  std::vector<Fault> faults_;
};

struct Holdings {
  std::uint64_t cores = 0;
  std::uint64_t gpus = 0;
};

/// What the reservation's nodes have, all of it; nothing when some node's is not known.
std::optional<Holdings> holdings_of(const Reservation& reservation,
                                    const std::vector<Node>& nodes) {
  Holdings all;
  for (const std::string& name : reservation.nodes) {
    const auto node = std::find_if(nodes.begin(), nodes.end(),
                                   [&](const Node& candidate) { return candidate.name == name; });
    if (node == nodes.end() || node->cores == 0) return std::nullopt;
    all.cores += node->cores;
    all.gpus += node->gpus;
  }
  return all;
}

/// "gres/gpu" of "cpu=256,gres/gpu=32"; 0 when it is not there.
std::uint64_t reserved_gpus(const std::string& tres) {
  constexpr std::string_view kGpus = ",gres/gpu=";
  const std::string all = "," + tres;
  const std::size_t at = all.find(kGpus);
  return at == std::string::npos ? 0 : std::strtoull(all.c_str() + at + kGpus.size(), nullptr, 10);
}

/// A reservation that was made by counting GPUs or cores holds so many of them, and other jobs may
/// sit on the rest: it will do where that is all that its nodes have.
void check_whole_nodes(const Reservation& reservation, const std::vector<Node>& nodes,
                       std::vector<Fault>& faults) {
  const auto all = holdings_of(reservation, nodes);
  const auto part = [&](std::uint64_t held, std::uint64_t total, const char* what) {
    faults.push_back({"partial-nodes",
                      "it holds " + grouped(held) + " of the " + grouped(total) + " " + what +
                          " of its nodes, not whole nodes",
                      false});
  };
  const bool by_gpus = has_flag(reservation, "GRES_REQ");
  if (by_gpus && !all) {
    faults.push_back({"partial-nodes",
                      "flag GRES_REQ: it was made by counting GPUs, and what its nodes have is not "
                      "known; reserve the nodes by name",
                      false});
  }
  if (!all) return;
  if ((by_gpus || reservation.core_count > 0) && reservation.core_count < all->cores) {
    part(reservation.core_count, all->cores, "cores");
  }
  if (by_gpus && reserved_gpus(reservation.tres) < all->gpus) {
    part(reserved_gpus(reservation.tres), all->gpus, "GPUs");
  }
}

}  // namespace

std::vector<Fault> unfit_for_grant(const Reservation& reservation, const std::vector<Node>& nodes) {
  std::vector<Fault> faults;
  check_whole_nodes(reservation, nodes, faults);
  for (const ForbiddenFlag& flag : kForbidden) {
    if (has_flag(reservation, flag.name)) {
      faults.push_back({"flag", std::string("flag ") + flag.name + ": " + flag.why, false});
    }
  }
  if (!has_flag(reservation, "SPEC_NODES") && !has_flag(reservation, "STATIC")) {
    faults.push_back({"not-pinned",
                      "it has neither SPEC_NODES nor STATIC: a draining node is swapped after the "
                      "grant",
                      false});
  }
  for (const std::string& flag : reservation.flags) {
    if (flag.starts_with("BIT_")) {
      faults.push_back(
          {"flag", "flag " + flag + " of this Slurm release is not known here", false});
    }
  }
  if (reservation.name.find(',') != std::string::npos) {
    faults.push_back(
        {"name", "its name has a comma: Slurm would read a list, and take any of them", false});
  }
  if (reservation.nodes.empty()) {
    faults.push_back({"no-nodes", "it holds no nodes of its own (licenses or cores only)", false});
  }
  return faults;
}

std::vector<Fault> preflight(const Grant& grant, const Requirement& requirement,
                             const Snapshot& snapshot, const std::vector<std::string>& own_nonces) {
  return Preflight(grant, requirement, snapshot, own_nonces).run();
}

}  // namespace qualify::scheduler
