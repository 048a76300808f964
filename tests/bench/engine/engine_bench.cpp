// The journal, and what is derived from it at 10,000 finished and 100 live runs.
//
// Peers in the same run: for appends a bare sqlite3 program that inserts the same row with the same
// durability; for `qualify status` a process that only prints its version.
#include <benchmark/benchmark.h>
#include <sqlite3.h>

#include <nlohmann/json.hpp>

#include "qualify/journal/journal.hpp"
#include "qualify/plan/plan.hpp"
#include "qualify/run/progress.hpp"
#include "qualify/run/state.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

constexpr int kGates = 50;      // each with its latest qualification in the middle of two runs
constexpr int kFinished = 100;  // qualifications of each gate before that one
constexpr int kBatch = 500;     // events in a transaction

Json payload(int number) {
  return {{"job_id", std::to_string(number)}, {"nonce", "q0123456789abcdef0123456789abcdef"}};
}

/// Durable appends, on the disk of the temporary folder.
void append(benchmark::State& state, int batch) {
  const test::TempFolder folder;
  journal::OpenOptions options;
  options.transcript = folder / "transcript.jsonl";
  auto database = journal::Database::open(folder / "a.db", options).value();
  journal::Journal journal(database);
  int number = 0;
  for (auto _ : state) {
    const auto done = database.transaction([&]() -> Result<void> {
      for (int i = 0; i < batch; ++i) {
        auto event =
            journal.append(Time(Duration(number)), {}, {}, 0, "attempt.submitted", payload(number));
        if (!event) return tl::unexpected(event.error());
        ++number;
      }
      return {};
    });
    if (!done) return state.SkipWithError(done.error().describe().c_str());
  }
  state.SetItemsProcessed(number);
}
void AppendSingly(benchmark::State& state) {
  append(state, 1);
}
void AppendInBatches(benchmark::State& state) {
  append(state, kBatch);
}

/// The least that a durable row costs: write-ahead log, synchronous FULL, one prepared statement.
void bare(benchmark::State& state, int batch) {
  const test::TempFolder folder;
  sqlite3* db = nullptr;
  sqlite3_open((folder / "a.db").c_str(), &db);
  sqlite3_exec(db,
               "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE event (sequence "
               "INTEGER PRIMARY KEY, time INTEGER, kind TEXT, payload TEXT) STRICT;",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO event (time, kind, payload) VALUES (?, ?, ?)", -1, &insert,
                     nullptr);
  int number = 0;
  for (auto _ : state) {
    sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    for (int i = 0; i < batch; ++i, ++number) {
      const std::string text = payload(number).dump();
      sqlite3_bind_int64(insert, 1, number);
      sqlite3_bind_text(insert, 2, "attempt.submitted", -1, SQLITE_STATIC);
      sqlite3_bind_text(insert, 3, text.c_str(), -1, SQLITE_TRANSIENT);
      sqlite3_step(insert);
      sqlite3_reset(insert);
    }
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
  }
  state.SetItemsProcessed(number);
  sqlite3_finalize(insert);
  sqlite3_close(db);
}
void BareSqliteSingly(benchmark::State& state) {
  bare(state, 1);
}
void BareSqliteInBatches(benchmark::State& state) {
  bare(state, kBatch);
}

/// 10,000 finished runs of 50 gates, and 100 that are live: made once.
class Years {
 public:
  Years() {
    const Digest bundle = test::make_state(folder.path());
    auto state = open_state(folder / "state").value();
    const auto reservation = test::night(clock.now(), clock.now() + std::chrono::hours(12));
    const auto sealed = store::load(state.bundles, bundle).value();
    journal::Journal journal(state.database);
    const auto done = state.database.transaction([&]() -> Result<void> {
      for (int number = 0; number <= kFinished; ++number) {
        for (int gate = 0; gate < kGates; ++gate) {
          const auto declared = test::repeat_gate("gate-" + std::to_string(gate));
          const auto plan =
              plan::expand(declared, sealed, test::grant_of(reservation, declared.name)).value();
          one(journal, declared, plan, number < kFinished);
        }
      }
      return {};
    });
    if (!done) std::abort();
  }

  test::TempFolder folder;

 private:
  void one(journal::Journal& journal, const policy::Gate& gate, const plan::Plan& plan, bool end) {
    clock.advance(std::chrono::seconds(1));
    const auto name = journal
                          .start_qualification(clock.now(), gate.name, plan.bundle, plan.policy,
                                               to_json(plan), to_json(gate))
                          .value();
    const auto say = [&](const std::string& run, int attempt, const char* kind, const Json& what) {
      if (!journal.append(clock.now(), name, run, attempt, kind, what)) std::abort();
    };
    const Json job = {{"nodes", {"n1"}}, {"id", "1"}};
    for (const plan::Run& run : plan.runs) {
      say(run.id, 0, event::kPreflight, {{"faults", Json::array()}});
      say(run.id, 1, event::kIntent, {{"nonce", "q" + name + run.id}});
      say(run.id, 1, event::kSubmitted, {{"job_id", "1"}});
      say(run.id, 1, event::kRunning, {{"job", job}});
      if (!end) continue;
      say(run.id, 1, event::kEnded,
          {{"job", job}, {"complete", true}, {"failure", ""}, {"failure_class", "none"}});
      say(run.id, 1, event::kEvidence, {{"digest", sha256(name + run.id).str()}});
    }
    if (!end) return;
    say({}, 0, event::kVerdict,
        {{"verdict", "pass"},
         {"reasons", Json::array()},
         {"level", "E1"},
         {"judgement", sha256(name).str()},
         {"summary", ""}});
  }

  test::FakeClock clock;
};

const Years& years() {
  static const Years all;
  return all;
}

/// What `resume` knows before it asks the scheduler: opened for writing, all that is unfinished.
void ResumeFindsWhatIsUnfinished(benchmark::State& state) {
  const auto& folder = years().folder;
  for (auto _ : state) {
    auto opened = open_state(folder / "state").value();
    const auto open = open_qualifications(opened.database).value();
    if (open.size() != kGates) return state.SkipWithError("not all that is unfinished");
  }
}

void run_command(benchmark::State& state, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{QUALIFY_PROGRAM, "--state", (years().folder / "state").string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  for (auto _ : state) {
    const auto ran = test::run_program(argv);
    if (ran.exit_code != 0) return state.SkipWithError(ran.output.c_str());
  }
}
void StatusCommand(benchmark::State& state) {
  run_command(state, {"status"});
}
void VersionCommand(benchmark::State& state) {
  run_command(state, {"plan", "--help"});
}

BENCHMARK(AppendSingly)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BareSqliteSingly)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(AppendInBatches)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BareSqliteInBatches)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(ResumeFindsWhatIsUnfinished)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(StatusCommand)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(VersionCommand)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace qualify::run
