#include "qualify/ledger/log.hpp"

#include <charconv>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "qualify/ledger/base64.hpp"
#include "qualify/ledger/merkle.hpp"

namespace qualify::ledger {

namespace {

constexpr const char* kKind = "hashedrekord";
constexpr const char* kVersion = "0.0.2";

std::string bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

Result<Digest> digest_from(std::string_view bytes) {
  if (bytes.size() != Digest::kBytes) {
    return fail(Errc::integrity, "a hash of the log does not have 32 bytes");
  }
  Digest::Bytes copy{};
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  return Digest(copy);
}

/// Adds leaves to the node table; statements are prepared once for many leaves.
class TreeWriter {
 public:
  static Result<TreeWriter> over(const journal::Database& database) {
    auto insert =
        database.prepare("INSERT INTO tree_node (level, position, hash) VALUES (?1, ?2, ?3)");
    if (!insert) return tl::unexpected(insert.error());
    auto select = database.prepare("SELECT hash FROM tree_node WHERE level = ?1 AND position = ?2");
    if (!select) return tl::unexpected(select.error());
    return TreeWriter(std::move(*insert), std::move(*select));
  }

  Result<void> add(std::int64_t position, Digest hash) {
    // A right child completes its parent: one insert for the leaf and one for each completed level.
    for (int level = 0;; ++level, position >>= 1) {
      if (auto kept = put(level, position, hash); !kept) return kept;
      if ((position & 1) == 0) return {};
      const auto left = get(level, position - 1);
      if (!left) return tl::unexpected(left.error());
      hash = merkle::node_hash(*left, hash);
    }
  }

 private:
  TreeWriter(journal::Statement insert, journal::Statement select)
      : insert_(std::move(insert)), select_(std::move(select)) {}

  Result<void> put(int level, std::int64_t position, const Digest& hash) {
    insert_.bind(1, level).bind(2, position).bind_blob(3, bytes_of(hash));
    auto done = insert_.step();
    insert_.reset();
    if (!done) return tl::unexpected(done.error());
    return {};
  }
  Result<Digest> get(int level, std::int64_t position) {
    select_.bind(1, level).bind(2, position);
    auto row = select_.step();
    if (!row) return tl::unexpected(row.error());
    auto hash = digest_from(*row ? select_.text(0) : std::string());
    select_.reset();
    return hash;
  }

  journal::Statement insert_;
  journal::Statement select_;
};

/// Node lookups over one prepared statement.
Result<merkle::NodeSource> nodes_of(const journal::Database& database) {
  auto select = database.prepare("SELECT hash FROM tree_node WHERE level = ?1 AND position = ?2");
  if (!select) return tl::unexpected(select.error());
  auto shared = std::make_shared<journal::Statement>(std::move(*select));
  return merkle::NodeSource([shared](int level, std::uint64_t index) -> Result<Digest> {
    shared->bind(1, level).bind(2, static_cast<std::int64_t>(index));
    auto row = shared->step();
    if (!row) return tl::unexpected(row.error());
    const std::string bytes = *row ? shared->text(0) : std::string();
    shared->reset();
    if (bytes.empty()) {
      return fail(Errc::integrity, "node " + std::to_string(index) + " of level " +
                                       std::to_string(level) + " of the log is missing");
    }
    return digest_from(bytes);
  });
}

Json hashes_json(const std::vector<Digest>& hashes) {
  Json list = Json::array();
  for (const Digest& hash : hashes) list.push_back(base64_encode(bytes_of(hash)));
  return list;
}

Result<std::uint64_t> number_in(const Json& object, const char* name) {
  const auto& text = object.at(name).get_ref<const std::string&>();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return fail(Errc::invalid_input, std::string(name) + " is no number");
  }
  return number;
}

SignedCheckpoint checkpoint_from(const journal::Statement& row) {
  SignedCheckpoint kept;
  kept.checkpoint.origin = row.text(0);
  kept.checkpoint.size = static_cast<std::uint64_t>(row.number(1));
  // The table's CHECK has the length; the audit compares with the signed note.
  kept.checkpoint.root = digest_from(row.text(2)).value_or(Digest());
  kept.time = Time(Duration(row.number(3)));
  kept.note = row.text(4);
  return kept;
}

}  // namespace

std::string leaf_of(const Envelope& envelope, const PublicKey& key) {
  const Digest signed_bytes =
      sha256(pre_authentication_encoding(envelope.payload_type, envelope.payload));
  return canonical_bytes(
      {{"apiVersion", kVersion},
       {"kind", kKind},
       {"spec",
        {{"hashedRekordV002",
          {{"data", {{"algorithm", "SHA2_256"}, {"digest", base64_encode(bytes_of(signed_bytes))}}},
           {"signature",
            {{"content", base64_encode(envelope.signature)},
             {"verifier",
              {{"keyDetails", "PKIX_ECDSA_P256_SHA_256"},
               {"publicKey", {{"rawBytes", base64_encode(key.spki_der())}}}}}}}}}}}});
}

