#include "qualify/base/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <unordered_set>
#include <vector>

#include "qualify/base/text.hpp"

namespace qualify {

namespace {

constexpr std::size_t kMaxDepth = 200;
constexpr std::uint64_t kMaxExactInteger = 1ULL << 53U;

/// Builds the DOM and refuses what nlohmann's own parser lets pass: deep nesting, and duplicate
/// keys. These are counted, for a DOM has fewer members than its text has keys then; a second pass,
/// with `name_duplicates`, keeps every object's keys and says which one it is.
class StrictHandler : public nlohmann::detail::json_sax_dom_parser<Json> {
 public:
  using Base = nlohmann::detail::json_sax_dom_parser<Json>;
  explicit StrictHandler(Json& target, bool name_duplicates)
      : Base(target, false), name_duplicates_(name_duplicates) {}

  bool start_object(std::size_t elements) {
    if (!enter()) return false;
    if (name_duplicates_) keys_.emplace_back();
    return Base::start_object(elements);
  }
  bool end_object() {
    if (name_duplicates_) keys_.pop_back();
    --depth_;
    return Base::end_object();
  }
  bool start_array(std::size_t elements) { return enter() && Base::start_array(elements); }
  bool end_array() {
    --depth_;
    return Base::end_array();
  }
  bool key(std::string& name) {
    ++members;
    if (name_duplicates_ && !keys_.back().insert(name).second) {
      fault = "duplicate key \"" + name + "\"";
      return false;
    }
    return Base::key(name);
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at …: …": the library's tag is no use to a
    // reader.
    std::string text = error.what();
    if (const auto end = text.find("] "); end != std::string::npos) text.erase(0, end + 2);
    fault = text + " (byte " + std::to_string(position) + ")";
    return false;
  }

  std::string fault;
  std::size_t members = 0;  ///< of all objects, as the text has them

 private:
  bool enter() {
    if (++depth_ <= kMaxDepth) return true;
    fault = "nested deeper than " + std::to_string(kMaxDepth) + " levels";
    return false;
  }
  bool name_duplicates_;
  std::size_t depth_ = 0;
  std::vector<std::unordered_set<std::string>> keys_;
};

std::size_t members_of(const Json& value) {
  if (!value.is_structured()) return 0;
  std::size_t all = value.is_object() ? value.size() : 0;
  for (const Json& each : value) all += members_of(each);
  return all;
}

/// Empty, or why the text is not taken.
std::string parse_into(Json& root, std::string_view text, bool name_duplicates) {
  StrictHandler handler(root, name_duplicates);
  if (!Json::sax_parse(text.begin(), text.end(), &handler) || !handler.fault.empty()) {
    return handler.fault.empty() ? "not well formed" : handler.fault;
  }
  if (handler.members == members_of(root)) return {};
  if (name_duplicates) return "duplicate keys";
  root = Json();
  return parse_into(root, text, true);
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// UTF-16 code units of valid UTF-8, for JCS's key order.
std::u16string utf16(const std::string& text) {
  std::u16string units;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      code = (code << 6U) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    if (code >= 0x10000) {
      code -= 0x10000;
      units += static_cast<char16_t>(0xD800 + (code >> 10U));
      units += static_cast<char16_t>(0xDC00 + (code & 0x3FFU));
    } else {
      units += static_cast<char16_t>(code);
    }
    i += length;
  }
  return units;
}

/// ECMAScript Number::toString (ECMA-262 6.1.6.1.20) from the shortest round-trip digits.
std::string ecmascript_number(double value) {
  if (value == 0) return "0";  // -0 too
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific)
          .ptr;
  const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  const std::size_t e = text.find('e');
  int exponent = 0;
  const char* exponent_begin = text.data() + e + 1;
  if (*exponent_begin == '+') ++exponent_begin;
  std::from_chars(exponent_begin, end, exponent);
  std::string digits;
  for (const char c : text.substr(0, e)) {
    if (c != '.') digits += c;
  }
  const int k = static_cast<int>(digits.size());
  const int n = exponent + 1;
  std::string out = value < 0 ? "-" : "";
  if (k <= n && n <= 21) {
    out += digits + std::string(static_cast<std::size_t>(n - k), '0');
  } else if (0 < n && n <= 21) {
    out += digits.substr(0, static_cast<std::size_t>(n)) + "." +
           digits.substr(static_cast<std::size_t>(n));
  } else if (-6 < n && n <= 0) {
    out += "0." + std::string(static_cast<std::size_t>(-n), '0') + digits;
  } else {
    out += digits[0];
    if (k > 1) out += "." + digits.substr(1);
    out += std::string("e") + (n - 1 < 0 ? "-" : "+") + std::to_string(std::abs(n - 1));
  }
  return out;
}

void append_escaped(std::string& out, char c) {
  constexpr char hex[] = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\b':
      out += "\\b";
      break;
    case '\f':
      out += "\\f";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default:
      out += "\\u00";
      out += hex[static_cast<unsigned char>(c) >> 4U];
      out += hex[static_cast<unsigned char>(c) & 15U];
  }
}

