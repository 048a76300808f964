#include "qualify/ledger/checkpoint.hpp"

#include <openssl/pem.h>
#include <openssl/x509.h>

#include <charconv>
#include <vector>

#include "openssl.hpp"
#include "qualify/base/files.hpp"
#include "qualify/ledger/base64.hpp"
#include "secret_file.hpp"

namespace qualify::ledger {

namespace {

constexpr char kEd25519 = '\x01';  // signature type, C2SP signed-note
constexpr std::size_t kKeySize = 32;
constexpr std::size_t kSignatureSize = 64;
constexpr std::size_t kShortId = 4;
constexpr const char* kDash = "\xe2\x80\x94 ";  // em dash, space
constexpr std::size_t kMaxNote = 64U << 10U;

std::string bytes_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes().data()), Digest::kBytes};
}

std::string hex_of(std::string_view bytes) {
  return to_hex({reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

/// A bare host name: signed notes allow more, Sigstore's verifiers and URLs do not.
bool is_name(std::string_view name) {
  return !name.empty() && name.size() <= 253 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") ==
             std::string_view::npos &&
         name.front() != '.' && name.front() != '-';
}

fs::path public_file_of(const fs::path& file) {
  return file.string() + ".vkey";
}

Result<std::string> raw_public(EVP_PKEY* key, const fs::path& file) {
  std::string raw(kKeySize, '\0');
  std::size_t size = raw.size();
  if (EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key, reinterpret_cast<unsigned char*>(raw.data()), &size) != 1) {
    ERR_clear_error();
    return fail(Errc::invalid_input, "not an Ed25519 key", file.string());
  }
  return raw;
}

Unexpected fail_note(const std::string& what) {
  return fail(Errc::invalid_input, "not a checkpoint: " + what);
}

/// One line without its end; text loses it. False when there is no line end.
bool take_line(std::string_view& text, std::string_view& line) {
  const auto end = text.find('\n');
  if (end == std::string_view::npos) return false;
  line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return true;
}

Result<Checkpoint> read_body(std::string_view body) {
  std::string_view origin;
  std::string_view size;
  std::string_view root;
  if (!take_line(body, origin) || !take_line(body, size) || !take_line(body, root)) {
    return fail_note("fewer than three lines");
  }
  Checkpoint checkpoint;
  checkpoint.origin = origin;
  const auto [end, error] =
      std::from_chars(size.data(), size.data() + size.size(), checkpoint.size);
  const bool leading_zero = size.size() > 1 && size.front() == '0';
  if (error != std::errc() || end != size.data() + size.size() || leading_zero) {
    return fail_note("the size is no decimal number");
  }
  const auto hash = base64_decode(root);
  if (!hash || hash->size() != Digest::kBytes) return fail_note("the root is no SHA-256 hash");
  Digest::Bytes bytes{};
  std::copy(hash->begin(), hash->end(), bytes.begin());
  checkpoint.root = Digest(bytes);
  return checkpoint;
}

}  // namespace

Result<LogVerifier> LogVerifier::from_raw(std::string name, std::string_view public_key) {
  if (!is_name(name)) {
    return fail(Errc::invalid_input, "not a name for a log: '" + name + "'", {},
                "a bare host name, lower case: qualify.example.org");
  }
  if (public_key.size() != kKeySize) return fail(Errc::invalid_input, "not an Ed25519 public key");
  EVP_PKEY* raw = EVP_PKEY_new_raw_public_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(public_key.data()),
      public_key.size());
  if (raw == nullptr) return fail(Errc::invalid_input, "not an Ed25519 key: " + openssl_reason());
  LogVerifier verifier;
  verifier.key_ = std::shared_ptr<EVP_PKEY>(raw, FreeKey());
  verifier.raw_ = public_key;
  verifier.id_ = bytes_of(sha256(name + '\n' + kEd25519 + verifier.raw_));
  verifier.name_ = std::move(name);
  return verifier;
}

Result<LogVerifier> LogVerifier::parse(std::string_view text) {
  const auto bad = [] {
    return fail(Errc::invalid_input, "not a log's public key", {},
                "expected <name>+<8 hex>+<base 64>, as in keys/log.pem.vkey");
  };
  const auto first = text.find('+');
  if (first == std::string_view::npos) return bad();
  const auto second = text.find('+', first + 1);
  if (second == std::string_view::npos) return bad();
  const auto key = base64_decode(text.substr(second + 1));
  if (!key || key->size() != kKeySize + 1 || key->front() != kEd25519) return bad();
  auto verifier = from_raw(std::string(text.substr(0, first)), std::string_view(*key).substr(1));
  if (!verifier) return verifier;
  // The id makes a mistyped name or key visible.
  if (verifier->text() != text) return bad();
  return verifier;
}

std::string LogVerifier::text() const {
  return name_ + "+" + hex_of(std::string_view(id_).substr(0, kShortId)) + "+" +
         base64_encode(kEd25519 + raw_);
}

std::string LogVerifier::spki_der() const {
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key_.get(), &der);
  std::string bytes(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  return bytes;
}

