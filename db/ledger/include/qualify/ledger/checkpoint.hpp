#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"

struct evp_pkey_st;

/// Signed checkpoints of the log: C2SP tlog-checkpoint in a C2SP signed-note, Ed25519.
/// https://github.com/C2SP/C2SP/blob/main/tlog-checkpoint.md, …/signed-note.md
namespace qualify::ledger {

struct Checkpoint {
  std::string origin;      ///< the log's name, a bare host name
  std::uint64_t size = 0;  ///< leaves
  Digest root;
  bool operator==(const Checkpoint&) const = default;
};

/// Who signs a log: name and Ed25519 public key. Text form is the one of signed notes,
/// "<name>+<key id, 8 hex>+<base 64 of 0x01 and 32 key bytes>". Thread-safe.
class LogVerifier {
 public:
  /// Errors: invalid_input.
  [[nodiscard]] static Result<LogVerifier> parse(std::string_view text);
  [[nodiscard]] static Result<LogVerifier> from_raw(std::string name, std::string_view public_key);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string text() const;
  /// SHA-256(name || 0x0A || 0x01 || key), 32 bytes: the Sigstore log id; signatures have its first
  /// four bytes.
  [[nodiscard]] const std::string& id() const { return id_; }
  /// SubjectPublicKeyInfo bytes, for Sigstore's trusted root.
  [[nodiscard]] std::string spki_der() const;
  [[nodiscard]] bool verify(std::string_view message, std::string_view signature) const;

 private:
  LogVerifier() = default;
  std::string name_;
  std::string raw_;
  std::string id_;
  std::shared_ptr<evp_pkey_st> key_;
};

/// Signs checkpoints of one log. Thread-safe.
class LogSigner {
 public:
  /// Makes a fresh key: `file` (PKCS#8 PEM, 0600) and `file`.vkey (LogVerifier text, 0644).
  /// Errors: already_exists, invalid_input (name), io.
  [[nodiscard]] static Result<LogSigner> create(const std::filesystem::path& file,
                                                const std::string& name);
  /// Errors: not_found, invalid_input, refused (others may read it), integrity (the two files are
  /// not of one key).
  [[nodiscard]] static Result<LogSigner> load(const std::filesystem::path& file);

  [[nodiscard]] const LogVerifier& verifier() const { return verifier_; }
  /// The whole signed note. Errors: internal.
  [[nodiscard]] Result<std::string> sign(std::uint64_t size, const Digest& root) const;

 private:
  LogSigner(std::shared_ptr<evp_pkey_st> key, LogVerifier verifier)
      : key_(std::move(key)), verifier_(std::move(verifier)) {}
  std::shared_ptr<evp_pkey_st> key_;
  LogVerifier verifier_;
};

/// Reads a note that this verifier signed; other signatures on it are left alone.
/// Errors: integrity (no valid signature of it), invalid_input (not a checkpoint).
[[nodiscard]] Result<Checkpoint> open_checkpoint(std::string_view note,
                                                 const LogVerifier& verifier);

}  // namespace qualify::ledger
