// One JSON object a line: metrics as many tools log them, and the scalars of the two public trace
// schemas. docs/formats/json-lines.md, docs/formats/traces.md

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "qualify/evidence/lines.hpp"
#include "repeated_line.hpp"
#include "source.hpp"

namespace qualify::evidence {

namespace {

namespace ondemand = simdjson::ondemand;

enum class Shape { none, metrics, pr6610, fork };

/// One member of an object as far as a reader of scalars cares. Views die with the next line.
struct Member {
  std::string_view key;
  std::string_view token;  ///< of a number or literal; of a string, its content
  bool string = false;
  bool nested = false;
};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<Scalar> hex_bits(std::string_view text) {
  if (!text.starts_with("0x") || (text.size() != 10 && text.size() != 18)) return std::nullopt;
  std::uint64_t bits = 0;
  const auto [stop, error] = std::from_chars(text.data() + 2, text.data() + text.size(), bits, 16);
  if (error != std::errc{} || stop != text.data() + text.size()) return std::nullopt;
  Scalar scalar;
  scalar.bits = bits;
  if (text.size() == 10) scalar.precision = Precision::float32_bits;
  return scalar;
}

/// A number; a string that holds one ("nan"), or its bits ("0x41290000").
std::optional<Scalar> scalar_of(const Member& member) {
  if (member.nested) return std::nullopt;
  if (member.string) {
    if (auto bits = hex_bits(member.token)) return bits;
  }
  return parse_number(member.token);
}

std::optional<std::int64_t> whole(const Member& member) {
  if (member.string || member.nested) return std::nullopt;
  const auto number = parse_number(member.token);
  if (!number || number->precision != Precision::integer) return std::nullopt;
  return static_cast<std::int64_t>(number->bits);
}

/// Calls each(member, value) for the members in order; false when the text is no JSON object.
template <class Each>
bool members(ondemand::object object, Each&& each) {
  for (auto field : object) {
    std::string_view key;
    if (field.unescaped_key().get(key)) return false;
    ondemand::value value;
    if (field.value().get(value)) return false;
    Member member{key, {}, false, false};
    const std::string_view raw = value.raw_json_token();
    switch (raw.empty() ? '\0' : raw.front()) {
      case '{':
      case '[':
        member.nested = true;
        break;
      case '"':
        member.string = true;
        if (value.get_string().get(member.token)) return false;
        break;
      default:
        member.token = trimmed(raw);
    }
    if (!each(member, value)) return false;
  }
  return true;
}

class JsonLines {
 public:
  JsonLines(const Input& input, Shape shape) : shape_(shape), source_(input.spool) {
    source_.format = shape == Shape::pr6610 ? "trace-pr6610"
                     : shape == Shape::fork ? "trace-fork"
                                            : "json-lines";
    source_.file = input.path.string();
  }

  /// Lines of metrics that repeat the layout of one before them.
  TakenLines take(std::string_view text, std::uint64_t number) {
    const char* at = text.data();
    const char* const end = at + text.size();
    number_ = number;
    while (at != end) {
      RepeatedLine* const known =
          like_before(at, end, [end](const char* stop) { return stop != end && *stop == '\n'; });
      if (known == nullptr) break;
      repeated(known->numbers());
      at = known->stop() + 1;
      ++number_;
    }
    return {static_cast<std::size_t>(at - text.data()), number_ - number};
  }

  void line(const Line& line) {
    number_ = line.number;
    if (shape_ == Shape::metrics && line.whole && !line.ended) {  // others are taken
      const char* const end = line.text.data() + line.text.size();
      RepeatedLine* const known =
          like_before(line.text.data(), end, [end](const char* stop) { return stop == end; });
      if (known != nullptr) return repeated(known->numbers());
    }
    const std::string_view text = trimmed(line.text);
    if (text.empty()) return;
    if (!line.whole) {
      source_.fault("malformed", "the line is longer than 16 MiB", place());
      return;
    }
    ondemand::document document;
    ondemand::object object;
    const simdjson::padded_string_view padded(line.text.data(), line.text.size(),
                                              line.text.size() + kLinePadding);
    const bool good =
        !parser_.iterate(padded).get(document) && !document.get_object().get(object) &&
        (shape_ == Shape::metrics ? metrics(object, line.text.data() + line.text.size())
                                  : trace(object));
    if (good && shape_ == Shape::metrics && text.back() == '}') learn(line.text);
    if (!good || text.back() != '}') {
      source_.fault(line.ended ? "malformed" : "truncated",
                    line.ended ? "the line is not one JSON object" : "the last line is cut off",
                    place());
    }
  }

