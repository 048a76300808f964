#include <unordered_set>

#include "qualify/evidence/lines.hpp"
#include "qualify/traces/raw.hpp"
#include "record.hpp"

namespace qualify::traces {

namespace {

constexpr std::size_t kMostFaults = 20;
constexpr std::size_t kLongestName = 65536;

/// Keys that one iteration has had. Emptied by counting on, not by clearing.
class Seen {
 public:
  void clear() {
    ++generation_;
    count_ = 0;
  }
  /// False: it was there.
  bool add(std::uint64_t key) {
    if (2 * ++count_ > slots_.size()) grow();
    return place(key);
  }

 private:
  struct Slot {
    std::uint64_t key = 0;
    std::uint64_t generation = 0;
  };
  bool place(std::uint64_t key) {
    for (std::size_t at = key & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].generation != generation_) {
        slots_[at] = {key, generation_};
        return true;
      }
      if (slots_[at].key == key) return false;
    }
  }
  void grow() {
    std::vector<Slot> old(std::max<std::size_t>(512, 4 * slots_.size()));
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.generation == generation_) (void)place(slot.key);
    }
  }
  std::vector<Slot> slots_ = std::vector<Slot>(512);
  std::uint64_t generation_ = 1;
  std::size_t count_ = 0;
};

class Reader {
 public:
  Reader(const RawRank& rank, const Manifest& manifest, const RawReading& reading, Strings& strings,
         RawEnd& end, const EachEvent& each)
      : rank_(rank),
        reading_(reading),
        strings_(strings),
        end_(end),
        each_(each),
        parser_(manifest, strings),
        dense_(manifest.present),
        place_(reading.from) {
    last_sequence_ = reading.from.last_sequence;
  }

  Result<void> read() {
    for (place_.file = reading_.from.file; place_.file < rank_.files.size() && going_;
         ++place_.file) {
      const RawRank::File& file = rank_.files[place_.file];
      if (file.iteration > reading_.to_iteration) break;
      const bool first = place_.file == reading_.from.file;
      evidence::LineStart start;
      if (first) start = {reading_.from.byte, reading_.from.line};
      next_ = start.byte;
      schema_ = Schema::none;
      if (!first || start.byte == 0) file_begins_ = true;
      auto done = evidence::for_each_line(
          file.path, [&](const evidence::Line& line) { return this->line(line); }, start);
      if (!done) return tl::unexpected(done.error());
    }
    if (more_faults_ > 0) {
      end_.faults.push_back({"malformed", std::to_string(more_faults_) + " further faults",
                             rank_.files.empty() ? "" : rank_.files.back().path.string()});
    }
    return {};
  }

 private:
  void fault(const char* code, std::string message) {
    if (end_.faults.size() >= kMostFaults) {
      ++more_faults_;
      return;
    }
    end_.faults.push_back(
        {code, std::move(message),
         rank_.files[place_.file].path.string() + ":" + std::to_string(place_.line)});
  }

  bool line(const evidence::Line& line) {
    place_.byte = next_;
    place_.line = line.number;
    place_.last_sequence = last_sequence_;
    next_ += line.text.size() + (line.ended ? 1 : 0);
    if (line.text.find_first_not_of(" \t\r") == std::string_view::npos) return true;
    if (!line.ended && reading_.still_written) return false;
    if (!line.whole) {
      fault("malformed", "the line is longer than 16 MiB");
      return true;
    }
    const std::size_t last = line.text.find_last_not_of(" \t\r");
    if (!parser_.parse(line.text, evidence::kLinePadding, record_) || line.text[last] != '}') {
      fault(line.ended ? "malformed" : "truncated",
            line.ended ? "the line is not a record of a trace" : "the last line is cut off");
      return true;
    }
    return take();
  }

  bool take() {
    if (record_.schema == Schema::none || record_.iteration < 0 || record_.sequence < 0 ||
        record_.rank < 0 || record_.events.front().site == 0) {
      fault("malformed",
            "the record lacks what both schemas have: name, iteration, rank, sequence");
      return true;
    }
    if (strings_.text(record_.events.front().site).size() > kLongestName) {
      fault("malformed", "a name is longer than 64 KiB");
      return true;
    }
    if (schema_ == Schema::none) {
      schema_ = record_.schema;
      if (end_.schema.empty()) end_.schema = name_of(schema_);
    }
    if (record_.schema != schema_ || end_.schema != name_of(schema_)) {
      fault("mixed-schema", std::string("a record of ") + name_of(record_.schema) +
                                " in a trace that began as " + end_.schema);
      return true;
    }
    if (record_.rank != rank_.rank) {
      fault("wrong-rank", "a record of rank " + std::to_string(record_.rank) +
                              " in a file of rank " + std::to_string(rank_.rank));
      return true;
    }
    check_sequence();
    if (record_.iteration != iteration_) {
      if (record_.iteration > reading_.to_iteration) return going_ = false;
      if (record_.iteration < iteration_) {
        fault("sequence-gap", "iteration " + std::to_string(record_.iteration) + " comes after " +
                                  std::to_string(iteration_));
        return true;
      }
      iteration_ = record_.iteration;
      seen_.clear();
      counts_.clear();
    }
    for (Event& event : record_.events) {
      if (!record_.has_occurrence) {
        event.occurrence = counts_[identity(event, strings_, false)]++;
      }
      if (!seen_.add(identity(event, strings_, true))) {
        fault("duplicate-key", "a second " + std::string(strings_.text(event.site)) +
                                   " with the same place and occurrence");
        continue;
      }
      if (!each_(event, place_)) return going_ = false;
    }
    return true;
  }

  /// The fork counts 0, 1, 2, … in each file; the other increases, without holes where a manifest
  /// says that this project's tracer wrote it.
  void check_sequence() {
    const std::int64_t last = file_begins_ && schema_ == Schema::fork ? -1 : last_sequence_;
    file_begins_ = false;
    last_sequence_ = record_.sequence;
    const bool good =
        schema_ == Schema::fork || dense_ ? record_.sequence == last + 1 : record_.sequence > last;
    if (good) return;
    fault("sequence-gap", "sequence " + std::to_string(record_.sequence) +
                              (last >= 0 ? " after " + std::to_string(last) : " is the first") +
                              ": a record is missing or moved");
  }

  const RawRank& rank_;
  const RawReading& reading_;
  Strings& strings_;
  RawEnd& end_;
  const EachEvent& each_;
  RecordParser parser_;
  bool dense_;
  RawPlace place_;
  Record record_;
  Schema schema_ = Schema::none;
  Seen seen_;
  std::unordered_map<std::uint64_t, std::uint32_t> counts_;
  std::uint64_t next_ = 0;
  std::int64_t last_sequence_ = -1;
  std::int64_t iteration_ = -1;
  std::size_t more_faults_ = 0;
  bool file_begins_ = false;
  bool going_ = true;
};

}  // namespace

Result<void> read_raw(const RawRank& rank, const Manifest& manifest, const RawReading& reading,
                      Strings& strings, RawEnd& end, const EachEvent& each) {
  return Reader(rank, manifest, reading, strings, end, each).read();
}

}  // namespace qualify::traces
