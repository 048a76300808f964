#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <memory>

#include "accounting.hpp"
#include "convert.hpp"
#include "probe.hpp"
#include "qualify/scheduler/scheduler.hpp"
#include "submit.hpp"
#include "version.hpp"

namespace qualify::scheduler::slurm {

namespace {

/// A table of the controller's, asked for again only when it has changed: the controller then
/// answers with a few bytes, however many records it holds.
template <class Message, auto Free>
class Table {
 public:
  /// `load(update_time, &message)` as libslurm's functions. Errors: as failure().
  template <class Load>
  Result<const Message*> refresh(Load&& load, const std::string& what) {
    Message* fresh = nullptr;
    errno = 0;
    const int rc = load(message_ ? message_->last_update : time_t{0}, &fresh);
    if (rc != 0) {
      const int error_number = errno;
      if (error_number == SLURM_NO_CHANGE_IN_DATA && message_) return message_.get();
      return failure(error_number, what);
    }
    if (fresh == nullptr) return fail(Errc::unavailable, what + ": an empty answer");
    message_.reset(fresh);
    ++generation_;
    return message_.get();
  }
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  void forget() { message_.reset(); }

 private:
  struct Deleter {
    void operator()(Message* message) const { Free(message); }
  };
  std::unique_ptr<Message, Deleter> message_;
  std::uint64_t generation_ = 0;
};

class Slurm final : public Scheduler {
 public:
  std::string kind() const override { return "slurm"; }

  Result<std::string> describe() override {
    const auto conf = load_configuration();
    if (!conf) return tl::unexpected(conf.error());
    const slurm_conf_t& it = **conf;
    return fmt::format("slurm {}, cluster {}, controller {}, accounting {}", it.version,
                       it.cluster_name, it.control_cnt > 0 ? it.control_machine[0] : "?",
                       has_accounting(it) ? "by slurmdbd" : "not configured");
  }

  Result<Time> now() override {
    // An unchanged table comes without a time: this one is asked for whole, and is small.
    reservations_.forget();
    const auto table = load_reservations();
    if (!table) return tl::unexpected(table.error());
    return Time(std::chrono::seconds((*table)->last_update));
  }

  Result<std::vector<Reservation>> reservations() override {
    const auto table = load_reservations();
    if (!table) return tl::unexpected(table.error());
    std::vector<Reservation> values;
    for (std::uint32_t i = 0; i < (*table)->record_count; ++i) {
      values.push_back(to_reservation((*table)->reservation_array[i]));
    }
    return values;
  }

  Result<std::vector<Node>> nodes() override {
    const auto table = nodes_.refresh(
        [](time_t since, node_info_msg_t** message) {
          return slurm_load_node(since, message, SHOW_ALL | SHOW_LOCAL);
        },
        "cannot read the nodes");
    if (!table) return tl::unexpected(table.error());
    std::vector<Node> values;
    for (std::uint32_t i = 0; i < (*table)->record_count; ++i) {
      // A node that was taken out of the configuration leaves a record without a name.
      if ((*table)->node_array[i].name == nullptr) continue;
      values.push_back(to_node((*table)->node_array[i]));
    }
    return values;
  }

  Result<std::vector<Job>> jobs() override {
    if (auto loaded = load_jobs(); !loaded) return tl::unexpected(loaded.error());
    return known_jobs_;
  }

  Result<void> would_accept(const JobRequest& request) override {
    return slurm::would_accept(request);
  }

  Result<Submission> submit(const JobRequest& request) override { return slurm::submit(request); }

  Result<std::vector<Job>> find(const std::string& nonce) override {
    if (nonce.empty()) return std::vector<Job>();
    if (auto loaded = load_jobs(); !loaded) return tl::unexpected(loaded.error());
    std::vector<Job> found;
    std::copy_if(known_jobs_.begin(), known_jobs_.end(), std::back_inserter(found),
                 [&](const Job& job) { return job.nonce == nonce; });
    return found;
  }