  Source finish() {
    for (auto& [name, series] : source_.series) series.values.settle();
    return std::move(source_);
  }

 private:
  [[nodiscard]] std::string place() const { return fmt::format(":{}", number_); }

  Series& series_for(std::string_view key) {
    // A few keys in the same order on each line: cheaper than hashing.
    for (std::size_t i = 0; i < titles_.size(); ++i) {
      const std::size_t at = (next_title_ + i) % titles_.size();
      if (titles_[at].first == key) {
        next_title_ = at + 1;
        return *titles_[at].second;
      }
    }
    titles_.emplace_back(std::string(key), &source_.series_named(tag_of(key)));
    next_title_ = titles_.size();
    return *titles_.back().second;
  }

  void add(Series& to, std::int64_t iteration, const Scalar& value) {
    source_.add(
        to, iteration, value, [&] { return place(); }, restarted_);
  }

  /// The layout of a line before that the line at `at` repeats, but for its numbers; null: none.
  template <class Ends>
  RepeatedLine* like_before(const char* at, const char* end, const Ends& ends) {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::size_t tried =
          last_line_ + i < lines_.size() ? last_line_ + i : last_line_ + i - lines_.size();
      if (!lines_[tried].match(at, end) || !ends(lines_[tried].stop())) continue;
      last_line_ = tried;
      return &lines_[tried];
    }
    return nullptr;
  }

  void repeated(const std::vector<RepeatedLine::Number>& numbers) {
    using Use = RepeatedLine::Use;
    std::int64_t iteration = 0;
    for (const RepeatedLine::Number& number : numbers) {
      if (number.use == Use::iteration) iteration = static_cast<std::int64_t>(number.value.bits);
      if (number.use == Use::time) source_.mark(number.token);
    }
    at_iteration(iteration);
    for (const RepeatedLine::Number& number : numbers) {
      if (number.series == nullptr) continue;
      if (number.use == Use::time_value) source_.mark(number.token);
      add(*number.series, iteration, number.value);
    }
  }

  /// A line that was read and holds numbers only, one of them its iteration.
  void learn(std::string_view line) {
    if (members_.empty() || !plain_) return;
    // Two or three layouts alternate (training, validation); more are not worth the comparing.
    constexpr std::size_t kMost = 3;
    if (lines_.size() < kMost) {
      last_line_ = lines_.size();
      lines_.emplace_back();
    } else {
      last_line_ = (last_line_ + 1) % kMost;
    }
    RepeatedLine& known = lines_[last_line_];
    known.begin(line);
    for (const Plain& member : members_) {
      const bool time = member.series != nullptr && member.series->kind == MetricKind::wall_clock;
      known.add(member.token, time ? RepeatedLine::Use::time_value : member.use, member.series);
    }
    known.end();
  }

  void at_iteration(std::int64_t iteration) {
    if (last_ && iteration < *last_) restarted_ = true;
    last_ = iteration;
  }

