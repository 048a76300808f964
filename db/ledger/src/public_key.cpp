#include <openssl/pem.h>
#include <openssl/x509.h>

#include "openssl.hpp"
#include "qualify/base/files.hpp"
#include "qualify/ledger/signer.hpp"

namespace qualify::ledger {

namespace {

// SubjectPublicKeyInfo of a P-256 key, up to the 64 bytes of the point (RFC 5480): ecPublicKey,
// named curve prime256v1, bit string, uncompressed. Anything else is another spelling of the same
// key, and a key has one id.
constexpr std::string_view kPrefix(
    "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07"
    "\x03\x42\x00\x04",
    27);
constexpr std::size_t kDerSize = 27 + 64;

Unexpected fail_key(const std::string& why) {
  return fail(Errc::invalid_input, "not an ECDSA P-256 public key: " + why, {},
              "make one with: openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256");
}

std::string pem_of(EVP_PKEY* key) {
  const Bio bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), key);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

Result<PublicKey> PublicKey::parse_der(std::string_view der) {
  if (der.size() != kDerSize || !der.starts_with(kPrefix)) {
    return fail_key("another algorithm, curve or encoding");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  EVP_PKEY* raw = d2i_PUBKEY(nullptr, &bytes, static_cast<long>(der.size()));
  if (raw == nullptr) return fail_key(openssl_reason());
  PublicKey key;
  key.key_ = std::shared_ptr<EVP_PKEY>(raw, FreeKey());
  key.der_ = std::string(der);
  key.pem_ = pem_of(raw);
  key.key_id_ = sha256(der).hex();
  return key;
}

Result<PublicKey> PublicKey::parse_pem(std::string_view pem) {
  const Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  char* name = nullptr;
  char* header = nullptr;
  unsigned char* data = nullptr;
  long size = 0;
  if (PEM_read_bio(bio.get(), &name, &header, &data, &size) != 1) {
    return fail_key(openssl_reason());
  }
  const bool right_kind = std::string_view(name) == PEM_STRING_PUBLIC;
  const std::string kind = name;
  const std::string der(reinterpret_cast<char*>(data), static_cast<std::size_t>(size));
  OPENSSL_free(name);
  OPENSSL_free(header);
  OPENSSL_free(data);
  if (!right_kind) return fail_key("the file holds a " + kind);
  return parse_der(der);
}

bool PublicKey::verify(std::string_view message, std::string_view signature) const {
  const DigestContext context(EVP_MD_CTX_new());
  // ECDSA_verify encodes the signature again and compares: BER, trailing bytes and raw r||s fail.
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                       message.size()) == 1;
  if (!good) ERR_clear_error();
  return good;
}

Result<PublicKey> load_public_key(const std::filesystem::path& file) {
  const auto pem = read_file(file, 64U << 10U);
  if (!pem) return tl::unexpected(pem.error());
  auto key = PublicKey::parse_pem(*pem);
  if (!key) {
    Error error = key.error();
    error.context = file.string();
    return tl::unexpected(std::move(error));
  }
  return key;
}

}  // namespace qualify::ledger
