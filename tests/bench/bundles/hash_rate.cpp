// hash_rate [SECONDS]
//
// OpenSSL's EVP SHA-256 over 1 MiB pieces in memory, in bytes a second: on one thread, and on as
// many threads as there are processors. Prints both numbers: the limit that sealing and verifying
// are held against.
#include <openssl/evp.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

double rate(unsigned threads, double seconds) {
  constexpr std::size_t kPiece = 1U << 20U;
  std::atomic<std::uint64_t> pieces{0};
  std::atomic<bool> stop{false};
  const auto begin = std::chrono::steady_clock::now();
  {
    std::vector<std::jthread> running;
    for (unsigned i = 0; i < threads; ++i) {
      running.emplace_back([&] {
        const std::vector<unsigned char> piece(kPiece, 'x');
        const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                         EVP_MD_CTX_free);
        EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr);
        while (!stop) {
          EVP_DigestUpdate(context.get(), piece.data(), piece.size());
          ++pieces;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    stop = true;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  return static_cast<double>(pieces * kPiece) / took.count();
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::strtod(argv[1], nullptr) : 1.0;
  const unsigned processors = std::max(1U, std::thread::hardware_concurrency());
  std::printf("%.0f %.0f %u\n", rate(1, seconds), rate(processors, seconds), processors);
  return 0;
}
