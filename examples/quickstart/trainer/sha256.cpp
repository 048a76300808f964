#include "sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <iterator>
#include <memory>
#include <stdexcept>

namespace quickstart {

std::string sha256_hex(std::initializer_list<std::span<const std::byte>> parts) {
  // Fetched once: looking the algorithm up costs more than hashing a scalar.
  static const std::unique_ptr<EVP_MD, void (*)(EVP_MD*)> algorithm(
      EVP_MD_fetch(nullptr, "SHA256", nullptr), EVP_MD_free);
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  bool ok = algorithm && context && EVP_DigestInit_ex2(context.get(), algorithm.get(), nullptr);
  for (const auto part : parts) {
    ok = ok && EVP_DigestUpdate(context.get(), part.data(), part.size());
  }
  std::array<unsigned char, 32> digest{};
  if (!ok || !EVP_DigestFinal_ex(context.get(), digest.data(), nullptr)) {
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  }
  std::string hex;
  for (const unsigned char byte : digest) {
    fmt::format_to(std::back_inserter(hex), "{:02x}", byte);
  }
  return hex;
}

}  // namespace quickstart
