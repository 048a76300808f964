#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "qualify/base/files.hpp"
#include "qualify/daemon/arming.hpp"
#include "qualify/journal/transcript.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/rebuild/rebuild.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/state.hpp"

namespace qualify::rebuild {

namespace {

class Inspection {
 public:
  explicit Inspection(const fs::path& folder) : paths_{folder} {}

  std::vector<Error> run() {
    // The transcript first: a writer may add to both meanwhile, and the database leads.
    const auto transcript = journal::read_transcript(paths_.transcript());
    if (!fs::exists(paths_.database())) {
      fault("the database is missing", paths_.database().string());
      return std::move(faults_);
    }
    auto database = journal::Database::open_read_only(paths_.database());
    if (!database) return {database.error()};
    for (Error& error : database->check()) faults_.push_back(std::move(error));
    // What cannot be read cannot be compared; the faults above say all there is to say.
    if (!faults_.empty()) return std::move(faults_);
    look_at_journal(*database);
    look_at_log(*database);
    if (transcript) {
      compare(*database, *transcript);
    } else if (transcript.error().code != Errc::not_found) {
      faults_.push_back(transcript.error());
    }
    return std::move(faults_);
  }

 private:
  void fault(std::string message, std::string context) {
    faults_.push_back({Errc::integrity, std::move(message), std::move(context), {}, {}});
  }

  void look_at_journal(journal::Database& database) {
    const journal::Journal journal(database);
    const auto names = journal.qualifications();
    if (!names) return faults_.push_back(names.error());
    for (const std::string& name : *names) {
      const auto events = journal.events(name);
      if (!events) {
        faults_.push_back(events.error());
      } else if (auto derived = run::derive(*events); !derived) {
        fault(derived.error().message, name);
      }
    }
    if (const auto armed = daemon::armed_gates(database); !armed) faults_.push_back(armed.error());
  }

  void look_at_log(journal::Database& database) {
    std::optional<ledger::LogVerifier> verifier;
    if (auto text = read_file(paths_.log_key().string() + ".vkey")) {
      while (!text->empty() && text->back() == '\n') text->pop_back();
      if (auto parsed = ledger::LogVerifier::parse(*text)) verifier = std::move(*parsed);
    }
    auto audit = ledger::audit_log(database, verifier, {}, 1);
    for (Error& error : audit.faults) {
      // A key that is elsewhere is no damage: roots are compared without it.
      if (!verifier && error.hint == "give it with --log-key") continue;
      faults_.push_back(std::move(error));
    }
  }

  void compare(const journal::Database& database, const journal::Transcript& transcript) {
    const std::string file = paths_.transcript().string();
    for (const journal::TranscriptFault& each : transcript.faults) {
      fault("line " + std::to_string(each.line) + ": " + each.why, file);
    }
    std::map<std::string, std::size_t> lacking;
    for (const journal::TranscriptRow& row : transcript.rows) {
      for (const journal::GrowingTable& table : journal::growing_tables()) {
        if (row.table != table.name) continue;
        const auto there = journal::row_of(database, table, row.key);
        if (!there) {
          faults_.push_back(there.error());
        } else if (!*there) {
          ++lacking[row.table];
        } else if ((*there)->values != row.values) {
          fault("row " + std::to_string(row.key) + " of '" + row.table + "' is not what line " +
                    std::to_string(row.line) + " of the transcript has",
                paths_.database().string());
        }
      }
    }
    for (const auto& [table, count] : lacking) {
      fault(
          "it lacks " + std::to_string(count) + " rows of '" + table + "' that the transcript has",
          paths_.database().string());
    }
  }

  run::StatePaths paths_;
  std::vector<Error> faults_;
};

}  // namespace

std::vector<Error> inspect(const fs::path& folder) {
  auto faults = Inspection(folder).run();
  for (Error& error : faults) {
    // Nobody wrote these rows by hand: what is not well-formed in them is damage.
    if (error.code == Errc::invalid_input) error.code = Errc::integrity;
  }
  return faults;
}

}  // namespace qualify::rebuild