  /// {"iteration": 1, "lm loss": 10.5, …} or {"step": 1, "metric": "lm loss", "value": 10.5}
  bool metrics(ondemand::object object, const char* line_end) {
    std::optional<std::int64_t> iteration;
    std::string_view metric;
    std::size_t count = 0;
    next_ = 0;
    members_.clear();
    plain_ = true;
    for (auto field : object) {
      Key* key = nullptr;
      if (!key_of(field, line_end, key)) return false;
      ondemand::value value;
      if (field.value().get(value)) return false;
      Member member{key->name, trimmed(value.raw_json_token()), false, false};
      const char first = member.token.empty() ? '\0' : member.token.front();
      plain_ = plain_ && (first == '-' || (first >= '0' && first <= '9'));
      if (first == '{' || first == '[') continue;
      member.string = first == '"';
      if (key->role == Role::iteration && !iteration) {
        iteration = whole(member);
        if (!iteration) source_.fault("bad-step", "the iteration is no integer", place());
        plain_ = plain_ && iteration;
        members_.push_back({member.token, RepeatedLine::Use::iteration, nullptr});
      } else if (key->role == Role::time) {
        source_.mark(member.token);
        members_.push_back({member.token, RepeatedLine::Use::time, nullptr});
      } else if (key->role == Role::metric_name && member.string) {
        if (value.get_string().get(metric)) return false;
      } else if (!member.string || could_be_number(member.token.substr(1))) {
        if (member.string && value.get_string().get(member.token)) return false;
        // Made a number of only when the line turns out to be an iteration's.
        if (count == found_.size()) found_.emplace_back();
        found_[count++] = {static_cast<std::size_t>(key - keys_.data()), members_.size(), member};
        members_.push_back({member.token, RepeatedLine::Use::value, nullptr});
      }
    }
    if (!iteration) {  // a line about something else: settings, events
      plain_ = false;
      forget_keys();
      return true;
    }
    at_iteration(*iteration);
    for (std::size_t i = 0; i < count; ++i) {
      const Member& member = found_[i].member;
      const auto scalar = scalar_of(member);
      if (!scalar) {
        plain_ = false;
        continue;
      }
      Series& to = series_of(keys_[found_[i].key], metric);
      members_[found_[i].member_index].series = &to;
      if (to.kind == MetricKind::wall_clock) source_.mark(member.token);
      add(to, *iteration, *scalar);
    }
    return true;
  }

  /// By its first character: a digit, a sign, a point, "nan", "inf".
  static bool could_be_number(std::string_view text) {
    return !text.empty() &&
           std::string_view("0123456789+-.nNiI").find(text.front()) != std::string_view::npos;
  }

  enum class Role { number, iteration, time, metric_name };
  struct Key {
    std::string raw;   ///< as it stands in the file, between its quotes
    std::string name;  ///< unescaped
    Role role = Role::number;
    Series* series = nullptr;  ///< made when the first value is there
  };

  /// The same keys in the same order on nearly every line: compared, not unescaped and looked up.
  template <class Field>
  bool key_of(Field&& field, const char* line_end, Key*& key) {
    constexpr std::size_t kTried = 32;
    ondemand::raw_json_string raw;
    if (field.key().get(raw)) return false;
    const char* const begin = raw.raw();
    for (std::size_t tried = 0; tried < std::min(keys_.size(), kTried); ++tried) {
      const std::size_t at = (next_ + tried) % keys_.size();
      const std::string& known = keys_[at].raw;
      if (known.size() >= static_cast<std::size_t>(line_end - begin)) continue;
      if (begin[known.size()] != '"' || std::memcmp(begin, known.data(), known.size()) != 0)
        continue;
      next_ = at + 1;
      key = &keys_[at];
      return true;
    }
    std::string_view name;
    if (field.unescaped_key().get(name)) return false;
    const auto [found, fresh] = by_name_.try_emplace(std::string(name), keys_.size());
    if (fresh) {
      const char* end = begin;
      while (end < line_end && *end != '"') end += *end == '\\' ? 2 : 1;
      keys_.push_back({std::string(begin, std::min(end, line_end)), std::string(name),
                       names_iteration(name)                                 ? Role::iteration
                       : names_time(name)                                    ? Role::time
                       : name == "metric" || name == "name" || name == "tag" ? Role::metric_name
                                                                             : Role::number,
                       nullptr});
    }
    next_ = found->second + 1;
    key = &keys_[found->second];
    return true;
  }

  /// Lines about something else may have any number of keys: only those with values are kept.
  void forget_keys() {
    constexpr std::size_t kMost = 10'000;
    if (keys_.size() < kMost) return;
    std::erase_if(keys_, [](const Key& key) { return key.series == nullptr; });
    by_name_.clear();
    for (std::size_t i = 0; i < keys_.size(); ++i) by_name_.emplace(keys_[i].name, i);
  }

