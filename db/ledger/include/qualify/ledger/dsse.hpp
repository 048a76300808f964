#pragma once

#include <string>
#include <string_view>

#include "qualify/base/json.hpp"
#include "qualify/ledger/signer.hpp"

namespace qualify::ledger {

inline constexpr const char* kInTotoPayloadType = "application/vnd.in-toto+json";

/// A DSSE v1 envelope (secure-systems-lab/dsse) with exactly one signature.
struct Envelope {
  std::string payload_type;
  std::string payload;    ///< raw bytes, not base64
  std::string signature;  ///< DER
  std::string key_id;
};

/// Pre-authentication encoding: "DSSEv1 " len(type) " " type " " len(body) " " body.
[[nodiscard]] std::string pre_authentication_encoding(std::string_view type, std::string_view body);

[[nodiscard]] Result<Envelope> sign_envelope(const Signer& signer, std::string payload_type,
                                             std::string payload);
/// Errors: integrity when the signature is not the key's over this type and payload.
[[nodiscard]] Result<void> verify_envelope(const Envelope& envelope, const PublicKey& key);

/// Sigstore bundle v0.3 (application/vnd.dev.sigstore.bundle.v0.3+json) around the envelope,
/// publicKey hint = key id; `log_entry` is tlogEntries[0], or null for none.
[[nodiscard]] Json sigstore_bundle(const Envelope& envelope, const Json& log_entry);
/// Strict: canonical base64, one signature, known payload type. Errors: invalid_input, unsupported.
[[nodiscard]] Result<Envelope> envelope_from_sigstore_bundle(const Json& bundle);

}  // namespace qualify::ledger
