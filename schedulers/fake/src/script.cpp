#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "qualify/scheduler/fake.hpp"

namespace qualify::scheduler {

namespace {

constexpr std::array kAnswers = {"accepted", "refused", "lost_before", "lost_after"};

Unexpected wrong(const std::string& where, const std::string& what) {
  return fail(Errc::invalid_input, what, "fake script, " + where);
}

/// Reads members one by one and complains about those that nobody asked for.
class Members {
 public:
  Members(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) error_ = wrong(where_, "an object is expected").value();
  }

  void read(const char* name, const std::function<Result<void>(const Json&)>& take) {
    seen_.emplace_back(name);
    if (error_ || !json_.is_object() || !json_.contains(name)) return;
    if (auto taken = take(json_.at(name)); !taken) error_ = taken.error();
  }
  template <class T>
  void plain(const char* name, T& target) {
    read(name, [&](const Json& json) -> Result<void> {
      try {
        target = json.get<T>();
        return {};
      } catch (const std::exception&) {
        return wrong(where_ + "." + name, "a value of another type is expected");
      }
    });
  }
  void duration(const char* name, Duration& target) {
    read(name, [&](const Json& json) -> Result<void> {
      if (json == "0s") return {};
      auto value = json.is_string() ? parse_duration(json.get<std::string>())
                                    : Result<Duration>(wrong(where_, "not a duration"));
      if (!value) return wrong(where_ + "." + name, "a duration such as \"90s\" is expected");
      target = *value;
      return {};
    });
  }
  void time(const char* name, Time& target) {
    read(name, [&](const Json& json) -> Result<void> {
      auto value = json.is_string() ? parse_time(json.get<std::string>())
                                    : Result<Time>(wrong(where_, "not a time"));
      if (!value) return wrong(where_ + "." + name, "a time in RFC 3339 with Z is expected");
      target = *value;
      return {};
    });
  }
  template <class T>
  void list(const char* name, std::vector<T>& target,
            const std::function<Result<T>(const Json&, const std::string&)>& one) {
    read(name, [&](const Json& json) -> Result<void> {
      if (!json.is_array()) return wrong(where_ + "." + name, "a list is expected");
      for (std::size_t i = 0; i < json.size(); ++i) {
        auto value = one(json[i], std::string(name) + "[" + std::to_string(i) + "]");
        if (!value) return tl::unexpected(value.error());
        target.push_back(std::move(*value));
      }
      return {};
    });
  }

  [[nodiscard]] Result<void> done() const {
    if (error_) return tl::unexpected(*error_);
    for (auto it = json_.begin(); it != json_.end(); ++it) {
      if (std::find(seen_.begin(), seen_.end(), it.key()) == seen_.end()) {
        return wrong(where_, "there is no member '" + it.key() + "'");
      }
    }
    return {};
  }

 private:
  const Json& json_;
  std::string where_;
  std::vector<std::string> seen_;
  std::optional<Error> error_;
};

template <class T>
Result<T> finished(const Members& members, T value) {
  if (auto done = members.done(); !done) return tl::unexpected(done.error());
  return value;
}

void state(Members& members, const char* name, JobState& target, const std::string& where) {
  members.read(name, [&](const Json& json) -> Result<void> {
    for (int i = 0; i <= static_cast<int>(JobState::unknown); ++i) {
      if (json == name_of(static_cast<JobState>(i))) {
        target = static_cast<JobState>(i);
        return {};
      }
    }
    return wrong(where + "." + name, "not a state of a job: " + json.dump());
  });
}

Result<FakeJob> job_from(const Json& json, const std::string& where) {
  FakeJob job;
  Members members(json, where);
  members.read("answer", [&](const Json& value) -> Result<void> {
    const auto found = std::find(kAnswers.begin(), kAnswers.end(), value);
    if (found == kAnswers.end()) return wrong(where + ".answer", "not an answer: " + value.dump());
    job.answer = static_cast<Answer>(found - kAnswers.begin());
    return {};
  });
  members.duration("wait", job.wait);
  members.duration("duration", job.duration);
  members.duration("completing", job.completing);
  state(members, "end", job.end, where);
  members.plain("exit_code", job.exit_code);
  members.plain("signal", job.signal);
  members.plain("reason", job.reason);
  return finished(members, std::move(job));
}

Result<Node> node_from(const Json& json, const std::string& where) {
  Node node;
  node.usable = true;
  node.state = "IDLE";
  Members members(json, where);
  members.plain("name", node.name);
  members.plain("usable", node.usable);
  members.plain("state", node.state);
  members.plain("reason", node.reason);
  members.plain("cpus", node.cpus);
  members.plain("gpus", node.gpus);
  return finished(members, std::move(node));
}

Result<Job> foreign_from(const Json& json, const std::string& where) {
  Job job;
  job.state = JobState::running;
  Members members(json, where);
  members.plain("id", job.id);
  members.plain("name", job.name);
  members.plain("user", job.user);
  members.plain("nodes", job.nodes);
  members.plain("reservation", job.reservation);
  state(members, "state", job.state, where);
  return finished(members, std::move(job));
}

Result<Outage> outage_from(const Json& json, const std::string& where) {
  Outage outage;
  Members members(json, where);
  members.time("from", outage.from);
  members.time("to", outage.to);
  return finished(members, outage);
}

}  // namespace

Result<FakeScript> fake_script_from_json(const Json& json) {
  FakeScript script;
  Members members(json, "script");
  members.list<Reservation>("reservations", script.reservations,
                            [](const Json& one, const std::string& where) {
                              auto value = reservation_from_json(one);
                              if (!value) value.error().context = "fake script, " + where;
                              return value;
                            });
  members.list<Node>("nodes", script.nodes, node_from);
  members.list<Job>("foreign_jobs", script.foreign_jobs, foreign_from);
  members.list<FakeJob>("jobs", script.jobs, job_from);
  members.list<Outage>("outages", script.outages, outage_from);
  members.duration("remembered", script.remembered);
  Duration lag{-1};
  members.duration("accounting_lag", lag);
  if (lag >= Duration::zero()) script.accounting_lag = lag;
  members.list<Outage>("accounting_outages", script.accounting_outages, outage_from);
  return finished(members, std::move(script));
}

}  // namespace qualify::scheduler
