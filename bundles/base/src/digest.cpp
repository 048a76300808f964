#include "qualify/base/digest.hpp"

#include <openssl/evp.h>

#include <new>

namespace qualify {

namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

Result<Digest> Digest::parse(std::string_view text) {
  const std::string_view whole = text;
  constexpr std::string_view prefix = "sha256:";
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  Bytes bytes{};
  bool good = text.size() == 2 * kBytes;
  for (std::size_t i = 0; good && i < kBytes; ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    good = high >= 0 && low >= 0;
    bytes[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  if (!good) {
    return fail(Errc::invalid_input, "not a SHA-256 digest: '" + std::string(whole) + "'", {},
                "expected sha256: and 64 lower-case hexadecimal digits");
  }
  return Digest(bytes);
}

std::string Digest::hex() const {
  return to_hex(bytes_);
}

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

namespace {

/// Looked up once: OpenSSL 3 searches its providers at each use of EVP_sha256(), which for a small
/// file takes longer than to hash it.
const EVP_MD* algorithm() {
  static const EVP_MD* const fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return fetched != nullptr ? fetched : EVP_sha256();
}

}  // namespace

struct Sha256::Context {
  EVP_MD_CTX* evp = EVP_MD_CTX_new();
  Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() { EVP_MD_CTX_free(evp); }
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  // SHA-256 is in OpenSSL's default provider; failing here means that no memory is left.
  if (context_->evp == nullptr || EVP_DigestInit_ex(context_->evp, algorithm(), nullptr) != 1) {
    throw std::bad_alloc();
  }
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> data) {
  EVP_DigestUpdate(context_->evp, data.data(), data.size());
}

Digest Sha256::finish() {
  Digest::Bytes bytes{};
  EVP_DigestFinal_ex(context_->evp, bytes.data(), nullptr);
  return Digest(bytes);
}

Digest sha256(std::string_view data) {
  Sha256 hash;
  hash.update(data);
  return hash.finish();
}

}  // namespace qualify