void append_string(std::string& out, std::string_view text) {
  const auto escaped = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
  };
  out += '"';
  while (!text.empty()) {
    const auto plain =
        static_cast<std::size_t>(std::find_if(text.begin(), text.end(), escaped) - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    append_escaped(out, text.front());
    text.remove_prefix(1);
  }
  out += '"';
}

/// Empty on success, otherwise what cannot be canonical.
std::string append(std::string& out, const Json& value, std::size_t depth) {
  if (depth > kMaxDepth) return "nested too deep";
  switch (value.type()) {
    case Json::value_t::null:
      out += "null";
      return {};
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return {};
    case Json::value_t::string: {
      const auto& text = value.get_ref<const std::string&>();
      if (!is_utf8(text)) return "a string is not valid UTF-8";
      append_string(out, text);
      return {};
    }
    case Json::value_t::number_unsigned: {
      const auto number = value.get<std::uint64_t>();
      if (number > kMaxExactInteger) return "integer beyond 2^53: " + std::to_string(number);
      out += std::to_string(number);
      return {};
    }
    case Json::value_t::number_integer: {
      const auto number = value.get<std::int64_t>();
      if (number > static_cast<std::int64_t>(kMaxExactInteger) ||
          number < -static_cast<std::int64_t>(kMaxExactInteger)) {
        return "integer beyond 2^53: " + std::to_string(number);
      }
      out += std::to_string(number);
      return {};
    }
    case Json::value_t::number_float: {
      const auto number = value.get<double>();
      if (!std::isfinite(number)) return "number is not finite";
      out += ecmascript_number(number);
      return {};
    }
    case Json::value_t::array: {
      out += '[';
      bool first = true;
      for (const Json& element : value) {
        if (!first) out += ',';
        first = false;
        if (auto fault = append(out, element, depth + 1); !fault.empty()) return fault;
      }
      out += ']';
      return {};
    }
    case Json::value_t::object: {
      out += '{';
      bool first = true;
      const auto member = [&](const std::string& key, const Json& of) {
        if (!first) out += ',';
        first = false;
        append_string(out, key);
        out += ':';
        return append(out, of, depth + 1);
      };
      const auto& object = value.get_ref<const Json::object_t&>();
      // The map's order of bytes is that of UTF-16 units where all keys are ASCII.
      if (std::all_of(object.begin(), object.end(),
                      [](const auto& each) { return is_ascii(each.first); })) {
        for (const auto& [key, of] : object) {
          if (auto fault = member(key, of); !fault.empty()) return fault;
        }
      } else {
        std::vector<std::pair<std::u16string, Json::object_t::const_iterator>> members;
        for (auto it = object.begin(); it != object.end(); ++it) {
          if (!is_utf8(it->first)) return "a key is not valid UTF-8";
          members.emplace_back(utf16(it->first), it);
        }
        std::sort(members.begin(), members.end(),
                  [](const auto& a, const auto& b) { return a.first < b.first; });
        for (const auto& [units, it] : members) {
          if (auto fault = member(it->first, it->second); !fault.empty()) return fault;
        }
      }
      out += '}';
      return {};
    }
    case Json::value_t::binary:
    case Json::value_t::discarded:
      break;
  }
  return "value has no JSON form";
}

}  // namespace

Result<Json> parse_json(std::string_view text, const std::string& context) {
  Json root;
  if (const auto fault = parse_into(root, text, false); !fault.empty()) {
    return fail(Errc::invalid_input, "not valid JSON: " + fault, context);
  }
  return root;
}

Result<std::string> canonical_json(const Json& value) {
  std::string out;
  if (auto fault = append(out, value, 0); !fault.empty()) {
    return fail(Errc::invalid_input, "no canonical JSON form (RFC 8785): " + fault);
  }
  return out;
}

std::string canonical_bytes(const Json& value) {
  auto bytes = canonical_json(value);
  if (!bytes) throw std::logic_error(bytes.error().message);
  return std::move(*bytes);
}

Digest digest_of(const Json& value) {
  return sha256(canonical_bytes(value));
}

}  // namespace qualify
