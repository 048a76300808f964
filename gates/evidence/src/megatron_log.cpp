// Megatron's stdout: one line an iteration among whatever else the ranks print.
// docs/formats/megatron-log.md; the line is built in megatron/training/training.py, training_log().

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "qualify/base/files.hpp"
#include "source.hpp"

namespace qualify::evidence {

namespace {

constexpr std::size_t kLongestLine = 1U << 20U;
constexpr std::string_view kWord = "iteration ";
constexpr std::string_view kStart = "[before the start of training step]";
constexpr std::string_view kLastKey = "number of nan iterations";

/// Megatron's words in the log against its tags in TensorBoard.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kNames = {{
    {"learning rate", "learning-rate"},
    {"global batch size", "batch-size"},
    {"loss scale", "loss-scale"},
    {"grad norm", "grad-norm"},
    {"num zeros", "num-zeros"},
    {"params norm", "params-norm"},
    {"elapsed time per iteration (ms)", "iteration-time"},
    {"throughput per GPU (TFLOP/s/GPU)", "throughput"},
}};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

/// Where the last ": " is: values have no colon, keys may. By hand: values are a few characters,
/// and std::string_view::rfind compares at each of them.
std::size_t last_colon(std::string_view part) {
  for (std::size_t at = part.size(); at-- > 1;) {
    if (part[at] == ' ' && part[at - 1] == ':') return at - 1;
  }
  return std::string_view::npos;
}

/// "  12" at the front of `text` and past it.
bool take_integer(std::string_view& text, std::int64_t& value) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(stop - text.data()));
  return true;
}

class Log {
 public:
  explicit Log(const Input& input) : source_(input.spool), iterations_(input.spool) {
    source_.format = "megatron-log";
    source_.file = input.path.string();
  }

  /// A line that holds kWord. `at` is where the word begins in it. False: no iteration line.
  bool line(std::string_view line, std::size_t at, bool ended) {
    const std::string_view before = line.substr(0, at);
    std::string_view rest = line.substr(at + kWord.size());
    std::int64_t iteration = 0;
    std::int64_t of = 0;
    if (!take_integer(rest, iteration)) return false;
    if (rest.empty() && !ended) return cut(iteration);
    if (!rest.starts_with('/')) return false;
    rest.remove_prefix(1);
    if (!take_integer(rest, of)) return trimmed(rest).empty() && !ended && cut(iteration);
    rest = trimmed(rest);
    if (rest.empty()) return cut(iteration);
    if (!rest.starts_with('|')) return false;
    rest.remove_prefix(1);
    begin(iteration, before);
    segments(rest);
    return true;
  }

  void started() { lines_since_start_ = 0; }
  void too_long() {
    source_.fault("malformed", "the line is longer than 1 MiB; what stands first in it is not read",
                  place());
  }
  void at_line(std::uint64_t number) { number_ = number; }
  [[nodiscard]] bool any() const { return any_; }

  Source finish() {
    for (auto& [name, series] : source_.series) {
      if (name.ends_with("loss")) vanished(name, series);
    }
    if (lines_without_loss_ > 0 && !any_loss_) {
      for (const auto& [iteration, line] : iterations_) {
        source_.fault("nan-vanished",
                      "no loss is printed at iteration " + std::to_string(iteration) +
                          ": Megatron leaves out a loss that is NaN or negative",
                      "", "lm loss", iteration);
      }
    }
    return std::move(source_);
  }

 private:
  [[nodiscard]] std::string place() const { return ":" + std::to_string(number_); }

  bool cut(std::int64_t iteration) {
    any_ = true;
    source_.fault("truncated", "the line of iteration " + std::to_string(iteration) + " is cut off",
                  place());
    return true;
  }

  void begin(std::int64_t iteration, std::string_view before) {
    any_ = true;
    before = trimmed(before);
    std::string_view stamp;
    if (before.ends_with(']')) {
      const auto open = before.rfind('[');
      if (open != std::string_view::npos) stamp = before.substr(open + 1, before.size() - open - 2);
      if (stamp.empty() || stamp.front() < '0' || stamp.front() > '9') stamp = {};
    }
    restarted_ = restarted_ || (iteration_ && iteration < *iteration_);
    if (iteration_ && iteration < *iteration_) lines_since_start_ = 0;
    ++lines_since_start_;
    averaged_ = lines_since_start_ == 2 && iteration_ && *iteration_ + 1 == iteration;
    iteration_ = iteration;
    iterations_.insert(iteration, {});
    if (source_.order_key.empty()) source_.order_key = stamp;
    if (!stamp.empty()) source_.mark(stamp);
  }

