#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace quickstart {

/// CRC-32C (Castagnoli) with TensorFlow's mask: rotated right by 15 bits, plus 0xa282ead8
/// (tensorflow/core/lib/hash/crc32c.h).
[[nodiscard]] std::uint32_t masked_crc32c(std::string_view bytes);

/// A TensorBoard event file as torch's SummaryWriter leaves it: TFRecord framing (length, masked
/// CRC of the length, data, masked CRC of the data), first a file_version event, then one event a
/// scalar. Values are float32, as stored. Not thread-safe.
class EventFile {
 public:
  using Time = std::chrono::system_clock::time_point;

  /// Creates folder/events.out.tfevents.<seconds>.<host>.<pid>.0. Throws OutputError.
  EventFile(const std::filesystem::path& folder, Time now);

  void scalar(const std::string& tag, float value, std::int64_t step, Time now);
  /// Throws OutputError.
  void flush();

 private:
  void record(const std::string& bytes);

  std::filesystem::path file_;
  std::ofstream stream_;
};

}  // namespace quickstart
