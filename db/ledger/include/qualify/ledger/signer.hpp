#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"

struct evp_pkey_st;

namespace qualify::ledger {

/// ECDSA P-256 public key. Text form: PEM SubjectPublicKeyInfo. Copies share one parsed key.
/// Thread-safe.
class PublicKey {
 public:
  /// Errors: invalid_input (not PEM, not P-256 as a named curve with an uncompressed point).
  [[nodiscard]] static Result<PublicKey> parse_pem(std::string_view pem);
  /// The same from SubjectPublicKeyInfo bytes.
  [[nodiscard]] static Result<PublicKey> parse_der(std::string_view der);

  [[nodiscard]] const std::string& pem() const { return pem_; }
  /// SubjectPublicKeyInfo bytes.
  [[nodiscard]] const std::string& spki_der() const { return der_; }
  /// SHA-256 of spki_der(), hex: the hint in envelopes and bundles.
  [[nodiscard]] const std::string& key_id() const { return key_id_; }
  /// ECDSA over SHA-256 of `message`; `signature` is DER, strictly encoded.
  [[nodiscard]] bool verify(std::string_view message, std::string_view signature) const;

 private:
  PublicKey() = default;
  std::string pem_;
  std::string der_;
  std::string key_id_;
  std::shared_ptr<evp_pkey_st> key_;
};

/// Signs; the private key never leaves it. Thread-safe.
class Signer {
 public:
  virtual ~Signer() = default;
  [[nodiscard]] virtual const PublicKey& public_key() const = 0;
  /// ECDSA P-256 with SHA-256, DER. Errors: io, internal.
  [[nodiscard]] virtual Result<std::string> sign(std::string_view message) const = 0;
};

/// Asks for the passphrase of a key file; called only for an encrypted key.
/// Errors: those of the terminal; interrupted.
using AskPassphrase = std::function<Result<std::string>(const std::filesystem::path& file)>;

/// Makes a fresh key: `file` (PKCS#8 PEM, mode 0600) and `file`.pub (PEM, 0644); encrypted
/// (PBES2, AES-256-CBC) when a passphrase is given. Neither file is ever replaced.
/// Errors: already_exists, io, no_space.
[[nodiscard]] Result<std::unique_ptr<Signer>> create_key(const std::filesystem::path& file,
                                                         const std::string& passphrase = {});
/// Errors: not_found, invalid_input (not a key, wrong curve, wrong passphrase, encrypted without
/// `ask`), refused (readable or writable by group or others, or not a regular file).
[[nodiscard]] Result<std::unique_ptr<Signer>> load_key(const std::filesystem::path& file,
                                                       const AskPassphrase& ask = {});
/// A key that some OpenSSL provider keeps, by its URI (RFC 7512 "pkcs11:…"); the private half may
/// never leave its token. `ask` is asked for a PIN. Errors: invalid_input (no provider for such
/// URIs, no key there, wrong curve, wrong PIN).
[[nodiscard]] Result<std::unique_ptr<Signer>> load_key_from_store(const std::string& uri,
                                                                  const AskPassphrase& ask = {});
/// A public key from its PEM file. Errors: not_found, invalid_input.
[[nodiscard]] Result<PublicKey> load_public_key(const std::filesystem::path& file);

}  // namespace qualify::ledger
