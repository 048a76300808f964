// A state with 10,000 certificates, through the commands: `status`, `verify`.
//
// One gate is run for real on a scripted cluster; what it left is what all the others rest on, each
// with a plan, events and a signed certificate of its own. Peers in the same run: for `verify` the
// bare P-256 verifications that it cannot do without, by OpenSSL on one core; for `status` a
// process that only prints its help.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/ledger/signer.hpp"
#include "qualify/run/qualification.hpp"
#include "support/engine.hpp"
#include "support/fake_clock.hpp"
#include "support/program.hpp"
#include "support/temp_folder.hpp"

namespace qualify::run {
namespace {

constexpr int kGates = 50;
constexpr int kEach = 200;  // certificates of each gate

/// Made once.
class Certified {
 public:
  Certified() {
    bundle_ = test::make_state(folder.path());
    auto state = open_state(folder / "state").value();
    const auto signer = ledger::load_key(state.paths.signing_key()).value();
    const auto reservation = test::night(clock_.now(), clock_.now() + std::chrono::hours(12));
    scheduler::Fake cluster(
        test::cluster_of(reservation), clock_, [this](const auto& request, const auto& job) {
          test::leave_result(request, job, clock_.now(), test::metrics_line(clock_.now()));
        });
    const Ports ports{
        cluster, *signer, clock_, [] { return Stop::none; }, [](const auto&) {}, "/usr/bin/qualify",
        {}};
    const auto first = qualify_gate(
        state, {test::repeat_gate("gate-0"), bundle_, test::grant_of(reservation, "gate-0")},
        ports);
    if (!first || first->certificate.empty()) std::abort();
    const auto record = ledger::Ledger(state.database).find(first->certificate).value();
    statement_ = parse_json(record.envelope.payload, "certificate").value();
    statement_["predicate"].erase("record");
    events_ = journal::Journal(state.database).events(first->state.name).value();
    const auto sealed = store::load(state.bundles, bundle_).value();
    std::string gates = "schema_version: 1\ngates:\n";
    for (int gate = 0; gate < kGates; ++gate) {
      gates += "  gate-" + std::to_string(gate) +
               ": {kind: repeatability, arm: det, metrics: [lm loss], run_limit: 5m}\n";
    }
    if (!write_file_atomic(folder / "qualification.yaml", gates)) std::abort();
    const auto done = state.database.transaction([&]() -> Result<void> {
      for (int number = 0; number < kEach; ++number) {
        for (int gate = 0; gate < kGates; ++gate) {
          const auto declared = test::repeat_gate("gate-" + std::to_string(gate));
          const auto plan =
              plan::expand(declared, sealed, test::grant_of(reservation, declared.name)).value();
          add(state, *signer, declared, plan);
        }
      }
      return {};
    });
    if (!done || !sign_checkpoint(state, clock_.now())) std::abort();
  }

  test::TempFolder folder;

 private:
  void add(State& state, const ledger::Signer& signer, const policy::Gate& gate,
           const plan::Plan& plan) {
    journal::Journal journal(state.database);
    clock_.advance(std::chrono::seconds(1));
    const auto name = journal
                          .start_qualification(clock_.now(), gate.name, plan.bundle, plan.policy,
                                               to_json(plan), to_json(gate))
                          .value();
    Json statement = statement_;
    Json& own = statement["predicate"]["qualify"];
    own["gate"] = gate.name;
    own["qualification"] = name;
    own["plan"] = plan::plan_digest(plan).str();
    own["policy"] = {{"digest", plan.policy.str()}, {"gate", to_json(gate)}};
    const auto record = ledger::Ledger(state.database)
                            .append(signer, ledger::RecordKind::certificate, gate.name, plan.bundle,
                                    clock_.now(), statement)
                            .value();
    for (const journal::Event& event : events_) {
      if (event.kind == event::kPlanCreated) continue;
      Json payload = parse_json(event.payload, "event").value();
      if (event.kind == event::kCertificate) payload = {{"id", record.id}};
      if (!journal.append(clock_.now(), name, event.run, event.attempt, event.kind, payload)) {
        std::abort();
      }
    }
  }

  test::FakeClock clock_;
  Digest bundle_;
  Json statement_;
  std::vector<journal::Event> events_;
};

const Certified& certified() {
  static const Certified all;
  return all;
}

void command(benchmark::State& state, const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{QUALIFY_PROGRAM, "--state",
                                (certified().folder / "state").string()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  for (auto _ : state) {
    const auto ran = test::run_program(argv);
    if (ran.exit_code != 0) return state.SkipWithError(ran.output.c_str());
  }
  state.SetItemsProcessed(state.iterations() * kGates * kEach);
}
void StatusOfCertificates(benchmark::State& state) {
  command(state, {"status", "--file", (certified().folder / "qualification.yaml").string()});
}
void HelpCommand(benchmark::State& state) {
  command(state, {"status", "--help"});
}
void VerifyCertificates(benchmark::State& state) {
  command(state, {"verify", "--file", (certified().folder / "qualification.yaml").string()});
}

/// What a verification of as many signatures costs at least, on one core.
void BareVerifications(benchmark::State& state) {
  const test::TempFolder folder;
  const auto signer = ledger::create_key(folder / "key.pem").value();
  const std::string text(4096, 'x');
  const std::string signature = signer->sign(text).value();
  for (auto _ : state) {
    if (!signer->public_key().verify(text, signature)) std::abort();
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK(StatusOfCertificates)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(HelpCommand)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(VerifyCertificates)->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(BareVerifications)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace qualify::run