  void segments(std::string_view rest) {
    bool complete = false;
    bool loss_seen = false;
    bool is_cut = false;
    while (!rest.empty()) {
      const auto bar = rest.find('|');
      const std::string_view part = trimmed(rest.substr(0, bar));
      if (bar == std::string_view::npos) {
        is_cut = !part.empty() && (!complete || could_be_metric(part));
        break;
      }
      rest.remove_prefix(bar + 1);
      const auto colon = last_colon(part);
      if (colon == std::string_view::npos) {
        if (complete) break;  // another rank's text with a bar in it
        source_.fault("malformed", "\"" + std::string(part.substr(0, 80)) + "\" is no metric",
                      place(), {}, *iteration_);
        continue;
      }
      const std::string_view key = trimmed(part.substr(0, colon));
      const std::string_view text = trimmed(part.substr(colon + 1));
      auto number = parse_number(text);
      if (!number) {
        if (complete) break;
        source_.fault("malformed",
                      "\"" + std::string(key.substr(0, 80)) + "\" has the value \"" +
                          std::string(text.substr(0, 80)) + "\"",
                      place(), name_of_key(key), *iteration_);
        continue;
      }
      const Key& known = key_of(key);
      complete = complete || known.is_last;
      loss_seen = loss_seen || known.is_loss;
      record(known, text, *number);
    }
    // Forks end their lines otherwise; within one log all lines end alike.
    if (is_cut || (!complete && closed_before_)) cut(*iteration_);
    any_loss_ = any_loss_ || loss_seen;
    if (!loss_seen) ++lines_without_loss_;
    closed_before_ = closed_before_ || complete;
  }

  struct Key {
    std::string name;
    Series* series = nullptr;
    bool is_last = false;
    bool is_loss = false;
    bool is_time = false;  ///< in milliseconds
    bool is_zeros = false;
  };

  void record(const Key& key, std::string_view text, Scalar& number) {
    Series& to = *key.series;
    if (key.is_time && to.kind == MetricKind::wall_clock) {
      source_.mark_bytes(text);
      number.bits = std::bit_cast<std::uint64_t>(number.value() / 1000);  // seconds, as TensorBoard
      number.precision = Precision::printed;
      number.last_digit -= 3;
    }
    // "9154.0" is the number of zeros in full.
    if (key.is_zeros && text.ends_with(".0")) {
      const auto whole = parse_number(text.substr(0, text.size() - 2));
      if (whole && whole->precision == Precision::integer) number = *whole;
    }
    if (averaged_ && (key.is_loss || key.is_time)) {
      source_.artefacts.push_back({"two-step-average", to.name, *iteration_});
    }
    source_.add(
        to, *iteration_, number, [&] { return place(); }, restarted_);
  }

  static std::string name_of_key(std::string_view key) {
    for (const auto& [word, tag] : kNames) {
      if (word == key) return std::string(tag);
    }
    return std::string(key);
  }

  const Key& key_of(std::string_view name) {
    // A dozen keys, nearly always in the same order: cheaper than hashing.
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const std::size_t at =
          next_key_ + i < keys_.size() ? next_key_ + i : next_key_ + i - keys_.size();
      if (keys_[at].name == name) {
        next_key_ = at + 1 < keys_.size() ? at + 1 : 0;
        return keys_[at];
      }
    }
    Series& series = source_.series_named(name_of_key(name));
    keys_.push_back({std::string(name), &series, name == kLastKey, name.ends_with("loss"),
                     name.ends_with("(ms)"), series.name == "num-zeros"});
    next_key_ = 0;
    return keys_.back();
  }

  /// What follows the last bar: the beginning of a metric, or another rank's text?
  [[nodiscard]] bool could_be_metric(std::string_view part) const {
    const std::string_view key = trimmed(part.substr(0, part.find(':')));
    return std::any_of(keys_.begin(), keys_.end(),
                       [&](const auto& known) { return std::string_view(known.name) == key; });
  }

  void vanished(const std::string& name, const Series& series) {
    if (series.values.size() >= iterations_.size()) return;
    auto value = series.values.begin();
    const auto end = series.values.end();
    for (const auto& [iteration, line] : iterations_) {
      while (value != end && value->first < iteration) ++value;
      if (value != end && value->first == iteration) continue;
      source_.fault("nan-vanished",
                    "\"" + name + "\" is not printed at iteration " + std::to_string(iteration) +
                        ": Megatron leaves out a loss that is NaN or negative",
                    "", name, iteration);
    }
  }

  Source source_;
  std::vector<Key> keys_;
  std::size_t next_key_ = 0;
  Values iterations_;  ///< of all lines; the values say nothing
  std::optional<std::int64_t> iteration_;
  std::uint64_t number_ = 1;
  std::uint64_t lines_since_start_ = 0;
  std::size_t lines_without_loss_ = 0;
  bool restarted_ = false;
  bool averaged_ = false;
  bool any_ = false;
  bool any_loss_ = false;
  bool closed_before_ = false;
};