Result<std::uint64_t> Log::size() const {
  auto select =
      database_->prepare("SELECT COALESCE(MAX(position) + 1, 0) FROM tree_node WHERE level = 0");
  if (!select) return tl::unexpected(select.error());
  if (auto row = select->step(); !row) return tl::unexpected(row.error());
  return static_cast<std::uint64_t>(select->number(0));
}

Result<void> Log::extend() {
  return database_->transaction([&]() -> Result<void> {
    const auto from = size();
    if (!from) return tl::unexpected(from.error());
    auto select = database_->prepare(
        "SELECT position, payload_type, payload, signature, key_id, pem FROM record "
        "LEFT JOIN public_key USING (key_id) WHERE position >= ?1 ORDER BY position");
    if (!select) return tl::unexpected(select.error());
    select->bind(1, static_cast<std::int64_t>(*from));
    auto writer = TreeWriter::over(*database_);
    if (!writer) return tl::unexpected(writer.error());
    std::map<std::string, PublicKey> keys;
    for (;;) {
      auto row = select->step();
      if (!row) return tl::unexpected(row.error());
      if (!*row) return {};
      const std::string id = select->text(4);
      auto key = keys.find(id);
      if (key == keys.end()) {
        auto parsed = PublicKey::parse_pem(select->text(5));
        if (!parsed)
          return fail(Errc::integrity, "record " + select->text(0) + " has no usable key");
        key = keys.emplace(id, std::move(*parsed)).first;
      }
      const Envelope envelope{select->text(1), select->text(2), select->text(3), id};
      const Digest leaf = merkle::leaf_hash(leaf_of(envelope, key->second));
      if (auto added = writer->add(select->number(0), leaf); !added) return added;
    }
  });
}

Result<Digest> Log::root(std::uint64_t size) const {
  const auto nodes = nodes_of(*database_);
  if (!nodes) return tl::unexpected(nodes.error());
  return merkle::root(size, *nodes);
}

Result<std::vector<Digest>> Log::prove_inclusion(std::uint64_t index, std::uint64_t size) const {
  const auto nodes = nodes_of(*database_);
  if (!nodes) return tl::unexpected(nodes.error());
  return merkle::inclusion_proof(index, size, *nodes);
}

Result<std::vector<Digest>> Log::prove_consistency(std::uint64_t old_size,
                                                   std::uint64_t size) const {
  const auto nodes = nodes_of(*database_);
  if (!nodes) return tl::unexpected(nodes.error());
  return merkle::consistency_proof(old_size, size, *nodes);
}

