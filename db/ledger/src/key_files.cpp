#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/store.h>
#include <openssl/ui.h>
#include <openssl/x509.h>
#include "qualify/base/files.hpp"
#include "qualify/ledger/signer.hpp"
#include "secret_file.hpp"

namespace qualify::ledger {

namespace {

class KeySigner final : public Signer {
 public:
  KeySigner(Key key, PublicKey public_key)
      : key_(std::move(key)), public_key_(std::move(public_key)) {}

  [[nodiscard]] const PublicKey& public_key() const override { return public_key_; }

  [[nodiscard]] Result<std::string> sign(std::string_view message) const override {
    const DigestContext context(EVP_MD_CTX_new());
    const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
    std::size_t size = 0;
    if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key_.get()) != 1 ||
        EVP_DigestSign(context.get(), nullptr, &size, bytes, message.size()) != 1) {
      return fail(Errc::internal, "cannot sign: " + openssl_reason());
    }
    std::string signature(size, '\0');
    if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                       bytes, message.size()) != 1) {
      return fail(Errc::internal, "cannot sign: " + openssl_reason());
    }
    signature.resize(size);  // DER: shorter when r or s has leading zeros
    return signature;
  }

 private:
  Key key_;
  PublicKey public_key_;
};

Result<std::unique_ptr<Signer>> signer_of(Key key) {
  unsigned char* der = nullptr;
  // Named curve and uncompressed point, however the file spelled them: PublicKey takes nothing
  // else.
  EVP_PKEY_set_utf8_string_param(key.get(), OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT,
                                 "uncompressed");
  const int size = i2d_PUBKEY(key.get(), &der);
  if (size <= 0) return fail(Errc::invalid_input, "not a usable key: " + openssl_reason());
  const std::string bytes(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  auto public_key = PublicKey::parse_der(bytes);
  if (!public_key) return tl::unexpected(public_key.error());
  return std::make_unique<KeySigner>(std::move(key), std::move(*public_key));
}

struct Passphrase {
  const AskPassphrase* ask;
  const fs::path* file;
  bool wanted = false;
  std::string given;
  std::string why_not;
  ~Passphrase() { OPENSSL_cleanse(given.data(), given.size()); }
};

extern "C" int give_passphrase(char* buffer, int size, int /*writing*/, void* data) {
  auto& passphrase = *static_cast<Passphrase*>(data);
  passphrase.wanted = true;
  if (!*passphrase.ask) return -1;
  auto given = (*passphrase.ask)(*passphrase.file);
  if (!given) {
    passphrase.why_not = given.error().message;
    return -1;
  }
  passphrase.given = std::move(*given);
  if (passphrase.given.size() > static_cast<std::size_t>(size)) return -1;
  passphrase.given.copy(buffer, passphrase.given.size());
  return static_cast<int>(passphrase.given.size());
}

Unexpected no_key(const Passphrase& passphrase, const std::string& where, const std::string& what) {
  if (passphrase.wanted && passphrase.given.empty()) {
    return fail(Errc::invalid_input,
                "the key is encrypted and no passphrase was given" +
                    (passphrase.why_not.empty() ? "" : ": " + passphrase.why_not),
                where);
  }
  if (passphrase.wanted) {
    return fail(Errc::invalid_input, "wrong passphrase, or a damaged key", where);
  }
  return fail(Errc::invalid_input, what, where);
}

struct CloseStore {
  void operator()(OSSL_STORE_CTX* store) const { OSSL_STORE_close(store); }
};

}  // namespace

Result<std::unique_ptr<Signer>> load_key_from_store(const std::string& uri,
                                                    const AskPassphrase& ask) {
  const fs::path shown = uri;
  Passphrase passphrase{&ask, &shown, false, {}, {}};
  const std::unique_ptr<UI_METHOD, void (*)(UI_METHOD*)> asking(
      UI_UTIL_wrap_read_pem_callback(give_passphrase, 0), UI_destroy_method);
  const std::unique_ptr<OSSL_STORE_CTX, CloseStore> store(
      OSSL_STORE_open(uri.c_str(), asking.get(), &passphrase, nullptr, nullptr));
  if (!store) {
    return fail(Errc::invalid_input, "cannot open the key: " + openssl_reason(), uri,
                "a PKCS#11 key needs an OpenSSL provider (docs/operations.md)");
  }
  while (OSSL_STORE_eof(store.get()) == 0) {
    OSSL_STORE_INFO* found = OSSL_STORE_load(store.get());
    if (found == nullptr) break;
    Key key(OSSL_STORE_INFO_get_type(found) == OSSL_STORE_INFO_PKEY
                ? OSSL_STORE_INFO_get1_PKEY(found)
                : nullptr);
    OSSL_STORE_INFO_free(found);
    if (!key) continue;
    auto signer = signer_of(std::move(key));
    if (signer) return signer;
    Error error = signer.error();
    error.context = uri;
    return tl::unexpected(std::move(error));
  }
  return no_key(passphrase, uri, "no private key there: " + openssl_reason());
}

Result<std::unique_ptr<Signer>> create_key(const std::filesystem::path& file,
                                           const std::string& passphrase) {
  const fs::path public_file = file.string() + ".pub";
  for (const fs::path& there : {file, public_file}) {
    if (fs::exists(there)) {
      return fail(Errc::already_exists, "a key is there already", there.string(),
                  "keys are never replaced; choose another name");
    }
  }
  Key key(EVP_EC_gen("P-256"));
  if (!key) return fail(Errc::internal, "cannot make a key: " + openssl_reason());
  const SecretBio pem;
  const bool written = PEM_write_bio_PKCS8PrivateKey(
                           pem.get(), key.get(), passphrase.empty() ? nullptr : EVP_aes_256_cbc(),
                           passphrase.empty() ? nullptr : passphrase.c_str(),
                           static_cast<int>(passphrase.size()), nullptr, nullptr) == 1;
  if (!written) return fail(Errc::internal, "cannot write a key: " + openssl_reason());
  auto signer = signer_of(std::move(key));
  if (!signer) return signer;
  if (auto done = write_new_secret(file, pem.view()); !done) return tl::unexpected(done.error());
  if (auto done = write_file_atomic(public_file, (*signer)->public_key().pem()); !done) {
    return tl::unexpected(done.error());
  }
  return signer;
}

Result<std::unique_ptr<Signer>> load_key(const std::filesystem::path& file,
                                         const AskPassphrase& ask) {
  const auto fd = open_secret(file);
  if (!fd) return tl::unexpected(fd.error());
  const Bio bio(BIO_new_fd(fd->get(), BIO_NOCLOSE));
  Passphrase passphrase{&ask, &file, false, {}, {}};
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, give_passphrase, &passphrase));
  if (!key) {
    return no_key(passphrase, file.string(), "not a PEM private key: " + openssl_reason());
  }
  auto signer = signer_of(std::move(key));
  if (!signer) {
    Error error = signer.error();
    error.context = file.string();
    return tl::unexpected(std::move(error));
  }
  return signer;
}

}  // namespace qualify::ledger
