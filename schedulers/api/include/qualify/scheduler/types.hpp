#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/digest.hpp"
#include "qualify/base/json.hpp"

/// What every backend speaks of: reservations, nodes, jobs. Plain values, no I/O.
namespace qualify::scheduler {

/// A reservation as the controller reports it. Slurm gives it no id: identity is the fingerprint.
struct Reservation {
  std::string name;
  Time start;
  Time end;
  std::vector<std::string> flags;  ///< Slurm's names ("SPEC_NODES", "FLEX", …), sorted
  std::vector<std::string> nodes;  ///< single names, expanded, sorted
  std::uint32_t node_count = 0;
  std::uint32_t core_count = 0;
  std::string partition;
  std::vector<std::string> users;     ///< sorted, as reported ("-name" = denied)
  std::vector<std::string> accounts;  ///< sorted
  std::vector<std::string> groups;    ///< sorted
  std::string licenses;
  std::string features;
  std::string tres;
  /// Slurm 25.11 and later, where a reservation can name them; always empty with an older libslurm,
  /// whose reservations are bound to neither.
  std::vector<std::string> allowed_partitions;  ///< sorted ("-name" = denied)
  std::vector<std::string> qos;                 ///< sorted ("-name" = denied)
};

/// Every field above, for `--json`.
[[nodiscard]] Json to_json(const Reservation& reservation);
/// What an earlier release did not write (allowed_partitions, qos) may be missing.
/// Errors: invalid_input.
[[nodiscard]] Result<Reservation> reservation_from_json(const Json& json);
/// SHA-256 over the canonical JSON of every field: what a grant pins. allowed_partitions and qos
/// are left out while they are empty, so that grants of releases that did not know them keep their
/// fingerprints.
[[nodiscard]] Digest fingerprint(const Reservation& reservation);

struct Node {
  std::string name;
  bool usable = false;  ///< none of down, drained, draining, failing, maintenance, not responding
  std::string state;    ///< Slurm's words: "IDLE+DRAIN"
  std::string reason;   ///< why not usable, as the operator or controller gave it; may be empty
  std::optional<Time> reason_time;
  std::uint32_t cpus = 0;
  std::uint32_t cores = 0;  ///< 0 = not known
  std::uint32_t gpus = 0;   ///< from the node's GRES
};

enum class JobState {
  pending,
  running,
  suspended,
  completing,
  completed,
  cancelled,
  failed,
  timeout,
  node_fail,
  preempted,
  boot_fail,
  deadline,
  out_of_memory,
  unknown,
};
[[nodiscard]] const char* name_of(JobState state);
/// completed, cancelled, failed, timeout, node_fail, preempted, boot_fail, deadline, out_of_memory.
[[nodiscard]] bool is_terminal(JobState state);

/// A job as the controller reports it. `id` is unique only together with nonce and submit time.
struct Job {
  std::string id;
  std::string name;
  std::string nonce;  ///< from the comment that submit() wrote; empty for foreign jobs
  JobState state = JobState::unknown;
  std::string reason;                    ///< why pending or why ended, in the scheduler's words
  bool held_by_reservation_end = false;  ///< Slurm's RESV_DEL_HOLD: never release
  std::string reservation;
  std::string partition;
  std::string user;
  std::vector<std::string> nodes;  ///< sorted; empty while pending
  std::uint32_t restart_count = 0;
  int exit_code = 0;  ///< of the batch script; meaningful when terminal
  int signal = 0;     ///< that ended the batch script, 0 for none
  std::optional<Time> submit_time;
  std::optional<Time> start_time;
  std::optional<Time> end_time;
  std::optional<Duration> time_limit;
  /// Of a completing job: how its work ended, which is what its state will be. Else unknown.
  JobState ended_as = JobState::unknown;
  bool accounted = false;  ///< by accounting's word: the scheduler itself has forgotten it
};
[[nodiscard]] Json to_json(const Job& job);

/// What to start. Backends never see a shell string: the job runs `executable job <plan_file>`.
struct JobRequest {
  std::string nonce;  ///< unique for ever; becomes name suffix and comment, found again by find()
  std::string name;   ///< for people, "qualify:<gate>:<run>"
  std::string executable;  ///< absolute path of this `qualify`
  std::string plan_file;   ///< absolute path of the job plan; on a shared file system
  std::string folder;      ///< attempt folder, absolute: cwd, job.out, job.err
  std::map<std::string, std::string> environment;  ///< whole environment of the batch step
  std::uint32_t nodes = 1;
  std::uint32_t tasks_per_node = 1;
  std::uint32_t gpus_per_node = 0;
  std::vector<std::string> pinned_nodes;  ///< exactly these, or empty for any in the reservation
  std::string partition;                  ///< empty = the reservation's or the default one
  std::string reservation;                ///< exact name; never empty for Slurm
  Duration time_limit{};
  std::optional<Time> deadline;  ///< the reservation's end
};

struct Submission {
  std::string job_id;
  std::vector<std::string> warnings;  ///< accepted, but the scheduler had something to say
};

}  // namespace qualify::scheduler
