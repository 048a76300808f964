#include "event_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/crc.hpp>

#include "errors.hpp"
#include "event.pb.h"

namespace quickstart {
namespace {

double seconds(EventFile::Time time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0' ? name.data()
                                                                           : "localhost";
}

/// Little-endian, as TFRecord wants it on any machine.
template <class Number>
std::string little_endian(Number number) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes.push_back(static_cast<char>((number >> (8 * i)) & 0xffU));
  }
  return bytes;
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;
  crc.process_bytes(bytes.data(), bytes.size());
  const auto sum = static_cast<std::uint32_t>(crc.checksum());
  return ((sum >> 15U) | (sum << 17U)) + 0xa282ead8U;
}

EventFile::EventFile(const std::filesystem::path& folder, Time now)
    : file_(folder / fmt::format("events.out.tfevents.{}.{}.{}.0",
                                 static_cast<std::int64_t>(seconds(now)), host_name(), getpid())) {
  stream_.open(file_, std::ios::binary);
  tensorboard::Event event;
  event.set_wall_time(seconds(now));
  event.set_file_version("brain.Event:2");
  event.mutable_source_metadata()->set_writer("quickstart_trainer");
  record(event.SerializeAsString());
  flush();
}

void EventFile::scalar(const std::string& tag, float value, std::int64_t step, Time now) {
  tensorboard::Event event;
  event.set_wall_time(seconds(now));
  event.set_step(step);
  tensorboard::Summary::Value* entry = event.mutable_summary()->add_value();
  entry->set_tag(tag);
  entry->set_simple_value(value);
  record(event.SerializeAsString());
}

void EventFile::record(const std::string& bytes) {
  const std::string length = little_endian(std::uint64_t{bytes.size()});
  stream_ << length << little_endian(masked_crc32c(length)) << bytes
          << little_endian(masked_crc32c(bytes));
}

void EventFile::flush() {
  if (!stream_.flush()) {
    throw OutputError("the event file " + file_.string() + " cannot be written");
  }
}

}  // namespace quickstart
