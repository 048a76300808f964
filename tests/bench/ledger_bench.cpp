// The ledger at 10,000 certificates of about 3.5 KiB. Peers in the same run: OpenSSL's bare P-256
// verification and signature, which is the least that a verified or an appended certificate can
// cost.
#include <benchmark/benchmark.h>
#include <openssl/evp.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "qualify/ledger/log.hpp"
#include "qualify/ledger/merkle.hpp"
#include "support/fake_clock.hpp"
#include "support/temp_folder.hpp"

namespace qualify::ledger {
namespace {

constexpr int kCertificates = 10'000;
constexpr unsigned kThreads = 2;

Json statement(int number, const Digest& bundle) {
  Json evidence = Json::array();
  for (int run = 0; run < 8; ++run) {
    evidence.push_back({{"run", "a" + std::to_string(run)},
                        {"arm", "deterministic"},
                        {"attempt", 1},
                        {"evidence", sha256(std::to_string(number * 8 + run)).str()},
                        {"job", std::to_string(100000 + number)},
                        {"nodes", {"gpu0001", "gpu0002", "gpu0003", "gpu0004", "gpu0005"}}});
  }
  return {{"_type", "https://in-toto.io/Statement/v1"},
          {"subject", Json::array({{{"name", "toy"}, {"digest", {{"sha256", bundle.hex()}}}}})},
          {"predicateType", "https://in-toto.io/attestation/test-result/v0.1"},
          {"predicate",
           {{"result", "PASSED"},
            {"qualify",
             {{"evidence", std::move(evidence)},
              {"number", number},
              {"text", std::string(1200, 'x')}}}}}};
}

class State {
 public:
  State() { append(kCertificates); }

  void append(int count) {
    const auto done = database.transaction([&]() -> Result<void> {
      for (int i = 0; i < count; ++i) {
        auto record = Ledger(database).append(*signer, RecordKind::certificate, "det", bundle,
                                              clock.now(), statement(next++, bundle));
        if (!record) return tl::unexpected(record.error());
      }
      return {};
    });
    if (!done) std::abort();
  }

  test::TempFolder folder;
  test::FakeClock clock;
  journal::Database database = journal::Database::open(folder / "a.db").value();
  std::unique_ptr<Signer> signer = create_key(folder / "key.pem").value();
  LogSigner log_signer = LogSigner::create(folder / "log.pem", "qualify.example.org").value();
  Digest bundle = sha256("bundle");
  int next = 0;
};

State& state() {
  static State shared;
  return shared;
}

void peer_p256_verify(benchmark::State& run) {
  const auto& signer = *state().signer;
  const std::string message(3500, 'x');
  const std::string signature = signer.sign(message).value();
  for (auto _ : run) {
    if (!signer.public_key().verify(message, signature)) std::abort();
  }
  run.SetItemsProcessed(run.iterations());
}
BENCHMARK(peer_p256_verify);

void peer_p256_sign(benchmark::State& run) {
  const std::string message(3500, 'x');
  for (auto _ : run) benchmark::DoNotOptimize(state().signer->sign(message).value());
  run.SetItemsProcessed(run.iterations());
}
BENCHMARK(peer_p256_sign);

/// Everything of 10,000 certificates, on two threads: signatures, canonical form, columns, leaves,
/// tree nodes, checkpoints. The bar is 5,000 certificates/s.
void audit(benchmark::State& run) {
  (void)Log(state().database).checkpoint(state().log_signer, state().clock.now()).value();
  std::uint64_t records = 0;
  for (auto _ : run) {
    const LogAudit result =
        audit_log(state().database, state().log_signer.verifier(), {}, kThreads);
    if (!result.faults.empty()) std::abort();
    records += result.size;
  }
  run.SetItemsProcessed(static_cast<std::int64_t>(records));
}
BENCHMARK(audit)->UseRealTime()->Unit(benchmark::kMillisecond);

/// One transaction of 1,000 signed appends, synced to disk. The bar is 1,000/s.
void append_batch(benchmark::State& run) {
  for (auto _ : run) state().append(1000);
  run.SetItemsProcessed(run.iterations() * 1000);
}
BENCHMARK(append_batch)->UseRealTime()->Unit(benchmark::kMillisecond)->Iterations(3);

/// The bar is 1 ms.
void inclusion_proof(benchmark::State& run) {
  const Log log(state().database);
  const std::uint64_t size = log.size().value();
  std::uint64_t index = 0;
  for (auto _ : run) {
    benchmark::DoNotOptimize(log.prove_inclusion(index, size).value());
    index = (index + 7919) % size;
  }
}
BENCHMARK(inclusion_proof)->Unit(benchmark::kMicrosecond);

void verify_inclusion(benchmark::State& run) {
  const Log log(state().database);
  const std::uint64_t size = log.size().value();
  const Record record = Ledger(state().database).records()->at(4711);
  const Digest leaf = merkle::leaf_hash(leaf_of(record.envelope, state().signer->public_key()));
  const auto proof = log.prove_inclusion(4711, size).value();
  const Digest root = log.root(size).value();
  for (auto _ : run) {
    if (!merkle::verify_inclusion(4711, size, leaf, proof, root)) std::abort();
  }
}
BENCHMARK(verify_inclusion)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace qualify::ledger