bool LogVerifier::verify(std::string_view message, std::string_view signature) const {
  const DigestContext context(EVP_MD_CTX_new());
  const bool good =
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key_.get()) == 1 &&
      EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                       signature.size(), reinterpret_cast<const unsigned char*>(message.data()),
                       message.size()) == 1;
  if (!good) ERR_clear_error();
  return good;
}

Result<LogSigner> LogSigner::create(const std::filesystem::path& file, const std::string& name) {
  if (fs::exists(public_file_of(file))) {
    return fail(Errc::already_exists, "a key is there already", public_file_of(file).string(),
                "keys are never replaced; choose another name");
  }
  std::shared_ptr<EVP_PKEY> key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), FreeKey());
  if (!key) return fail(Errc::internal, "cannot make a key: " + openssl_reason());
  const auto raw = raw_public(key.get(), file);
  if (!raw) return tl::unexpected(raw.error());
  auto verifier = LogVerifier::from_raw(name, *raw);
  if (!verifier) return tl::unexpected(verifier.error());
  const SecretBio pem;
  if (PEM_write_bio_PKCS8PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) !=
      1) {
    return fail(Errc::internal, "cannot write a key: " + openssl_reason());
  }
  if (auto done = write_new_secret(file, pem.view()); !done) return tl::unexpected(done.error());
  if (auto done = write_file_atomic(public_file_of(file), verifier->text() + "\n"); !done) {
    return tl::unexpected(done.error());
  }
  return LogSigner(std::move(key), std::move(*verifier));
}

Result<LogSigner> LogSigner::load(const std::filesystem::path& file) {
  const auto fd = open_secret(file);
  if (!fd) return tl::unexpected(fd.error());
  const Bio bio(BIO_new_fd(fd->get(), BIO_NOCLOSE));
  std::shared_ptr<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr),
                                FreeKey());
  if (!key) {
    return fail(Errc::invalid_input, "not a PEM private key: " + openssl_reason(), file.string());
  }
  const auto raw = raw_public(key.get(), file);
  if (!raw) return tl::unexpected(raw.error());
  auto text = read_file(public_file_of(file), kMaxNote);
  if (!text) return tl::unexpected(text.error());
  while (!text->empty() && text->back() == '\n') text->pop_back();
  auto named = LogVerifier::parse(*text);
  if (!named) return tl::unexpected(named.error());
  auto verifier = LogVerifier::from_raw(named->name(), *raw);
  if (!verifier) return tl::unexpected(verifier.error());
  if (verifier->text() != *text) {
    return fail(Errc::integrity, "the log's private and public key do not belong together",
                file.string());
  }
  return LogSigner(std::move(key), std::move(*verifier));
}

Result<std::string> LogSigner::sign(std::uint64_t size, const Digest& root) const {
  const std::string body =
      verifier_.name() + "\n" + std::to_string(size) + "\n" + base64_encode(bytes_of(root)) + "\n";
  const DigestContext context(EVP_MD_CTX_new());
  std::string signature(kSignatureSize, '\0');
  std::size_t length = signature.size();
  if (EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &length,
                     reinterpret_cast<const unsigned char*>(body.data()), body.size()) != 1 ||
      length != kSignatureSize) {
    return fail(Errc::internal, "cannot sign: " + openssl_reason());
  }
  return body + "\n" + kDash + verifier_.name() + " " +
         base64_encode(verifier_.id().substr(0, kShortId) + signature) + "\n";
}

Result<Checkpoint> open_checkpoint(std::string_view note, const LogVerifier& verifier) {
  if (note.size() > kMaxNote) return fail_note("too long");
  // The last empty line parts text and signatures: the text itself may have empty lines.
  const auto gap = note.rfind("\n\n");
  if (gap == std::string_view::npos) return fail_note("no signatures");
  const std::string_view body = note.substr(0, gap + 1);
  std::string_view rest = note.substr(gap + 2);
  bool good = false;
  std::string_view line;
  while (!rest.empty()) {
    if (!take_line(rest, line) || !line.starts_with(kDash))
      return fail_note("a bad signature line");
    line.remove_prefix(std::string_view(kDash).size());
    const auto space = line.find(' ');
    if (space == std::string_view::npos) return fail_note("a bad signature line");
    const auto bytes = base64_decode(line.substr(space + 1));
    if (!bytes || bytes->size() <= kShortId) return fail_note("a bad signature line");
    if (line.substr(0, space) != verifier.name() ||
        bytes->compare(0, kShortId, verifier.id(), 0, kShortId) != 0) {
      continue;
    }
    if (!verifier.verify(body, std::string_view(*bytes).substr(kShortId))) {
      return fail(Errc::integrity, "the checkpoint's signature is wrong");
    }
    good = true;
  }
  if (!good) return fail(Errc::integrity, "the checkpoint is not signed by " + verifier.name());
  auto checkpoint = read_body(body);
  if (!checkpoint) return checkpoint;
  if (checkpoint->origin != verifier.name()) {
    return fail(Errc::integrity, "the checkpoint is of another log: " + checkpoint->origin);
  }
  return checkpoint;
}

}  // namespace qualify::ledger
