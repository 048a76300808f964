#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/journal/transcript.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/rebuild/rebuild.hpp"
#include "qualify/run/qualification.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::rebuild {

/// A state in which one gate passed with a certificate, the log has a signed checkpoint, and a
/// second gate is in the middle of its first run.
class FinishedState : public ::testing::Test {
 protected:
  void SetUp() override {
    using namespace std::chrono_literals;
    bundle = test::make_state(folder.path());
    auto state = run::open_state(paths.folder).value();
    signer = ledger::load_key(paths.signing_key()).value();
    cluster.emplace(
        test::cluster_of(reservation), clock, [this](const auto& request, const auto& job) {
          test::leave_result(request, job, clock.now(), test::metrics_line(clock.now()));
        });
    ASSERT_TRUE(qualify(state, "first"));
    log_key.emplace(ledger::LogSigner::load(paths.log_key()).value());
    stop_at = run::event::kRunning;
    ASSERT_FALSE(qualify(state, "second"));
    stop_at.clear();
    before = shown();
  }

  Result<run::Outcome> qualify(run::State& state, const std::string& gate) {
    run::Stop stop = run::Stop::none;
    const run::Ports ports{*cluster,
                           *signer,
                           clock,
                           [&] { return stop; },
                           [&](const journal::Event& event) {
                             if (event.kind == stop_at) stop = run::Stop::detach;
                           },
                           "/usr/bin/qualify",
                           {}};
    return run::qualify_gate(
        state, {test::repeat_gate(gate), bundle, test::grant_of(reservation, gate)}, ports);
  }
  /// Every event but those of rebuilding, and every record.
  std::string shown() const {
    auto state = run::open_state_read_only(paths.folder);
    if (!state) return state.error().describe();
    std::string text;
    const auto events = journal::Journal(state->database).events().value();
    for (const journal::Event& event : events) {
      if (event.kind == event::kRebuilt) continue;
      text += std::to_string(event.sequence) + " " + format_time(event.time) + " " +
              event.qualification + " " + event.run + " " + event.kind + " " + event.payload + "\n";
    }
    const auto records = ledger::Ledger(state->database).records();
    if (!records) return records.error().describe();
    for (const ledger::Record& record : *records) text += record.id + "\n";
    return text;
  }
  Result<Rebuilt> rebuild_now() { return rebuild(paths.folder, clock.now(), "op"); }
  /// Goes on with what was unfinished, as `qualify resume` does: nothing is run twice.
  void expect_goes_on() {
    auto state = run::open_state(paths.folder);
    ASSERT_TRUE(state) << state.error().describe();
    const auto outcome = qualify(*state, "second");
    ASSERT_TRUE(outcome) << outcome.error().describe();
    EXPECT_EQ(outcome->state.name, "second-1");
    EXPECT_EQ(outcome->judgement.verdict, policy::Verdict::pass);
    EXPECT_EQ(cluster->submissions(), 4U) << "two runs a gate, each submitted once";
    const auto audit = ledger::audit_log(state->database, log_key->verifier(), {}, 1);
    EXPECT_TRUE(audit.faults.empty()) << audit.faults.front().describe();
    EXPECT_EQ(audit.checkpoints, 2U) << "one with each certificate";
  }
  void flip(const fs::path& file, std::size_t at, unsigned char bits = 0x10) const {
    std::string content = read_file(file).value();
    content.at(at) = static_cast<char>(static_cast<unsigned char>(content.at(at)) ^ bits);
    ASSERT_TRUE(write_file_atomic(file, content));
  }
  /// All of the database in its file, nothing in its log: as after a clean end of the last writer.
  void settle() const {
    (void)test::run_program({SQLITE3_PROGRAM, paths.database().string()},
                            "PRAGMA wal_checkpoint(TRUNCATE);");
  }
  void lose_database() const {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      fs::remove(paths.database().string() + suffix);
    }
  }

  test::TempFolder folder{test::memory_folder()};
  const run::StatePaths paths{folder / "state"};
  test::FakeClock clock;
  const scheduler::Reservation reservation =
      test::night(clock.now() - std::chrono::minutes(1), clock.now() + std::chrono::hours(12));
  Digest bundle;
  std::unique_ptr<ledger::Signer> signer;
  std::optional<ledger::LogSigner> log_key;
  std::optional<scheduler::Fake> cluster;
  std::string stop_at;
  std::string before;
};

}  // namespace qualify::rebuild