  Series& series_of(Key& key, std::string_view metric) {
    if (!metric.empty() && key.name == "value") return series_for(metric);
    if (key.series == nullptr) key.series = &source_.series_named(tag_of(key.name));
    return *key.series;
  }

  struct Event {
    std::int64_t iteration = -1;
    std::int64_t rank = -1;
    std::int64_t sequence = -1;
    std::optional<std::int64_t> microbatch;
    std::int64_t occurrence = 0;
    std::string name;
    std::string phase;
    std::vector<std::pair<std::string, Scalar>> values;  ///< by field, "" for the tensor itself
  };

  bool trace(ondemand::object object) {
    Event event;
    const bool read = members(object, [&](const Member& member, ondemand::value& value) {
      if (member.key == "iteration")
        event.iteration = whole(member).value_or(-1);
      else if (member.key == "rank")
        event.rank = whole(member).value_or(-1);
      else if (member.key == "sequence")
        event.sequence = whole(member).value_or(-1);
      else if (member.key == "microbatch")
        event.microbatch = whole(member);
      else if (member.key == "occurrence")
        event.occurrence = whole(member).value_or(0);
      else if (member.key == "name")
        event.name = member.token;
      else if (member.key == "phase")
        event.phase = member.token;
      else if (member.key == "fields" || member.key == "payload")
        return payload(value, event);
      else if (member.key == "tensor")
        return tensor(value, event);
      return true;
    });
    if (!read) return false;
    if (event.iteration < 0 || event.rank < 0 || event.sequence < 0 || event.name.empty()) {
      source_.fault("malformed", "a trace record lacks its name, iteration, rank or sequence",
                    place());
      return true;
    }
    ordered(event);
    if (shape_ == Shape::fork) event.occurrence = occurrence(event);
    for (auto& [field, scalar] : event.values) {
      add(series_for(title(event, field)), event.iteration, scalar);
    }
    return true;
  }

  bool payload(ondemand::value& value, Event& event) {
    ondemand::object object;
    if (value.get_object().get(object)) return true;
    return members(object, [&](const Member& member, ondemand::value& inner) {
      if (member.nested) {
        return member.key == "outputs" ? outputs(inner, event) : true;
      }
      if (member.string && member.key == "sha256") {
        // The fork does not record how much of the tensor its digests cover.
        event.values.emplace_back("", of_digest(member.token, Precision::weak_digest));
      } else if (auto scalar = scalar_of(member); scalar && !member.string) {
        event.values.emplace_back(member.key == "value" ? "" : std::string(member.key),
                                  std::move(*scalar));
      }
      return true;
    });
  }

  bool outputs(ondemand::value& value, Event& event) {
    ondemand::array array;
    if (value.get_array().get(array)) return true;
    std::size_t index = 0;
    for (auto element : array) {
      ondemand::object object;
      if (element.get_object().get(object)) return true;
      const std::string field = "output " + std::to_string(index++);
      const bool read = members(object, [&](const Member& member, ondemand::value&) {
        if (member.string && member.key == "sha256") {
          event.values.emplace_back(field, of_digest(member.token, Precision::weak_digest));
        }
        return true;
      });
      if (!read) return false;
    }
    return true;
  }

  /// Only the mode "full" hashes every byte.
  bool tensor(ondemand::value& value, Event& event) {
    ondemand::object object;
    if (value.get_object().get(object)) return true;
    std::string digest;
    std::string mode;
    bool read = members(object, [&](const Member& member, ondemand::value&) {
      if (member.string && member.key == "sha256") digest = member.token;
      if (member.string && member.key == "mode") mode = member.token;
      return true;
    });
    if (!digest.empty()) {
      event.values.emplace_back(
          "", of_digest(digest, mode == "full" ? Precision::sha256 : Precision::weak_digest));
    }
    return read;
  }