  Result<std::vector<Job>> accounted(const std::string& name, const std::string& nonce,
                                     Time since) override {
    if (nonce.empty()) return std::vector<Job>();
    // The controller says where it is; whoever asks has just heard from it.
    const auto conf = load_configuration();
    if (!conf) return tl::unexpected(conf.error());
    if (!has_accounting(**conf)) {
      return fail(Errc::unsupported, "accounting is not configured on this cluster",
                  (*conf)->cluster_name);
    }
    return accounted_jobs((*conf)->cluster_name, job_name(name, nonce), nonce, since);
  }

  Result<void> cancel(const std::string& job_id, const std::string& nonce) override {
    std::uint32_t number = 0;
    const auto [end, parsed] =
        std::from_chars(job_id.data(), job_id.data() + job_id.size(), number);
    if (parsed != std::errc() || end != job_id.data() + job_id.size()) {
      return fail(Errc::invalid_input, "not a Slurm job id: '" + job_id + "'");
    }
    if (auto loaded = load_jobs(); !loaded) return tl::unexpected(loaded.error());
    const auto job = std::find_if(known_jobs_.begin(), known_jobs_.end(),
                                  [&](const Job& candidate) { return candidate.id == job_id; });
    if (job == known_jobs_.end() || is_terminal(job->state)) return {};
    // Numbers are used again: this one is somebody else's by now, and ours has gone.
    if (nonce.empty() || job->nonce != nonce) return {};
    errno = 0;
    if (kill_job(number, SIGKILL) == 0) return {};
    const int error_number = errno;
    if (error_number == ESLURM_INVALID_JOB_ID || error_number == ESLURM_ALREADY_DONE) return {};
    return failure(error_number, "cannot cancel job " + job_id);
  }

 private:
  using Configuration = std::unique_ptr<slurm_conf_t, decltype(&free_configuration)>;

  static Result<Configuration> load_configuration() {
    slurm_conf_t* raw = nullptr;
    errno = 0;
    if (slurm_load_ctl_conf(0, &raw) != 0) return failure(errno, "cannot read the configuration");
    return Configuration(raw, &free_configuration);
  }

  static bool has_accounting(const slurm_conf_t& conf) {
    const std::string type =
        conf.accounting_storage_type == nullptr ? "" : conf.accounting_storage_type;
    return type.ends_with("slurmdbd");
  }

  Result<const reserve_info_msg_t*> load_reservations() {
    return reservations_.refresh(
        [](time_t since, reserve_info_msg_t** message) {
          return slurm_load_reservations(since, message);
        },
        "cannot read the reservations");
  }

  Result<void> load_jobs() {
    const auto table = jobs_.refresh(
        [](time_t since, job_info_msg_t** message) {
          return slurm_load_jobs(since, message, SHOW_ALL | SHOW_LOCAL);
        },
        "cannot read the jobs");
    if (!table) return tl::unexpected(table.error());
    if (jobs_.generation() == converted_) return {};
    known_jobs_.clear();
    for (std::uint32_t i = 0; i < (*table)->record_count; ++i) {
      known_jobs_.push_back(to_job((*table)->job_array[i]));
    }
    converted_ = jobs_.generation();
    return {};
  }

  Table<reserve_info_msg_t, slurm_free_reservation_info_msg> reservations_;
  Table<node_info_msg_t, slurm_free_node_info_msg> nodes_;
  Table<job_info_msg_t, slurm_free_job_info_msg> jobs_;
  std::vector<Job> known_jobs_;
  std::uint64_t converted_ = 0;
};

}  // namespace

}  // namespace qualify::scheduler::slurm

#define QUALIFY_EXPORT extern "C" __attribute__((visibility("default")))

QUALIFY_EXPORT int qualify_scheduler_interface() {
  return qualify::scheduler::kModuleInterface;
}

QUALIFY_EXPORT const char* qualify_scheduler_description() {
  static const std::string text = "slurm (libslurm " + qualify::scheduler::slurm::built_for() + ")";
  return text.c_str();
}

QUALIFY_EXPORT qualify::scheduler::Scheduler* qualify_scheduler_create(qualify::Error* error) {
  namespace slurm = qualify::scheduler::slurm;
  for (auto check : {slurm::check_library, slurm::configuration_is_there}) {
    if (auto passed = check(); !passed) {
      *error = passed.error();
      return nullptr;
    }
  }
  slurm::initialise();
  return std::make_unique<slurm::Slurm>().release();
}