/// Finds the lines of interest in a stream without looking at the others' bytes more than once.
class Scanner {
 public:
  explicit Scanner(Log& log) : log_(log) {}

  void take(std::string_view piece) {
    if (carry_.empty()) {
      consume(piece);
      return;
    }
    // Only the line that straddles the pieces is copied.
    const auto newline = piece.find('\n');
    carry_.append(piece.substr(0, newline == std::string_view::npos ? newline : newline + 1));
    shorten();
    if (newline == std::string_view::npos) return;
    const std::string whole = std::move(carry_);
    carry_.clear();
    consume(whole);
    consume(piece.substr(newline + 1));
  }

  void finish() {
    const std::string last = std::move(carry_);
    carry_.clear();
    if (!last.empty()) lines(last, false);
  }

 private:
  /// A progress bar may never end its line. Of such a one the end is kept, where the text of an
  /// iteration can follow it; what goes is looked at, so that nothing is dropped unsaid.
  void shorten() {
    if (carry_.size() <= kLongestLine) return;
    const std::size_t gone = carry_.size() - kLongestLine / 2;
    if (::memmem(carry_.data(), gone + kWord.size(), kWord.data(), kWord.size()) != nullptr) {
      log_.at_line(number_);
      log_.too_long();
    }
    carry_.erase(0, gone);
  }

  void consume(std::string_view text) {
    const auto newline = text.rfind('\n');
    const std::size_t whole = newline == std::string_view::npos ? 0 : newline + 1;
    lines(text.substr(0, whole), true);
    carry_.assign(text.substr(whole));
  }

  /// Whole lines, but for the last one when not `ended`.
  void lines(std::string_view text, bool ended) {
    while (!text.empty()) {
      const void* hit = ::memmem(text.data(), text.size(), kWord.data(), kWord.size());
      const std::size_t at =
          hit ? static_cast<std::size_t>(static_cast<const char*>(hit) - text.data()) : text.size();
      const auto before = hit ? text.rfind('\n', at) : std::string_view::npos;
      const std::size_t begin = !hit                               ? text.size()
                                : before == std::string_view::npos ? 0
                                                                   : before + 1;
      const std::string_view skipped = text.substr(0, begin);
      if (::memmem(skipped.data(), skipped.size(), kStart.data(), kStart.size())) log_.started();
      number_ += static_cast<std::uint64_t>(std::count(skipped.begin(), skipped.end(), '\n'));
      if (!hit) return;
      const auto newline = text.find('\n', at);
      const bool has_end = newline != std::string_view::npos;
      const std::size_t end = has_end ? newline : text.size();
      const std::string_view line = text.substr(begin, end - begin);
      if (line.find(kStart) != std::string_view::npos) log_.started();
      log_.at_line(number_);
      for (std::size_t word = at - begin; word != std::string_view::npos;
           word = line.find(kWord, word + 1)) {
        if (log_.line(line, word, has_end || ended)) break;
      }
      if (!has_end) return;
      ++number_;
      text.remove_prefix(end + 1);
    }
  }

  Log& log_;
  std::string carry_;
  std::uint64_t number_ = 1;
};

}  // namespace

Result<std::optional<Source>> read_megatron_log(const Input& input) {
  // Text of any encoding, but no binary: checkpoints are large and hold no log.
  if (!input.forced && input.head.find('\0') != std::string_view::npos) {
    return std::optional<Source>();
  }
  Log log(input);
  Scanner scanner(log);
  const auto done = read_stream(input.path, [&](std::span<const std::byte> piece) -> Result<void> {
    scanner.take({reinterpret_cast<const char*>(piece.data()), piece.size()});
    return {};
  });
  if (!done) return tl::unexpected(done.error());
  scanner.finish();
  if (!log.any()) return std::optional<Source>();
  return std::optional<Source>(log.finish());
}

}  // namespace qualify::evidence
