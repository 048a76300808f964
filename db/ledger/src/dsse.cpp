#include "qualify/ledger/dsse.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "qualify/ledger/base64.hpp"

namespace qualify::ledger {

namespace {

constexpr const char* kBundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";

Unexpected fail_bundle(const std::string& what) {
  return fail(Errc::invalid_input, "not a bundle that this program takes: " + what, {},
              "docs/formats/certificate.md has the form");
}

/// Object with exactly these members, or an error that names the difference.
Result<void> has_members(const Json& object, const std::string& where,
                         const std::set<std::string>& required,
                         const std::set<std::string>& optional = {}) {
  if (!object.is_object()) return fail_bundle(where + " is no object");
  for (const std::string& name : required) {
    if (!object.contains(name)) return fail_bundle(where + " has no " + name);
  }
  for (const auto& [name, value] : object.items()) {
    if (required.count(name) == 0 && optional.count(name) == 0) {
      return fail_bundle(where + " has an unknown member " + name);
    }
  }
  return {};
}

Result<std::string> text_in(const Json& object, const char* name) {
  const Json& value = object.at(name);
  if (!value.is_string()) return fail_bundle(std::string(name) + " is no text");
  return value.get<std::string>();
}

Result<std::string> bytes_in(const Json& object, const char* name) {
  auto text = text_in(object, name);
  if (!text) return text;
  auto bytes = base64_decode(*text);
  if (!bytes) return fail_bundle(std::string(name) + ": " + bytes.error().message);
  return bytes;
}

}  // namespace

std::string pre_authentication_encoding(std::string_view type, std::string_view body) {
  std::string bytes = "DSSEv1 " + std::to_string(type.size()) + " ";
  bytes.append(type).append(" ").append(std::to_string(body.size())).append(" ").append(body);
  return bytes;
}

Result<Envelope> sign_envelope(const Signer& signer, std::string payload_type,
                               std::string payload) {
  auto signature = signer.sign(pre_authentication_encoding(payload_type, payload));
  if (!signature) return tl::unexpected(signature.error());
  return Envelope{std::move(payload_type), std::move(payload), std::move(*signature),
                  signer.public_key().key_id()};
}

Result<void> verify_envelope(const Envelope& envelope, const PublicKey& key) {
  if (envelope.key_id != key.key_id()) {
    return fail(Errc::integrity, "signed with another key (" + envelope.key_id.substr(0, 12) + ")",
                {}, "the key at hand is " + key.key_id().substr(0, 12));
  }
  if (!key.verify(pre_authentication_encoding(envelope.payload_type, envelope.payload),
                  envelope.signature)) {
    return fail(Errc::integrity, "the signature is not the key's over this content");
  }
  return {};
}

Json sigstore_bundle(const Envelope& envelope, const Json& log_entry) {
  Json entries = Json::array();
  if (!log_entry.is_null()) entries.push_back(log_entry);
  return {{"mediaType", kBundleType},
          {"verificationMaterial",
           {{"publicKey", {{"hint", envelope.key_id}}}, {"tlogEntries", std::move(entries)}}},
          {"dsseEnvelope",
           {{"payload", base64_encode(envelope.payload)},
            {"payloadType", envelope.payload_type},
            {"signatures", Json::array({{{"keyid", envelope.key_id},
                                         {"sig", base64_encode(envelope.signature)}}})}}}};
}

Result<Envelope> envelope_from_sigstore_bundle(const Json& bundle) {
  if (auto ok =
          has_members(bundle, "the bundle", {"mediaType", "verificationMaterial", "dsseEnvelope"});
      !ok) {
    return tl::unexpected(ok.error());
  }
  const auto media_type = text_in(bundle, "mediaType");
  if (!media_type) return tl::unexpected(media_type.error());
  if (*media_type != kBundleType) {
    return fail(Errc::unsupported, "a bundle of type '" + *media_type + "'", {},
                std::string("this program reads ") + kBundleType);
  }
  const Json& material = bundle.at("verificationMaterial");
  if (auto ok = has_members(material, "verificationMaterial", {"publicKey", "tlogEntries"}); !ok) {
    return tl::unexpected(ok.error());
  }
  if (auto ok = has_members(material.at("publicKey"), "publicKey", {"hint"}); !ok) {
    return tl::unexpected(ok.error());
  }
  auto hint = text_in(material.at("publicKey"), "hint");
  if (!hint) return tl::unexpected(hint.error());
  if (!material.at("tlogEntries").is_array() || material.at("tlogEntries").size() > 1) {
    return fail_bundle("tlogEntries is no list of at most one entry");
  }

  const Json& dsse = bundle.at("dsseEnvelope");
  if (auto ok = has_members(dsse, "dsseEnvelope", {"payload", "payloadType", "signatures"}); !ok) {
    return tl::unexpected(ok.error());
  }
  auto type = text_in(dsse, "payloadType");
  if (!type) return tl::unexpected(type.error());
  if (*type != kInTotoPayloadType) {
    return fail(Errc::unsupported, "a payload of type '" + *type + "'", {},
                std::string("this program reads ") + kInTotoPayloadType);
  }
  auto payload = bytes_in(dsse, "payload");
  if (!payload) return tl::unexpected(payload.error());
  const Json& signatures = dsse.at("signatures");
  if (!signatures.is_array() || signatures.size() != 1) {
    return fail_bundle("there is not exactly one signature");
  }
  if (auto ok = has_members(signatures.front(), "the signature", {"sig"}, {"keyid"}); !ok) {
    return tl::unexpected(ok.error());
  }
  auto signature = bytes_in(signatures.front(), "sig");
  if (!signature) return tl::unexpected(signature.error());
  if (signatures.front().contains("keyid") && signatures.front().at("keyid") != *hint) {
    return fail_bundle("keyid and publicKey.hint are different keys");
  }
  return Envelope{std::move(*type), std::move(*payload), std::move(*signature), std::move(*hint)};
}

}  // namespace qualify::ledger
