#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

namespace qualify::evidence {

/// Packed blocks of one reading: the first `memory` bytes stay where they are, further ones go to
/// an unnamed file in `folder`, made when it is first needed.
class Spool {
 public:
  Spool(std::filesystem::path folder, std::size_t memory)
      : folder_(std::move(folder)), memory_(memory) {}

  /// The place in the file, or null: keep the bytes. After a failed write all are kept, and error()
  /// says why.
  [[nodiscard]] std::optional<std::uint64_t> put(std::string_view bytes);
  /// Throws std::runtime_error.
  void get(std::uint64_t place, std::string& bytes) const;
  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 private:
  Result<void> write(std::string_view bytes);
  std::filesystem::path folder_;
  std::size_t memory_;
  std::size_t kept_ = 0;
  Fd file_;
  std::uint64_t end_ = 0;
  std::optional<Error> error_;
};

}  // namespace qualify::evidence
