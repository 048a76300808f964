#include "line_shapes.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>

#include "record_values.hpp"
#include "words.hpp"

namespace qualify::traces {

namespace {

constexpr std::size_t kMostShapes = 64;
constexpr std::size_t kLongestShape = 4096;
/// Where fewer than half of the lines have a known shape after this many, looking costs more.
constexpr std::size_t kTrial = 1024;
constexpr std::size_t kMostDigits = 19;  ///< all of which fit 64 bits without a sign

std::uint64_t load(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

/// Both are readable for 8 bytes behind their ends; little-endian, as all supported machines are.
bool same(const char* a, const char* b, std::size_t size) {
  for (; size >= 8; a += 8, b += 8, size -= 8) {
    if (load(a) != load(b)) return false;
  }
  return size == 0 || ((load(a) ^ load(b)) << (64 - 8 * size)) == 0;
}

bool digit(char c) {
  return c >= '0' && c <= '9';
}

/// A whole number without sign or leading zeros.
bool digits(const char*& at, const char* end, std::uint64_t& to) {
  const char* const begin = at;
  std::uint64_t number = 0;
  while (at < end && digit(*at)) number = number * 10 + static_cast<std::uint64_t>(*at++ - '0');
  const auto count = static_cast<std::size_t>(at - begin);
  if (count == 0 || count > kMostDigits || (count > 1 && *begin == '0')) return false;
  to = number;
  return true;
}

template <class T>
bool number(const char*& at, const char* end, T& to) {
  std::uint64_t value = 0;
  if (!digits(at, end, value)) return false;
  if (value > static_cast<std::uint64_t>(std::numeric_limits<T>::max())) return false;
  to = static_cast<T>(value);
  return true;
}

/// Whether eight bytes are printable ASCII, neither quote nor backslash. The sums carry into no
/// other byte where none is above 0x7F.
bool plain(std::uint64_t word) {
  const auto lacks = [&](char c) {
    return (word ^ (kOnes * static_cast<unsigned char>(c))) + kOnes * 0x7F;
  };
  return (word & kHighs) == 0 && ((word + kOnes * (0x80 - ' ')) &
                                  (lacks('"') & lacks('\\') & lacks('\x7F')) & kHighs) == kHighs;
}

/// Printable ASCII without escapes up to the quote, which is not of it.
bool plain_text(const char*& at, const char* end, std::string_view& text) {
  const char* const begin = at;
  while (end - at >= 8 && plain(load(at))) at += 8;
  while (at < end && *at != '"') {
    if (*at < ' ' || *at > '~' || *at == '\\') return false;  // bytes above 0x7F are negative
    ++at;
  }
  text = {begin, static_cast<std::size_t>(at - begin)};
  return at < end;
}

/// "[4,8]" as the text of its column.
bool extents(const char*& at, const char* end, std::string& to) {
  to.clear();
  if (at == end || *at++ != '[') return false;
  while (at < end && *at != ']') {
    if (!to.empty()) {
      if (*at++ != ',') return false;
      to += 'x';
    }
    const char* const begin = at;
    std::int64_t extent = 0;
    if (!number(at, end, extent)) return false;
    to.append(begin, at);
  }
  if (at == end) return false;
  ++at;
  if (to.empty()) to = "scalar";
  return true;
}

/// A number of JSON with a fraction or an exponent.
bool real(const char*& at, const char* end, double& to) {
  const char* const begin = at;
  if (at < end && *at == '-') ++at;
  const char* const whole = at;
  while (at < end && digit(*at)) ++at;
  if (at == whole || (at - whole > 1 && *whole == '0')) return false;
  const char* mantissa = at;
  bool is_real = false;
  if (at < end && *at == '.') {
    const char* const fraction = ++at;
    while (at < end && digit(*at)) ++at;
    if (at == fraction) return false;
    mantissa = at;
    is_real = true;
  }
  if (at < end && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at < end && (*at == '+' || *at == '-')) ++at;
    const char* const exponent = at;
    while (at < end && digit(*at)) ++at;
    if (at == exponent) return false;
    is_real = true;
  }
  // Beyond this many digits readers of JSON round in ways of their own.
  if (!is_real || mantissa - whole > static_cast<std::ptrdiff_t>(kMostDigits)) return false;
  const auto read = std::from_chars(begin, at, to);
  return read.ec == std::errc{} && read.ptr == at;
}

bool take_number(Slot slot, const char*& at, const char* end, Record& record) {
  Event& event = record.events.front();
  switch (slot) {
    case Slot::iteration:
      return number(at, end, record.iteration);
    case Slot::rank:
      return number(at, end, record.rank);
    case Slot::sequence:
      return number(at, end, record.sequence);
    case Slot::microbatch:
      return number(at, end, event.microbatch);
    case Slot::occurrence:
      return number(at, end, event.occurrence);
    case Slot::group_seq:
      return number(at, end, event.group_seq);
    case Slot::bytes:
      return number(at, end, event.bytes);
    case Slot::peer:
      return number(at, end, event.peer);
    case Slot::vpp_chunk:
      return number(at, end, event.vpp_chunk);
    case Slot::time_ns:
      return number(at, end, event.time_ns);
    case Slot::duration_ns:
      return number(at, end, event.duration_ns);
    default:
      return false;
  }
}

}  // namespace

bool LineShapes::texts(const Shape& shape, Part& part, const char*& at, const char* end,
                       Event& event) {
  std::uint32_t& to = part.slot == Slot::site    ? event.site
                      : part.slot == Slot::phase ? event.phase
                      : part.slot == Slot::group ? event.group
                                                 : event.shape;
  const std::size_t size = part.last.size();
  if (size <= static_cast<std::size_t>(end - at) && std::memcmp(at, part.last.data(), size) == 0) {
    at += part.form == Form::text ? size - 1 : size;
    to = part.last_id;
    return true;
  }
  const char* const begin = at;
  if (part.form == Form::extents) {
    std::string text;
    if (!extents(at, end, text)) return false;
    to = texts_.of(text);
    part.last.assign(begin, at);
  } else {
    std::string_view text;
    if (!plain_text(at, end, text)) return false;
    if (part.slot == Slot::site && role_in(text) != shape.name_role) return false;
    to = part.slot == Slot::group ? texts_.of_group(text) : texts_.of(text);
    part.last.assign(begin, at + 1);
  }
  part.last_id = to;
  return true;
}

bool LineShapes::match(Shape& shape, std::string_view line, Record& record) {
  const char* at = line.data();
  const char* const end = at + line.size();
  record.events.resize(1);
  Event& event = record.events.front();
  event = shape.event;
  record.has_occurrence = shape.has_occurrence;
  record.schema = shape.schema;
  record.iteration = record.rank = record.sequence = -1;
  for (Part& part : shape.parts) {
    if (static_cast<std::size_t>(end - at) < part.size ||
        !same(at, shape.text.data() + part.at, part.size)) {
      return false;
    }
    at += part.size;
    switch (part.form) {
      case Form::number:
        if (!take_number(part.slot, at, end, record)) return false;
        break;
      case Form::text:
      case Form::extents:
        if (!texts(shape, part, at, end, event)) return false;
        break;
      case Form::hex: {
        if (static_cast<std::size_t>(end - at) < part.length) return false;
        const std::string_view hex(at, part.length);
        if (part.slot == Slot::multiset) {
          if (!unhex(hex, reinterpret_cast<unsigned char*>(&event.multiset), 8)) return false;
        } else {
          if (!set_digest(hex, event)) return false;
          if (event.algorithm != Algorithm::sha256) event.tail = {};
        }
        at += part.length;
        break;
      }
      case Form::bits: {
        if (static_cast<std::size_t>(end - at) < part.length) return false;
        const Coverage coverage = event.coverage;
        if (!set_bits({at, part.length}, event)) return false;
        event.coverage = coverage;
        at += part.length;
        break;
      }
      case Form::real: {
        double value = 0;
        if (!real(at, end, value)) return false;
        std::memcpy(&event.value_bits, &value, sizeof value);
        break;
      }
      case Form::whole:
        if (!digits(at, end, event.value_bits)) return false;
        break;
      case Form::end:
        break;
    }
  }
  if (at != end) return false;
  record.spread();
  return true;
}

bool LineShapes::worthwhile() const {
  return lines_ < kTrial || 2 * matched_ >= lines_;
}

bool LineShapes::read(std::string_view line, Record& record) {
  if (!worthwhile()) return false;
  ++lines_;
  if (shapes_.empty()) return false;
  const std::size_t likely = guess();
  for (std::size_t tried = 0; tried <= shapes_.size(); ++tried) {
    const std::size_t i = tried == 0 ? likely : tried - 1;
    if ((tried > 0 && i == likely) || i >= shapes_.size()) continue;
    if (!match(shapes_[i], line, record)) continue;
    came(i);
    ++matched_;
    return true;
  }
  return false;
}

std::uint8_t& LineShapes::guess() {
  return after_[(before_ * 0x9E3779B97F4A7C15U) >> 51U];
}

void LineShapes::came(std::size_t shape) {
  guess() = static_cast<std::uint8_t>(shape);
  before_ = (before_ << 2U) ^ (shape + 1);
}

void LineShapes::begin(std::string_view line) {
  line_ = line;
  seen_.clear();
  slots_ = 0;
  good_ = worthwhile() && shapes_.size() < kMostShapes && line.size() <= kLongestShape;
}

void LineShapes::saw(Slot slot, std::string_view token) {
  const std::uint32_t bit = 1U << static_cast<unsigned>(slot);
  // Of a member that is there twice the last counts, or the last that is not null: no shape.
  if ((slots_ & bit) != 0) good_ = false;
  slots_ |= bit;
  if (!good_) return;
  const auto at = static_cast<std::size_t>(token.data() - line_.data());
  good_ = at + token.size() <= line_.size() &&
          (seen_.empty() || seen_.back().at + seen_.back().size <= at);
  seen_.push_back({slot, at, token.size()});
}

LineShapes::Form LineShapes::form_of(Slot slot, std::string_view token) {
  const bool quoted = token.size() >= 2 && token.front() == '"';
  switch (slot) {
    case Slot::site:
    case Slot::phase:
    case Slot::group:
      return quoted && token.find('\\') == std::string_view::npos ? Form::text : Form::end;
    case Slot::shape:
      return token.starts_with('[') ? Form::extents : Form::end;
    case Slot::digest:
    case Slot::multiset:
      return quoted ? Form::hex : Form::end;
    case Slot::value:
      if (quoted) return token.substr(1).starts_with("0x") ? Form::bits : Form::end;
      if (token.empty() || (!digit(token.front()) && token.front() != '-')) return Form::end;
      return token.find_first_of(".eE") == std::string_view::npos ? Form::whole : Form::real;
    default:
      return !token.empty() && digit(token.front()) ? Form::number : Form::end;
  }
}

void LineShapes::learn(const Record& record) {
  if (!good_ || record.schema == Schema::none || record.events.size() != 1) return;
  Shape shape;
  shape.text = line_;
  shape.text.append(8, '\0');
  shape.event = record.events.front();
  shape.has_occurrence = record.has_occurrence;
  shape.schema = record.schema;
  std::size_t from = 0;
  for (const Seen& seen : seen_) {
    const std::string_view token = line_.substr(seen.at, seen.size);
    const Form form = form_of(seen.slot, token);
    if (form == Form::end) continue;  // null, or what is no place: it stays as it is
    const std::size_t quote = token.front() == '"' ? 1 : 0;
    Part part;
    part.at = static_cast<std::uint32_t>(from);
    part.size = static_cast<std::uint32_t>(seen.at + quote - from);
    part.slot = seen.slot;
    part.form = form;
    part.length = static_cast<std::uint32_t>(token.size() - 2 * quote);
    if (form == Form::text) {
      part.last = token.substr(1);
      part.last_id = seen.slot == Slot::site    ? shape.event.site
                     : seen.slot == Slot::phase ? shape.event.phase
                                                : shape.event.group;
      if (seen.slot == Slot::site) shape.name_role = role_in(token.substr(1, part.length));
    } else if (form == Form::extents) {
      part.last = token;
      part.last_id = shape.event.shape;
    }
    shape.parts.push_back(std::move(part));
    from = seen.at + seen.size - quote;
  }
  Part rest;
  rest.at = static_cast<std::uint32_t>(from);
  rest.size = static_cast<std::uint32_t>(line_.size() - from);
  shape.parts.push_back(std::move(rest));
  // A place whose value is none that match() takes (a sign, an escape) would never match again.
  Record again;
  if (!match(shape, line_, again) || again != record) return;
  came(shapes_.size());
  shapes_.push_back(std::move(shape));
}

}  // namespace qualify::traces
