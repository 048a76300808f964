// The two public schemas, member by member: docs/formats/traces.md.

#include "record.hpp"

#include <charconv>
#include <cstring>

#include "record_values.hpp"

namespace qualify::traces {

namespace {

namespace ondemand = simdjson::ondemand;

/// The key between its quotes; keys with escapes come unescaped from simdjson.
template <class Field>
bool key_of(Field& field, std::string_view& key) {
  ondemand::raw_json_string raw;
  if (field.key().get(raw)) return false;
  const char* begin = raw.raw();
  const char* end = begin;
  while (*end != '"' && *end != '\\') ++end;
  if (*end == '"') {
    key = {begin, static_cast<std::size_t>(end - begin)};
    return true;
  }
  return !field.unescaped_key().get(key);
}

/// What stands behind a token belongs to no value.
std::string_view trimmed(std::string_view token) {
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.remove_suffix(1);
  return token;
}

/// simdjson has an error for what begins like null and is not: that is not null either.
bool is_null(ondemand::value& value) {
  bool null = false;
  return value.is_null().get(null) == simdjson::SUCCESS && null;
}

/// The text as it stands between its quotes, or null's: empty. Only where it holds an escape is it
/// copied; simdjson has checked that the quotes are there and what is between them is UTF-8.
bool text_of(ondemand::value& value, std::string_view& text) {
  const std::string_view token = trimmed(value.raw_json_token());
  if (token.size() >= 2 && token.front() == '"' &&
      std::memchr(token.data(), '\\', token.size()) == nullptr) {
    text = token.substr(1, token.size() - 2);
    return token.back() == '"';
  }
  text = {};
  if (is_null(value)) return true;
  return !value.get_string().get(text);
}

/// A whole number, or `null` where the member is null.
template <class T>
bool number_of(std::string_view token, T& to, T null) {
  if (token == "null") {
    to = null;
    return true;
  }
  const std::size_t sign = token.starts_with('-') ? 1 : 0;
  if (token.size() > sign + 1 && token[sign] == '0') return false;  // not a number of JSON
  const char* const end = token.data() + token.size();
  const auto read = std::from_chars(token.data(), end, to);
  return read.ec == std::errc{} && read.ptr == end;
}

bool flag_of(ondemand::value& value, std::uint16_t bit, Event& event) {
  bool truth = false;
  if (value.get_bool().get(truth)) return false;
  if (truth) event.flags = static_cast<std::uint16_t>(event.flags | bit);
  return true;
}

/// A record's own members.
enum class Member {
  event,
  fields,
  metadata,
  tensor,
  payload,
  iteration,
  rank,
  sequence,
  microbatch,
  occurrence,
  name,
  phase,
  kind,
  other
};

/// By length first: eleven members a record make a chain of comparisons dear.
Member member_of(std::string_view key) {
  switch (key.size()) {
    case 4:
      if (key == "name") return Member::name;
      if (key == "rank") return Member::rank;
      if (key == "kind") return Member::kind;
      break;
    case 5:
      if (key == "event") return Member::event;
      if (key == "phase") return Member::phase;
      break;
    case 6:
      if (key == "fields") return Member::fields;
      if (key == "tensor") return Member::tensor;
      break;
    case 7:
      if (key == "payload") return Member::payload;
      break;
    case 8:
      if (key == "metadata") return Member::metadata;
      if (key == "sequence") return Member::sequence;
      break;
    case 9:
      if (key == "iteration") return Member::iteration;
      break;
    case 10:
      if (key == "microbatch") return Member::microbatch;
      if (key == "occurrence") return Member::occurrence;
      break;
    default:
      break;
  }
  return Member::other;
}

Kind fork_kind(std::string_view text) {
  if (text == "runtime" || text == "event" || text == "recompute") return Kind::control;
  if (text == "scalar" || text == "loss") return Kind::metric;
  if (text == "parameter" || text == "gradient" || text == "activation") return Kind::tensor;
  if (text == "checkpoint" || text == "optimizer") return Kind::state;
  return parse_name<Kind>(text).value_or(Kind::control);
}

}  // namespace

const char* name_of(Schema schema) {
  return schema == Schema::pr6610 ? "trace-pr6610" : schema == Schema::fork ? "trace-fork" : "";
}

template <class T>
bool RecordParser::number_at(Value& value, Slot slot, T& to, T null) {
  const std::string_view token = trimmed(value.raw_json_token());
  shapes_.saw(slot, token);
  return number_of(token, to, null);
}

bool RecordParser::text_at(Value& value, Slot slot, std::string_view& text) {
  shapes_.saw(slot, trimmed(value.raw_json_token()));
  return text_of(value, text);
}

bool RecordParser::attribute(std::string_view key, Value& value, Event& event, bool& known) {
  known = true;
  std::string_view text;
  switch (key.size()) {
    case 2:
      if (key == "op") {
        if (!text_of(value, text)) return false;
        event.op = texts_.of(text);
        return true;
      }
      break;
    case 4:
      if (key == "role") {
        if (!text_of(value, text)) return false;
        event.role = parse_name<Role>(text).value_or(Role::none);
        return true;
      }
      if (key == "peer") return number_at(value, Slot::peer, event.peer, -1);
      if (key == "kind") {
        if (!text_of(value, text)) return false;
        const auto kind = parse_name<Kind>(text);
        if (kind) event.kind = *kind;
        kind_given_ = kind.has_value();
        return true;
      }
      break;
    case 5:
      if (key == "group") {
        if (!text_at(value, Slot::group, text)) return false;
        event.group = texts_.of_group(text);
        return true;
      }
      if (key == "bytes") return number_at(value, Slot::bytes, event.bytes, std::int64_t{-1});
      break;
    case 7:
      if (key == "time_ns") return number_at(value, Slot::time_ns, event.time_ns, kNoTime);
      if (key == "skipped") return flag_of(value, kSkipped, event);
      break;
    case 9:
      if (key == "group_seq")
        return number_at(value, Slot::group_seq, event.group_seq, std::int64_t{-1});
      if (key == "vpp_chunk")
        return number_at(value, Slot::vpp_chunk, event.vpp_chunk, std::int16_t{-1});
      if (key == "recompute") return flag_of(value, kRecompute, event);
      break;
    case 10:
      if (key == "cuda_graph") return flag_of(value, kCudaGraph, event);
      break;
    case 11:
      if (key == "duration_ns")
        return number_at(value, Slot::duration_ns, event.duration_ns, kNoTime);
      break;
    case 13:
      if (key == "semantic_type") {
        if (!text_of(value, text)) return false;
        scalar_tensor_ = text == "scalar";
        return true;
      }
      break;
    default:
      break;
  }
  known = false;
  return true;
}

bool RecordParser::scalar(std::string_view key, Value& value, Record& record) {
  Event event;
  bool set = false;
  const std::string_view token = trimmed(value.raw_json_token());
  if (!set_value(value, event, set)) return false;
  if (!set) return true;
  if (key == "value") {
    shapes_.saw(Slot::value, token);
    Event& first = record.events.front();
    first.value_bits = event.value_bits;
    first.value_type = event.value_type;
    if (first.coverage == Coverage::none) first.coverage = Coverage::scalar;
    return true;
  }
  if (extras_ == extra_.size()) extra_.emplace_back();
  extra_[extras_++] = {std::string(key), event};
  return true;
}

bool RecordParser::attributes(Value& value, Record& record, bool values) {
  if (is_null(value)) return true;
  Object object;
  if (value.get_object().get(object)) return false;
  Event& event = record.events.front();
  for (auto field : object) {
    std::string_view key;
    if (!key_of(field, key)) return false;
    Value inner;
    if (field.value().get(inner)) return false;
    bool known = false;
    if (!attribute(key, inner, event, known)) return false;
    if (known || !values) continue;
    if (key == "outputs") {
      if (!outputs(inner, record)) return false;
    } else if (key == "sha256") {
      std::string_view digest;
      if (!text_at(inner, Slot::digest, digest) || !set_digest(digest, event)) return false;
      as_sample(event);
    } else if (!scalar(key, inner, record)) {
      return false;
    }
  }
  return true;
}

bool RecordParser::outputs(Value& value, Record& record) {
  simdjson::ondemand::array array;
  if (value.get_array().get(array)) return false;
  std::size_t number = 0;
  for (auto element : array) {
    Object object;
    if (element.get_object().get(object)) return false;
    Event event;
    event.role = Role::output;
    for (auto field : object) {
      std::string_view key;
      if (!key_of(field, key)) return false;
      Value inner;
      if (field.value().get(inner)) return false;
      std::string_view text;
      if (key == "sha256") {
        if (!text_of(inner, text) || !set_digest(text, event)) return false;
        as_sample(event);
      } else if (key == "dtype") {
        if (!text_of(inner, text)) return false;
        event.dtype = texts_.of(text);
      }
    }
    if (extras_ == extra_.size()) extra_.emplace_back();
    extra_[extras_++] = {"output " + std::to_string(number++), event};
  }
  (void)record;
  return true;
}

bool RecordParser::tensor(Value& value, Record& record) {
  Object object;
  if (value.get_object().get(object)) return false;
  Event& event = record.events.front();
  std::string_view text;
  bool whole = false;
  bool device = false;
  bool digest = false;
  for (auto field : object) {
    std::string_view key;
    if (!key_of(field, key)) return false;
    Value inner;
    if (field.value().get(inner)) return false;
    if (key == "sha256" || key == "digest") {
      if (!text_of(inner, text)) return false;
      if (text.empty()) continue;
      shapes_.saw(Slot::digest, trimmed(inner.raw_json_token()));
      if (!set_digest(text, event)) return false;
      digest = true;
      event.algorithm = Algorithm::sample;
    } else if (key == "mode") {
      if (!text_of(inner, text)) return false;
      whole = text == "full";
      device = text == "device";
    } else if (key == "dtype") {
      if (!text_of(inner, text)) return false;
      event.dtype = texts_.of(text);
    } else if (key == "multiset") {
      if (!text_at(inner, Slot::multiset, text)) return false;
      if (!unhex(text, reinterpret_cast<unsigned char*>(&event.multiset), 8)) return false;
      event.has_multiset = true;
    } else if (key == "value_bits") {
      if (!text_at(inner, Slot::value, text) || !set_bits(text, event)) return false;
    } else if (key == "shape") {
      simdjson::ondemand::array array;
      if (is_null(inner)) continue;
      const char* const begin = inner.raw_json_token().data();
      if (inner.get_array().get(array)) return false;
      scratch_.clear();
      for (auto element : array) {
        std::int64_t extent = 0;
        if (element.get_int64().get(extent)) return false;
        if (!scratch_.empty()) scratch_ += 'x';
        char digits[24];
        const auto end = std::to_chars(digits, digits + sizeof digits, extent).ptr;
        scratch_.append(digits, static_cast<std::size_t>(end - digits));
      }
      // An array of whole numbers ends at the first bracket.
      shapes_.saw(Slot::shape,
                  {begin, static_cast<std::size_t>(std::strchr(begin, ']') + 1 - begin)});
      event.shape = texts_.of(scratch_.empty() ? "scalar" : scratch_);
    }
  }
  if (event.algorithm == Algorithm::none) return true;
  if (!digest) shapes_.refuse();  // the digest of another member, as this one says
  if (device) {
    event.algorithm = Algorithm::device;
    event.coverage = Coverage::full;
    event.tail = {};
  } else if (whole) {
    event.algorithm = Algorithm::sha256;
    event.coverage = Coverage::full;
  } else {
    as_sample(event);
  }
  return true;
}

/// What the schema leaves to the reader: the kind of event, and for the fork a collective's side.
void RecordParser::infer(Record& record, bool has_tensor) {
  Event& event = record.events.front();
  const std::string_view name = name_;
  if (record.schema == Schema::fork) {
    if (event.kind == Kind::collective && event.role == Role::none) event.role = role_in(name);
  } else if (!kind_given_) {
    if (has_tensor) {
      event.kind = scalar_tensor_ ? Kind::metric : Kind::tensor;
    } else if (event.value_type != ValueType::none) {
      event.kind = Kind::metric;
    } else {
      event.kind = role_in(name) != Role::none ? Kind::phase : Kind::control;
    }
  }
  const Event first = event;  // adding to the list moves what `event` refers to
  for (std::size_t i = 0; i < extras_; ++i) {
    Event further = first;
    const Event& own = extra_[i].second;
    further.value_bits = own.value_bits;
    further.value_type = own.value_type;
    further.coverage = own.coverage;
    further.algorithm = own.algorithm;
    further.digest_lo = own.digest_lo;
    further.digest_hi = own.digest_hi;
    further.tail = own.tail;
    further.multiset = 0;
    further.has_multiset = false;
    further.dtype = own.dtype;
    if (own.role != Role::none) further.role = own.role;
    scratch_.assign(name_).append(".").append(extra_[i].first);
    further.site = texts_.of(scratch_);
    record.events.push_back(further);
  }
}

bool RecordParser::top(Object object, Record& record) {
  Event& event = record.events.front();
  bool has_tensor = false;
  bool has_event = false;
  bool has_kind = false;
  bool has_payload = false;
  bool has_fields = false;
  for (auto field : object) {
    std::string_view key;
    if (!key_of(field, key)) return false;
    Value value;
    if (field.value().get(value)) return false;
    std::string_view text;
    switch (member_of(key)) {
      case Member::event:
        has_event = true;
        if (!text_of(value, text)) return false;
        has_tensor = text == "tensor";
        break;
      case Member::fields:
        has_fields = true;
        if (!attributes(value, record, true)) return false;
        break;
      case Member::metadata:
        if (!attributes(value, record, false)) return false;
        break;
      case Member::tensor:
        has_fields = true;
        if (!tensor(value, record)) return false;
        break;
      case Member::payload:
        has_payload = true;
        if (!attributes(value, record, true)) return false;
        break;
      case Member::iteration:
        if (!number_at(value, Slot::iteration, record.iteration, std::int64_t{-1})) return false;
        break;
      case Member::rank:
        if (!number_at(value, Slot::rank, record.rank, std::int64_t{-1})) return false;
        break;
      case Member::sequence:
        if (!number_at(value, Slot::sequence, record.sequence, std::int64_t{-1})) return false;
        break;
      case Member::microbatch:
        if (!number_at(value, Slot::microbatch, event.microbatch, -1)) return false;
        break;
      case Member::occurrence:
        if (!number_at(value, Slot::occurrence, event.occurrence, std::uint32_t{0})) return false;
        record.has_occurrence = true;
        break;
      case Member::name:
        if (!text_at(value, Slot::site, text)) return false;
        name_ = text;
        event.site = texts_.of(text);
        break;
      case Member::phase:
        if (!text_at(value, Slot::phase, text)) return false;
        event.phase = texts_.of(text);
        break;
      case Member::kind:
        has_kind = true;
        if (!text_of(value, text)) return false;
        event.kind = fork_kind(text);
        if (text == "recompute") event.flags = static_cast<std::uint16_t>(event.flags | kRecompute);
        break;
      case Member::other: {
        bool known = false;
        if (!attribute(key, value, event, known)) return false;
        break;
      }
    }
  }
  if (has_event && has_fields) record.schema = Schema::pr6610;
  if (has_kind && has_payload && !has_event) record.schema = Schema::fork;
  infer(record, has_tensor);
  return true;
}

bool RecordParser::parse(std::string_view line, std::size_t padding, Record& record) {
  if (shapes_.read(line, record)) return true;
  shapes_.begin(line);
  if (!read_json(line, padding, record)) return false;
  shapes_.learn(record);
  return true;
}

bool RecordParser::read_json(std::string_view line, std::size_t padding, Record& record) {
  record.iteration = record.rank = record.sequence = -1;
  record.has_occurrence = false;
  record.schema = Schema::none;
  record.events.resize(1);
  record.events.front() = Event();
  name_.clear();
  extras_ = 0;
  kind_given_ = false;
  scalar_tensor_ = false;
  simdjson::ondemand::document document;
  Object object;
  const simdjson::padded_string_view padded(line.data(), line.size(), line.size() + padding);
  if (parser_.iterate(padded).get(document) || document.get_object().get(object) ||
      !top(object, record)) {
    return false;
  }
  record.spread();
  return true;
}

}  // namespace qualify::traces
