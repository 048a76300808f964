#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

#include "qualify/base/error.hpp"

/// Internal to this module.
namespace qualify::traces {

/// A file as it lies in the page cache.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const char* data, std::size_t size) : data_(data), size_(size) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] std::string_view bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

/// `whole`: all of it is about to be read, and is mapped at once. Errors: not_found, io.
[[nodiscard]] Result<Mapping> map_file(const std::filesystem::path& path, bool whole = false);

}  // namespace qualify::traces
