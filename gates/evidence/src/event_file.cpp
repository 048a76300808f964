// TensorBoard event files: TFRecord framing (tensorflow/core/lib/io/record_writer.h: length u64,
// masked CRC of the length, data, masked CRC of the data, little-endian) around tensorflow.Event.
// docs/formats/tensorboard.md

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <unordered_map>

#include "crc32c.hpp"
#include "event_file.pb.h"
#include "qualify/base/files.hpp"
#include "source.hpp"

namespace qualify::evidence {

namespace {

constexpr std::size_t kHeader = 12;
constexpr std::size_t kFooter = 4;
/// An image or graph in a record may be large; a damaged length must not ask for all memory.
constexpr std::uint64_t kMostRecord = 1ULL << 30U;
constexpr std::string_view kTwin = " vs samples";

template <class T>
T load(const std::byte* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

bool length_intact(std::span<const std::byte> data) {
  return load<std::uint32_t>(data.data() + 8) == mask_crc(crc32c(data.first(8)));
}

std::optional<Scalar> scalar_of(const wire::Tensor& tensor) {
  const std::string& raw = tensor.tensor_content();
  const auto* bytes = reinterpret_cast<const std::byte*>(raw.data());
  switch (tensor.dtype()) {
    case 1:
      if (raw.size() == 4) return of_float32(load<float>(bytes));
      if (tensor.float_val_size() == 1) return of_float32(tensor.float_val(0));
      return std::nullopt;
    case 2:
      if (raw.size() == 8) return of_float64(load<double>(bytes));
      if (tensor.double_val_size() == 1) return of_float64(tensor.double_val(0));
      return std::nullopt;
    case 3:
      if (raw.size() == 4) return of_integer(load<std::int32_t>(bytes));
      if (tensor.int_val_size() == 1) return of_integer(tensor.int_val(0));
      return std::nullopt;
    case 9:
      if (raw.size() == 8) return of_integer(load<std::int64_t>(bytes));
      if (tensor.int64_val_size() == 1) return of_integer(tensor.int64_val(0));
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

class EventFile {
 public:
  explicit EventFile(std::string file) {
    source_.format = "tensorboard";
    source_.file = std::move(file);
  }

  void record(std::span<const std::byte> data) {
    ++records_;
    if (!event_.ParseFromArray(data.data(), static_cast<int>(data.size()))) {
      source_.fault("bad-record", "a record with a right CRC is not a TensorBoard event", place());
      return;
    }
    if (records_ == 1) {
      // Microseconds, to one width: sorts as the time does.
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%024.6f", event_.wall_time());
      source_.order_key = text.data();
    }
    if (event_.what_case() != wire::Event::kSummary) return;
    for (const wire::Summary::Value& value : event_.summary().value()) {
      std::optional<Scalar> scalar;
      if (value.value_case() == wire::Summary::Value::kSimpleValue) {
        scalar = of_float32(value.simple_value());
      } else if (value.value_case() == wire::Summary::Value::kTensor) {
        scalar = scalar_of(value.tensor());
      }
      if (!scalar) continue;  // images, histograms, text
      Series& to = series_for(value.tag());
      // Building the place's text for every value would cost more than reading it.
      const bool in_order = to.values.empty() || to.values.rbegin()->first < event_.step();
      source_.add(to, event_.step(), std::move(*scalar), in_order ? std::string() : place());
      const auto wall = std::bit_cast<std::uint64_t>(event_.wall_time());
      source_.marks.update(std::as_bytes(std::span(&wall, 1)));
      ++source_.mark_count;
    }
  }

  void fault(std::string code, std::string message) {
    source_.fault(std::move(code), std::move(message), place());
  }

  Source finish() {
    drop_twins();
    return std::move(source_);
  }

 private:
  [[nodiscard]] std::string place() const { return ", record " + std::to_string(records_); }
  Series& series_for(const std::string& tag) {
    const auto [found, fresh] = by_tag_.try_emplace(tag, nullptr);
    if (fresh) found->second = &source_.series_named(tag);
    return *found->second;
  }

  /// Megatron files every metric twice, by iteration and by samples. The twin says nothing new as
  /// long as its values are the same ones in the same order; where they are not, that is a fault.
  void drop_twins() {
    for (auto twin = source_.series.begin(); twin != source_.series.end();) {
      const std::string& name = twin->first;
      if (!name.ends_with(kTwin)) {
        ++twin;
        continue;
      }
      const auto own = source_.series.find(name.substr(0, name.size() - kTwin.size()));
      if (own == source_.series.end()) {
        ++twin;
        continue;
      }
      const auto& a = own->second.values;
      const auto& b = twin->second.values;
      auto i = a.begin();
      auto k = b.begin();
      while (i != a.end() && k != b.end() && i->second == k->second) ++i, ++k;
      // A file that ends between the two has one value without its twin.
      if ((i != a.end() && std::next(i) != a.end()) || k != b.end()) {
        source_.fault("twin-differs",
                      "\"" + name + "\" does not hold the values of \"" + own->first + "\"", "",
                      own->first, i == a.end() ? std::nullopt : std::optional(i->first));
      }
      twin = source_.series.erase(twin);
    }
  }

  Source source_;
  wire::Event event_;
  std::unordered_map<std::string, Series*> by_tag_;
  std::uint64_t records_ = 0;
};

}  // namespace

Result<std::optional<Source>> read_event_file(const std::filesystem::path& path,
                                              std::string_view head, bool forced) {
  const auto start = std::as_bytes(std::span(head));
  const bool named = path.filename().string().find("tfevents") != std::string::npos;
  const bool intact = start.size() >= kHeader && length_intact(start);
  if (!intact && !named && !forced) return std::optional<Source>();

  EventFile file(path.string());
  std::vector<std::byte> rest;  // the record that the last piece ended in
  bool broken = false;
  const auto take = [&](std::span<const std::byte> data) -> std::span<const std::byte> {
    while (!broken && data.size() >= kHeader) {
      if (!length_intact(data)) {
        broken = true;
        file.fault("bad-crc",
                   "the length of the next record does not have its CRC; "
                   "nothing after it can be read");
        break;
      }
      const auto length = load<std::uint64_t>(data.data());
      if (length > kMostRecord) {
        broken = true;
        file.fault("bad-record", "the next record claims " + std::to_string(length) + " bytes");
        break;
      }
      if (data.size() - kHeader < length + kFooter) break;
      const auto content = data.subspan(kHeader, length);
      if (load<std::uint32_t>(content.data() + length) == mask_crc(crc32c(content))) {
        file.record(content);
      } else {
        file.record({});
        file.fault("bad-crc", "the record's data does not have its CRC; its values are not used");
      }
      data = data.subspan(kHeader + length + kFooter);
    }
    return data;
  };
  const auto done = read_stream(path, [&](std::span<const std::byte> piece) -> Result<void> {
    if (broken) return {};
    if (rest.empty()) {
      const auto left = take(piece);
      rest.assign(left.begin(), left.end());
      return {};
    }
    rest.insert(rest.end(), piece.begin(), piece.end());
    const auto left = take(rest);
    rest.erase(rest.begin(), rest.end() - static_cast<std::ptrdiff_t>(left.size()));
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  if (!broken && !rest.empty()) {
    file.fault("truncated", "the file ends within a record (" + std::to_string(rest.size()) +
                                " bytes of it are there)");
  }
  if (*done == 0) file.fault("truncated", "the event file is empty");
  return std::optional<Source>(file.finish());
}

}  // namespace qualify::evidence
