#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"

namespace qualify::ledger {

/// ECDSA P-256 public key. Text form: PEM SubjectPublicKeyInfo.
class PublicKey {
 public:
  /// Errors: invalid_input (not PEM, not P-256).
  [[nodiscard]] static Result<PublicKey> parse_pem(std::string_view pem);
  [[nodiscard]] const std::string& pem() const { return pem_; }
  [[nodiscard]] const std::string& spki_der() const {
    return der_;
  }  ///< SubjectPublicKeyInfo bytes
  /// SHA-256 of spki_der(), hex: the hint in envelopes and bundles.
  [[nodiscard]] std::string key_id() const { return sha256(der_).hex(); }
  /// ECDSA over SHA-256 of `message`; `signature` is DER, strictly encoded.
  [[nodiscard]] bool verify(std::string_view message, std::string_view signature) const;

 private:
  std::string pem_;
  std::string der_;
};

/// Signs; the private key never leaves it. Thread-safe.
class Signer {
 public:
  virtual ~Signer() = default;
  [[nodiscard]] virtual const PublicKey& public_key() const = 0;
  /// ECDSA P-256 with SHA-256, DER. Errors: io, internal.
  [[nodiscard]] virtual Result<std::string> sign(std::string_view message) const = 0;
};

/// Makes a fresh key: `file` (PKCS#8 PEM, mode 0600) and `file`.pub. Errors: already_exists, io.
[[nodiscard]] Result<std::unique_ptr<Signer>> create_key(const std::filesystem::path& file);
/// Errors: not_found, invalid_input, refused (readable or writable by group or others).
[[nodiscard]] Result<std::unique_ptr<Signer>> load_key(const std::filesystem::path& file);

}  // namespace qualify::ledger
