#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "qualify/base/error.hpp"

namespace qualify {

/// A SHA-256 value. Text form "sha256:<64 lower-case hex>" (OCI image-spec 1.1, descriptor
/// digests).
class Digest {
 public:
  static constexpr std::size_t kBytes = 32;
  using Bytes = std::array<std::uint8_t, kBytes>;

  Digest() = default;  ///< all zero; never the digest of anything in practice
  explicit Digest(const Bytes& bytes) : bytes_(bytes) {}

  /// Accepts "sha256:<hex>" or bare hex, lower case only. Errors: invalid_input.
  static Result<Digest> parse(std::string_view text);

  [[nodiscard]] const Bytes& bytes() const { return bytes_; }
  [[nodiscard]] std::string hex() const;
  [[nodiscard]] std::string str() const { return "sha256:" + hex(); }
  /// The first 12 hex digits, for people.
  [[nodiscard]] std::string brief() const { return hex().substr(0, 12); }

  auto operator<=>(const Digest&) const = default;

 private:
  Bytes bytes_{};
};

/// Streaming SHA-256 (OpenSSL EVP). Not thread-safe; one object a stream.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> data);
  void update(std::string_view data) { update(std::as_bytes(std::span(data))); }
  /// Ends the stream; the object may then only be destroyed or assigned to.
  [[nodiscard]] Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

[[nodiscard]] Digest sha256(std::string_view data);

[[nodiscard]] std::string to_hex(std::span<const std::uint8_t> bytes);

}  // namespace qualify
