#pragma once

#include <string_view>

#include "openssl.hpp"
#include "qualify/base/files.hpp"

namespace qualify::ledger {

/// Key material that is wiped when it goes.
class SecretBio {
 public:
  SecretBio() : bio_(BIO_new(BIO_s_secmem())) {}
  [[nodiscard]] BIO* get() const { return bio_.get(); }
  [[nodiscard]] std::string_view view() const;

 private:
  Bio bio_;
};

/// Writes a file that nobody else can read at any moment, under a name that must not exist yet.
/// Errors: already_exists, io, no_space.
[[nodiscard]] Result<void> write_new_secret(const fs::path& file, std::string_view content);

/// Opens a private key for reading. Errors: not_found, io, invalid_input (too large), refused (not
/// a regular file, or others may read or write it).
[[nodiscard]] Result<Fd> open_secret(const fs::path& file);

}  // namespace qualify::ledger
