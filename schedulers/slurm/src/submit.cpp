#include "submit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>

#include "convert.hpp"

namespace qualify::scheduler::slurm {

namespace {

/// Options that a login shell, or a job around it, set for srun and sbatch would act inside the
/// job. Where the configuration lies is the one thing that it must know.
bool is_of_ours(const std::string& name) {
  static constexpr std::array kForeign = {"SLURM_",  "SLURMD_", "SBATCH_", "SRUN_",
                                          "SALLOC_", "PMI_",    "PMIX_"};
  return name == "SLURM_CONF" ||
         std::none_of(kForeign.begin(), kForeign.end(),
                      [&](const char* prefix) { return name.starts_with(prefix); });
}

/// job_desc_msg_t wants pointers to characters that it will not change: the strings live here.
class Description {
 public:
  explicit Description(const JobRequest& request)
      : name_(job_name(request.name, request.nonce)),
        comment_(comment_for(request.nonce)),
        stdout_(request.folder + "/job.out"),
        stderr_(request.folder + "/job.err"),
        folder_(request.folder),
        reservation_(request.reservation),
        partition_(request.partition),
        nodes_(fmt::format("{}", fmt::join(request.pinned_nodes, ","))),
        gpus_(gpus_per_node(request.gpus_per_node)),
        script_(kBatchScript) {
    std::map<std::string, std::string> environment;
    for (const auto& [name, value] : request.environment) {
      if (is_of_ours(name)) environment[name] = value;
    }
    environment["QUALIFY_EXECUTABLE"] = request.executable;
    environment["QUALIFY_JOB_PLAN"] = request.plan_file;
    for (const auto& [key, value] : environment) variables_.push_back(key + "=" + value);
    for (std::string& variable : variables_) pointers_.push_back(variable.data());
    pointers_.push_back(nullptr);
    argument_ = name_;
    arguments_ = {argument_.data(), nullptr};

    slurm_init_job_desc_msg(&message_);
    message_.name = name_.data();
    message_.comment = comment_.data();
    message_.script = script_.data();
    message_.argc = 1;
    message_.argv = arguments_.data();
    message_.work_dir = folder_.data();
    message_.std_out = stdout_.data();
    message_.std_err = stderr_.data();
    message_.open_mode = OPEN_MODE_APPEND;  // an attempt's log is never overwritten
    message_.environment = pointers_.data();
    message_.env_size = static_cast<std::uint32_t>(variables_.size());
    message_.user_id = getuid();
    message_.group_id = getgid();
    message_.reservation = reservation_.data();
    if (!partition_.empty()) message_.partition = partition_.data();
    if (!nodes_.empty()) message_.req_nodes = nodes_.data();
    message_.min_nodes = request.nodes;
    message_.max_nodes = request.nodes;
    message_.num_tasks = request.nodes * request.tasks_per_node;
    message_.ntasks_per_node = static_cast<std::uint16_t>(request.tasks_per_node);
    if (request.gpus_per_node > 0) message_.tres_per_node = gpus_.data();
    message_.pn_min_memory = 0;  // all of the node's
    message_.shared = 0;         // exclusive
    message_.requeue = 0;        // on by default: a failed node would start it again elsewhere
    message_.kill_on_node_fail = 1;
    message_.wait_all_nodes = 1;
    const auto minutes = std::chrono::ceil<std::chrono::minutes>(request.time_limit);
    if (minutes.count() > 0) message_.time_limit = static_cast<std::uint32_t>(minutes.count());
    if (request.deadline) {
      message_.deadline =
          std::chrono::duration_cast<std::chrono::seconds>(request.deadline->time_since_epoch())
              .count();
    }
  }
  Description(const Description&) = delete;
  Description& operator=(const Description&) = delete;

  job_desc_msg_t& message() { return message_; }

 private:
  std::string name_, comment_, stdout_, stderr_, folder_, reservation_, partition_, nodes_, gpus_,
      script_, argument_;
  std::vector<std::string> variables_;
  std::vector<char*> pointers_, arguments_;
  job_desc_msg_t message_{};
};

Result<void> check(const JobRequest& request) {
  const auto wrong = [&](const std::string& what) {
    return fail(Errc::invalid_input, what, request.name);
  };
  if (request.reservation.empty()) return wrong("a job without a reservation is never submitted");
  // Slurm reads a list as "any of these".
  if (request.reservation.find(',') != std::string::npos) {
    return wrong("a reservation's name has no comma: '" + request.reservation + "'");
  }
  if (request.nonce.empty() || request.nonce.find_first_of(" ,\n") != std::string::npos) {
    return wrong("a nonce is one word");
  }
  if (!request.pinned_nodes.empty() && request.pinned_nodes.size() != request.nodes) {
    return wrong(fmt::format("{} nodes are pinned, {} are asked for", request.pinned_nodes.size(),
                             request.nodes));
  }
  for (const std::string* path : {&request.executable, &request.plan_file, &request.folder}) {
    if (!path->starts_with('/')) return wrong("not an absolute path: '" + *path + "'");
  }
  return {};
}

}  // namespace

std::string job_name(const std::string& name, const std::string& nonce) {
  return name + ":" + nonce;
}

Result<void> would_accept(const JobRequest& request) {
  if (auto fit = check(request); !fit) return fit;
  Description description(request);
  will_run_response_msg_t* raw = nullptr;
  errno = 0;
  const int rc = slurm_job_will_run2(&description.message(), &raw);
  const int error_number = errno;
  free_answer(raw);
  if (rc != 0) return failure(error_number, "the controller would not take the job");
  return {};
}

Result<Submission> submit(const JobRequest& request) {
  if (auto fit = check(request); !fit) return tl::unexpected(fit.error());
  Description description(request);
  submit_response_msg_t* raw = nullptr;
  errno = 0;
  const int rc = slurm_submit_batch_job(&description.message(), &raw);
  const int error_number = errno;
  const std::unique_ptr<submit_response_msg_t, decltype(&slurm_free_submit_response_response_msg)>
      response(raw, &slurm_free_submit_response_response_msg);
  if (rc != 0) return failure(error_number, "cannot submit");
  if (response == nullptr || job_number(*response) == 0) {
    return fail(Errc::unavailable, "the controller accepted a job but named no id");
  }
  Submission submission;
  submission.job_id = std::to_string(job_number(*response));
  // rc 0 with an error code: the job exists, and something stands in its way.
  if (response->error_code != 0) {
    submission.warnings.push_back(fmt::format(
        "{} ({})", slurm_strerror(static_cast<int>(response->error_code)), response->error_code));
  }
  if (response->job_submit_user_msg != nullptr) {
    submission.warnings.emplace_back(response->job_submit_user_msg);
  }
  return submission;
}

}  // namespace qualify::scheduler::slurm