  /// pr6610: strictly increasing in a rank's file. Fork: 0, 1, 2, … in each.
  void ordered(const Event& event) {
    const auto last = last_sequence_;
    last_sequence_ = event.sequence;
    if (shape_ == Shape::fork ? event.sequence == (last ? *last + 1 : 0)
                              : !last || event.sequence > *last) {
      return;
    }
    source_.fault("sequence-gap",
                  "sequence " + std::to_string(event.sequence) +
                      (last ? " after " + std::to_string(*last) : " is the first") +
                      ": a record is missing or moved",
                  place(), {}, event.iteration);
  }

  std::int64_t occurrence(const Event& event) {
    if (event.iteration != occurrences_of_) occurrences_.clear();
    occurrences_of_ = event.iteration;
    return occurrences_[event.name]++;
  }

  static std::string title(const Event& event, const std::string& field) {
    std::string title = event.name;
    if (!field.empty()) title += "." + field;
    title += " (";
    if (!event.phase.empty()) title += event.phase + ", ";
    title += "rank " + std::to_string(event.rank);
    if (event.microbatch) title += ", microbatch " + std::to_string(*event.microbatch);
    if (event.occurrence > 0) title += ", occurrence " + std::to_string(event.occurrence);
    return title + ")";
  }

  Shape shape_;
  Source source_;
  ondemand::parser parser_;
  /// Numbers of the line that is being read; the iteration may stand behind them.
  struct Found {
    std::size_t key = 0;
    std::size_t member_index = 0;  ///< in members_
    Member member;
  };
  std::vector<Found> found_;
  /// The members of the line, when all are numbers.
  struct Plain {
    std::string_view token;
    RepeatedLine::Use use;
    Series* series;
  };
  std::vector<Plain> members_;
  bool plain_ = true;
  std::vector<RepeatedLine> lines_;
  std::size_t last_line_ = 0;
  std::vector<Key> keys_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::size_t next_ = 0;  ///< key that is expected next
  std::vector<std::pair<std::string, Series*>> titles_;
  std::size_t next_title_ = 0;
  std::unordered_map<std::string, std::int64_t> occurrences_;
  std::int64_t occurrences_of_ = -1;
  std::optional<std::int64_t> last_sequence_;
  std::optional<std::int64_t> last_;
  std::uint64_t number_ = 0;
  bool restarted_ = false;
};

/// By the members of the first line.
Shape shape_of(std::string_view head) {
  std::string first(head.substr(0, head.find('\n')));
  if (first.empty() || first.front() != '{') return Shape::none;
  ondemand::parser parser;
  ondemand::document document;
  ondemand::object object;
  const simdjson::padded_string padded(first);
  if (parser.iterate(padded).get(document) || document.get_object().get(object)) return Shape::none;
  bool event = false;
  bool kind = false;
  bool sequence = false;
  bool payload = false;
  bool iteration = false;
  const bool read = members(object, [&](const Member& member, ondemand::value&) {
    event = event || member.key == "event";
    kind = kind || member.key == "kind";
    sequence = sequence || member.key == "sequence";
    payload =
        payload || member.key == "payload" || member.key == "fields" || member.key == "tensor";
    iteration = iteration || names_iteration(member.key);
    return true;
  });
  if (!read) return Shape::none;
  if (event && sequence && payload) return Shape::pr6610;
  if (kind && sequence && payload) return Shape::fork;
  return iteration ? Shape::metrics : Shape::none;
}

Result<std::optional<Source>> read(const Input& input, Shape shape) {
  if (!input.forced && shape_of(input.head) != shape) return std::optional<Source>();
  JsonLines reader(input, shape);
  TakeLines take;
  if (shape == Shape::metrics) {
    take = [&](std::string_view text, std::uint64_t number) { return reader.take(text, number); };
  }
  const auto done = for_each_line(
      input.path,
      [&](const Line& line) {
        reader.line(line);
        return true;
      },
      {}, take);
  if (!done) return tl::unexpected(done.error());
  return std::optional<Source>(reader.finish());
}

}  // namespace

Result<std::optional<Source>> read_json_lines(const Input& input) {
  return read(input, Shape::metrics);
}

Result<std::optional<Source>> read_pr6610_trace(const Input& input) {
  return read(input, Shape::pr6610);
}

Result<std::optional<Source>> read_fork_trace(const Input& input) {
  return read(input, Shape::fork);
}

}  // namespace qualify::evidence
