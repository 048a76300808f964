#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "qualify/run/qualification.hpp"
#include "qualify/store/bundle.hpp"

namespace qualify::run {

/// Appends to the journal and tells whoever watches.
class Recorder {
 public:
  Recorder(journal::Database& database, const Ports& ports)
      : database_(&database), journal_(database), ports_(&ports) {}

  [[nodiscard]] const journal::Journal& journal() const { return journal_; }
  [[nodiscard]] Result<QualificationState> start(const plan::Plan& plan, const policy::Gate& gate);
  [[nodiscard]] Result<void> append(const std::string& qualification, const std::string& run,
                                    int attempt, const std::string& kind, const Json& payload);
  /// One event for each of several runs: all of them, or none. Returns them as recorded.
  struct Entry {
    std::string run;
    int attempt = 0;
    Json payload;
  };
  [[nodiscard]] Result<std::vector<journal::Event>> append_all(const std::string& qualification,
                                                               const std::string& kind,
                                                               const std::vector<Entry>& entries);
  [[nodiscard]] Result<QualificationState> state_of(const std::string& qualification) const;

 private:
  journal::Database* database_;
  journal::Journal journal_;
  const Ports* ports_;
};

/// What the stages share. All by reference: it lives inside qualify_gate.
struct Context {
  State& state;
  const Request& request;
  const Ports& ports;
  Recorder& recorder;
  const store::Bundle& bundle;
};

/// Whoever goes on after a stop does so.
inline constexpr const char* kGoOn = "go on with the same 'qualify run' command";

/// For the reading of evidence: an error once a stop was asked for.
[[nodiscard]] KeepOn unless_stopped(const Context& context, const std::string& name);

/// The folder of one attempt at one run, absolute.
[[nodiscard]] std::filesystem::path attempt_folder(const Context& context, const std::string& name,
                                                   const std::string& run, int attempt);

/// Runs what the first `runs` of the plan still lack, in order; the only stage that retries.
[[nodiscard]] Result<QualificationState> execute(const Context& context, const std::string& name,
                                                 std::size_t runs);

/// Is there room in the reservation for the plan's runs up to `runs`, beyond those that have their
/// evidence? By the controller's clock; a no is recorded with its reason.
[[nodiscard]] Result<bool> window_allows(const Context& context, const QualificationState& state,
                                         std::size_t runs);

/// Collects the evidence of those of the plan's first `runs` that have ended and have none yet.
[[nodiscard]] Result<QualificationState> collect_all(const Context& context,
                                                     const QualificationState& executed,
                                                     std::size_t runs);

}  // namespace qualify::run
