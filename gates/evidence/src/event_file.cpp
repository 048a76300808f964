// TensorBoard event files: TFRecord framing (tensorflow/core/lib/io/record_writer.h: length u64,
// masked CRC of the length, data, masked CRC of the data, little-endian) around tensorflow.Event.
// docs/formats/tensorboard.md

#include <algorithm>
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

/// What nearly every record is: a time, a step, and float32 scalars. Read from the wire format
/// without building messages, which takes most of the time otherwise; any other field, and anything
/// odd, is left to the generated parser.
class PlainEvent {
 public:
  struct Value {
    std::string_view tag;  ///< into the record
    float number = 0;
  };
  double wall_time = 0;
  std::int64_t step = 0;
  std::vector<Value> values;

  /// False: not plain; what was read so far is meaningless.
  bool parse(std::span<const std::byte> data) {
    wall_time = 0;
    step = 0;
    values.clear();
    while (!data.empty()) {
      std::uint64_t number = 0;
      std::span<const std::byte> nested;
      switch (std::to_integer<unsigned>(take(data))) {
        case 0x09:  // wall_time
          if (!fixed(data, wall_time)) return false;
          break;
        case 0x10:  // step
          if (!varint(data, number)) return false;
          step = static_cast<std::int64_t>(number);
          break;
        case 0x2A:  // summary; a second one would be merged into the first
          if (!values.empty() || !bytes(data, nested) || !summary(nested)) return false;
          break;
        default:
          return false;
      }
    }
    return !values.empty();
  }

 private:
  using Bytes = std::span<const std::byte>;
  static std::byte take(Bytes& data) {
    const std::byte first = data.front();
    data = data.subspan(1);
    return first;
  }
  template <class T>
  static bool fixed(Bytes& data, T& to) {
    if (data.size() < sizeof to) return false;
    to = load<T>(data.data());
    data = data.subspan(sizeof to);
    return true;
  }
  static bool varint(Bytes& data, std::uint64_t& to) {
    to = 0;
    for (unsigned shift = 0; shift < 63 && !data.empty(); shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(take(data));
      to |= (byte & 127U) << shift;
      if (byte < 128) return true;
    }
    return false;
  }
  static bool bytes(Bytes& data, Bytes& to) {
    std::uint64_t size = 0;
    if (!varint(data, size) || size > data.size()) return false;
    to = data.first(size);
    data = data.subspan(size);
    return true;
  }
  bool summary(Bytes data) {
    while (!data.empty()) {
      Bytes nested;
      if (take(data) != std::byte{0x0A} || !bytes(data, nested) || !value(nested)) return false;
    }
    return true;
  }
  bool value(Bytes data) {
    Bytes tag;
    Value read;
    if (data.empty() || take(data) != std::byte{0x0A} || !bytes(data, tag)) return false;
    if (data.size() != 5 || take(data) != std::byte{0x15} || !fixed(data, read.number))
      return false;
    read.tag = {reinterpret_cast<const char*>(tag.data()), tag.size()};
    values.push_back(read);
    return true;
  }
};

class EventFile {
 public:
  explicit EventFile(const Input& input) : source_(input.spool) {
    source_.format = "tensorboard";
    source_.file = input.path.string();
  }

  void record(std::span<const std::byte> data) {
    ++records_;
    if (records_ > 1 && plain_.parse(data)) {
      for (const PlainEvent::Value& value : plain_.values) {
        add(value.tag, plain_.step, plain_.wall_time, of_float32(value.number));
      }
      return;
    }
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
      add(value.tag(), event_.step(), event_.wall_time(), *scalar);
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
  void add(std::string_view tag, std::int64_t step, double wall_time, const Scalar& scalar) {
    Series& to = series_for(tag);
    // Building the place's text for every value would cost more than reading it.
    source_.add(to, step, scalar, [&] { return place(); });
    source_.mark_bytes({reinterpret_cast<const char*>(&wall_time), sizeof wall_time});
  }

  Series& series_for(std::string_view tag) {
    // The same tags in the same order at every step: cheaper than hashing.
    constexpr std::size_t kTried = 32;
    for (std::size_t tried = 0; tried < std::min(tags_.size(), kTried); ++tried) {
      const std::size_t at = (next_tag_ + tried) % tags_.size();
      if (tags_[at].first != tag) continue;
      next_tag_ = at + 1;
      return *tags_[at].second;
    }
    const auto [found, fresh] = by_tag_.try_emplace(std::string(tag), tags_.size());
    if (fresh) tags_.emplace_back(tag, &source_.series_named(std::string(tag)));
    next_tag_ = found->second + 1;
    return *tags_[found->second].second;
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
      const Values& a = own->second.values;
      const Values& b = twin->second.values;
      auto i = a.begin();
      auto k = b.begin();
      while (i != a.end() && k != b.end() && i->second == k->second) ++i, ++k;
      // A file that ends between the two has one value without its twin.
      const bool own_left = i != a.end() && i->first != a.last_iteration();
      if (own_left || k != b.end()) {
        source_.fault("twin-differs",
                      "\"" + name + "\" does not hold the values of \"" + own->first + "\"", "",
                      own->first, i == a.end() ? std::nullopt : std::optional(i->first));
      }
      twin = source_.series.erase(twin);
    }
  }

  Source source_;
  wire::Event event_;
  PlainEvent plain_;
  std::vector<std::pair<std::string, Series*>> tags_;
  std::unordered_map<std::string, std::size_t> by_tag_;
  std::size_t next_tag_ = 0;
  std::uint64_t records_ = 0;
};

}  // namespace

Result<std::optional<Source>> read_event_file(const Input& input) {
  const auto& [path, head, forced, spool] = input;
  const auto start = std::as_bytes(std::span(head));
  const bool named = path.filename().string().find("tfevents") != std::string::npos;
  const bool intact = start.size() >= kHeader && length_intact(start);
  if (!intact && !named && !forced) return std::optional<Source>();

  EventFile file(input);
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
