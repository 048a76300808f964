#pragma once

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <memory>
#include <string>

namespace qualify::ledger {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Bio = std::unique_ptr<BIO, FreeBio>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, FreeContext>;
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;

/// OpenSSL's newest message; its queue is empty afterwards.
inline std::string openssl_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  std::string text = reason != nullptr ? reason : "no reason given";
  ERR_clear_error();
  return text;
}

}  // namespace qualify::ledger