Result<SignedCheckpoint> Log::checkpoint(const LogSigner& signer, Time time) {
  SignedCheckpoint made;
  auto done = database_->transaction([&]() -> Result<void> {
    if (auto extended = extend(); !extended) return extended;
    const auto now = size();
    if (!now) return tl::unexpected(now.error());
    const auto head = root(*now);
    if (!head) return tl::unexpected(head.error());
    auto newest = latest();
    if (!newest) return tl::unexpected(newest.error());
    if (*newest) {
      // A log that was cut or rewritten must not get a signature on top of it.
      const Checkpoint& before = (*newest)->checkpoint;
      if (before.size > *now) {
        return fail(Errc::integrity,
                    "the log has " + std::to_string(*now) + " records, its newest checkpoint " +
                        std::to_string(before.size),
                    {}, "records were removed; see: qualify log verify");
      }
      const auto then = root(before.size);
      if (!then) return tl::unexpected(then.error());
      if (*then != before.root) {
        return fail(Errc::integrity, "the log is not the one that its newest checkpoint signed", {},
                    "records were changed; see: qualify log verify");
      }
      if (before.size == *now && before.origin == signer.verifier().name() &&
          open_checkpoint((*newest)->note, signer.verifier())) {
        made = std::move(**newest);
        return {};
      }
    }
    auto note = signer.sign(*now, *head);
    if (!note) return tl::unexpected(note.error());
    made = {{signer.verifier().name(), *now, *head}, time, std::move(*note)};
    auto insert = database_->prepare(
        "INSERT INTO checkpoint (origin, size, root, time, note) VALUES (?1, ?2, ?3, ?4, ?5)");
    if (!insert) return tl::unexpected(insert.error());
    insert->bind(1, made.checkpoint.origin).bind(2, static_cast<std::int64_t>(*now));
    insert->bind_blob(3, bytes_of(*head)).bind(4, time.time_since_epoch().count());
    insert->bind(5, made.note);
    if (auto row = insert->step(); !row) return tl::unexpected(row.error());
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  return made;
}

Result<std::vector<SignedCheckpoint>> Log::checkpoints() const {
  auto select =
      database_->prepare("SELECT origin, size, root, time, note FROM checkpoint ORDER BY id");
  if (!select) return tl::unexpected(select.error());
  std::vector<SignedCheckpoint> all;
  for (;;) {
    auto row = select->step();
    if (!row) return tl::unexpected(row.error());
    if (!*row) return all;
    all.push_back(checkpoint_from(*select));
  }
}

Result<std::optional<SignedCheckpoint>> Log::latest() const {
  auto select = database_->prepare(
      "SELECT origin, size, root, time, note FROM checkpoint ORDER BY id DESC LIMIT 1");
  if (!select) return tl::unexpected(select.error());
  auto row = select->step();
  if (!row) return tl::unexpected(row.error());
  if (!*row) return std::optional<SignedCheckpoint>();
  return std::optional<SignedCheckpoint>(checkpoint_from(*select));
}

Result<Json> Log::entry(const Record& record, const SignedCheckpoint& signed_root,
                        const LogVerifier& verifier) const {
  const auto index = static_cast<std::uint64_t>(record.index);
  if (index >= signed_root.checkpoint.size) {
    return fail(Errc::invalid_input, "the checkpoint is older than the record", {},
                "make a new one with: qualify log checkpoint");
  }
  const auto key = PublicKey::parse_pem(record.public_key_pem);
  if (!key) return tl::unexpected(key.error());
  const auto proof = prove_inclusion(index, signed_root.checkpoint.size);
  if (!proof) return tl::unexpected(proof.error());
  return Json{{"logIndex", std::to_string(index)},
              {"logId", {{"keyId", base64_encode(verifier.id())}}},
              {"kindVersion", {{"kind", kKind}, {"version", kVersion}}},
              // A log of our own has no witness of time: 0 is "none" to verifiers.
              {"integratedTime", "0"},
              {"inclusionProof",
               {{"logIndex", std::to_string(index)},
                {"rootHash", base64_encode(bytes_of(signed_root.checkpoint.root))},
                {"treeSize", std::to_string(signed_root.checkpoint.size)},
                {"hashes", hashes_json(*proof)},
                {"checkpoint", {{"envelope", signed_root.note}}}}},
              {"canonicalizedBody", base64_encode(leaf_of(record.envelope, *key))}};
}

Result<Checkpoint> verify_entry(const Json& entry, const Envelope& envelope, const PublicKey& key,
                                const LogVerifier& verifier) {
  try {
    if (entry.at("kindVersion") != Json{{"kind", kKind}, {"version", kVersion}}) {
      return fail(Errc::integrity, "the log entry is of another kind");
    }
    if (entry.at("logId").at("keyId") != base64_encode(verifier.id())) {
      return fail(Errc::integrity, "the log entry is of another log than " + verifier.name());
    }
    const std::string leaf = leaf_of(envelope, key);
    if (entry.at("canonicalizedBody") != base64_encode(leaf)) {
      return fail(Errc::integrity, "the log entry is of another statement");
    }
    const Json& inclusion = entry.at("inclusionProof");
    auto checkpoint = open_checkpoint(
        inclusion.at("checkpoint").at("envelope").get_ref<const std::string&>(), verifier);
    if (!checkpoint) return checkpoint;
    const auto index = number_in(inclusion, "logIndex");
    const auto size = number_in(inclusion, "treeSize");
    if (!index || !size) return fail(Errc::invalid_input, "the log entry has no numbers");
    if (entry.at("logIndex") != inclusion.at("logIndex") || *size != checkpoint->size ||
        inclusion.at("rootHash") != base64_encode(bytes_of(checkpoint->root))) {
      return fail(Errc::integrity, "the log entry contradicts its checkpoint");
    }
    std::vector<Digest> proof;
    for (const Json& text : inclusion.at("hashes")) {
      const auto bytes = base64_decode(text.get_ref<const std::string&>());
      const auto hash = bytes ? digest_from(*bytes) : tl::unexpected(bytes.error());
      if (!hash) return fail(Errc::integrity, "the log entry's proof is damaged");
      proof.push_back(*hash);
    }
    auto included =
        merkle::verify_inclusion(*index, *size, merkle::leaf_hash(leaf), proof, checkpoint->root);
    if (!included) return tl::unexpected(included.error());
    return checkpoint;
  } catch (const Json::exception& error) {
    return fail(Errc::invalid_input, std::string("not a log entry: ") + error.what());
  }
}

}  // namespace qualify::ledger
