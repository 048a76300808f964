#include "story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "qualify/base/files.hpp"
#include "qualify/ledger/signer.hpp"
#include "qualify/run/progress.hpp"

namespace qualify::rebuild {

namespace {

using journal::TranscriptRow;

constexpr const char* kUnknown = "unknown";

Json values_of(const TranscriptRow& row) {
  return parse_json(row.values, row.table).value_or(Json::object());
}
std::string text_of(const Json& values, const char* name) {
  const auto found = values.find(name);
  return found != values.end() && found->is_string() ? found->get<std::string>() : std::string();
}
std::int64_t number_of(const Json& values, const char* name) {
  const auto found = values.find(name);
  return found != values.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// "events 3 to 7", "event 3".
std::string range(const std::string& table, std::int64_t first, std::int64_t last) {
  return first == last ? fmt::format("{} {}", table, first)
                       : fmt::format("{}s {} to {}", table, first, last);
}

class Teller {
 public:
  Teller(const run::StatePaths& paths, Rebuilt& result) : paths_(paths), result_(result) {}

  void take(const journal::Transcript& transcript) {
    for (const TranscriptRow& row : transcript.rows) rows_[row.table].emplace(row.key, row);
  }

  /// What the transcript lacks: behind its end where the last writer was killed, and in the middle
  /// where lines are damaged.
  void fill(const journal::Transcript& transcript, const Rows& salvaged) {
    const bool with_gaps = !transcript.faults.empty() || transcript.rows.empty();
    for (const journal::GrowingTable& table : journal::growing_tables()) {
      auto& known = rows_[table.name];
      const auto found = salvaged.find(table.name);
      static const std::map<std::int64_t, TranscriptRow> kNone;
      const auto& others = found == salvaged.end() ? kNone : found->second;
      const auto said = transcript.last.find(table.name);
      std::int64_t last = said == transcript.last.end() ? table.first - 1 : said->second;
      for (const auto& [key, row] : others) {
        if (known.count(key) > 0 || (key <= last && !with_gaps)) continue;
        const bool proven =
            std::any_of(transcript.faults.begin(), transcript.faults.end(),
                        [&, &candidate = row](const journal::TranscriptFault& fault) {
                          return is_row_of(fault, candidate);
                        });
        result_.salvaged.push_back(words_for(row) + (proven ? ", proven by the transcript's digest"
                                                            : ", which no digest vouches for"));
        known.emplace(key, row);
      }
      if (!with_gaps) continue;
      if (!known.empty()) last = std::max(last, known.rbegin()->first);
      std::int64_t expected = table.first;
      for (const auto& [key, row] : known) {
        if (key > expected) lose(range(table.name, expected, key - 1));
        expected = key + 1;
      }
      if (expected <= last) lose(range(table.name, expected, last));
    }
  }

  /// A job that was intended must stay so: its folder says it where no row does.
  void remake_intents(const std::vector<AttemptFolder>& attempts) {
    std::set<std::tuple<std::string, std::string, std::int64_t>> intended;
    std::set<std::string> planned;
    for (const auto& [key, row] : rows_["event"]) {
      const Json values = values_of(row);
      const std::string kind = text_of(values, "kind");
      if (kind == run::event::kPlanCreated) planned.insert(text_of(values, "qualification"));
      if (kind != run::event::kIntent) continue;
      intended.insert(
          {text_of(values, "qualification"), text_of(values, "run"), number_of(values, "attempt")});
    }
    for (const AttemptFolder& attempt : attempts) {
      if (intended.count({attempt.qualification, attempt.run, attempt.attempt}) > 0) continue;
      if (planned.count(attempt.qualification) > 0) remake_intent(attempt);
    }
  }

  /// Every qualification has its row, and what is told of it makes sense.
  void mend_qualifications(const std::vector<AttemptFolder>& attempts) {
    auto& table = rows_["qualification"];
    std::set<std::string> known;
    for (const auto& [key, row] : table) known.insert(text_of(values_of(row), "name"));
    const auto add = [&](const std::string& name, const std::string& gate,
                         const std::string& bundle, const std::string& policy, std::int64_t time) {
      const auto dash = name.rfind('-');
      const std::string number = dash == std::string::npos ? "" : name.substr(dash + 1);
      if (known.count(name) > 0 || number.empty() || name.substr(0, dash) != gate ||
          number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos) {
        return false;
      }
      const std::int64_t id = table.empty() ? 1 : table.rbegin()->first + 1;
      const Json values = {
          {"id", id},         {"name", name},     {"gate", gate},   {"number", std::stoll(number)},
          {"bundle", bundle}, {"policy", policy}, {"started", time}};
      table.emplace(id, TranscriptRow{0, "qualification", id, canonical_bytes(values)});
      known.insert(name);
      return true;
    };
    std::map<std::string, std::vector<journal::Event>> stories;
    for (const auto& [key, row] : rows_["event"]) {
      const Json values = values_of(row);
      journal::Event event{key,
                           Time(Duration(number_of(values, "time"))),
                           text_of(values, "qualification"),
                           text_of(values, "run"),
                           static_cast<int>(number_of(values, "attempt")),
                           text_of(values, "kind"),
                           text_of(values, "payload")};
      if (event.qualification.empty()) continue;
      if (event.kind == run::event::kPlanCreated) {
        const auto payload = parse_json(event.payload, "event");
        if (payload &&
            add(event.qualification, text_of(*payload, "gate"), text_of(*payload, "bundle"),
                text_of(*payload, "policy"), number_of(values, "time"))) {
          result_.remade.push_back("the row of qualification " + event.qualification +
                                   ", from its plan");
        }
      }
      stories[event.qualification].push_back(std::move(event));
    }
    for (const auto& [name, events] : stories) {
      const auto derived = run::derive(events);
      if (derived && known.count(name) > 0) continue;
      lose(fmt::format(
          "qualification {}: what is left of it makes no sense ({}); its {} events stay "
          "in the files that are kept",
          name, derived ? "its row is gone" : derived.error().message, events.size()));
      for (const journal::Event& event : events) rows_["event"].erase(event.sequence);
    }
    for (const AttemptFolder& attempt : attempts) {
      if (add(attempt.qualification, attempt.gate, attempt.bundle, kUnknown, 0)) {
        lose("qualification " + attempt.qualification +
             ": its plan; its number and its folders are kept, and it cannot be gone on with");
      }
    }
  }

  /// A log has no gaps: it ends before the first record that cannot be had back.
  void mend_log() {
    std::set<std::string> keys;
    for (const auto& [key, row] : rows_["public_key"]) {
      keys.insert(text_of(values_of(row), "key_id"));
    }
    auto& records = rows_["record"];
    std::int64_t next = 0;
    for (auto at = records.begin(); at != records.end();) {
      const bool follows =
          at->first == next && has_key(text_of(values_of(at->second), "key_id"), keys);
      if (follows) {
        ++next;
        ++at;
        continue;
      }
      lose(words_for(at->second) +
           fmt::format(": the log ends before record {}, which is lost", next));
      at = records.erase(at);
    }
  }

  Rows take_rows() { return std::move(rows_); }

 private:
  void lose(std::string what) { result_.lost.push_back(std::move(what)); }

  /// Keys lie beside the database too.
  bool has_key(const std::string& wanted, std::set<std::string>& keys) {
    if (keys.count(wanted) > 0) return true;
    std::error_code error;
    for (fs::directory_iterator at(paths_.signing_key().parent_path(), error), end;
         !error && at != end; at.increment(error)) {
      if (at->path().extension() != ".pub") continue;
      const auto key = ledger::load_public_key(at->path());
      if (!key || key->key_id() != wanted) continue;
      auto& table = rows_["public_key"];
      const std::int64_t id = table.empty() ? 1 : table.rbegin()->first + 1;
      table.emplace(id, TranscriptRow{0, "public_key", id,
                                      canonical_bytes({{"key_id", wanted}, {"pem", key->pem()}})});
      keys.insert(wanted);
      result_.remade.push_back("public key " + wanted.substr(0, 12) + ", from " +
                               at->path().filename().string());
      return true;
    }
    return false;
  }

  /// Before the first event of the attempt, at a place whose row is lost; at the end where nothing
  /// is told of the attempt.
  void remake_intent(const AttemptFolder& attempt) {
    auto& events = rows_["event"];
    std::int64_t before = events.empty() ? 1 : events.rbegin()->first + 1;
    std::int64_t after = 0;  // the last event of this run's earlier attempts, or the plan
    for (const auto& [key, row] : events) {
      const Json values = values_of(row);
      if (text_of(values, "qualification") != attempt.qualification) continue;
      const bool of_run = text_of(values, "run") == attempt.run;
      const auto number = number_of(values, "attempt");
      if (of_run && number == attempt.attempt) {
        before = std::min(before, key);
      } else if (text_of(values, "kind") == run::event::kPlanCreated ||
                 (of_run && number < attempt.attempt)) {
        after = std::max(after, key);
      }
    }
    std::int64_t place = before;
    while (place > after && events.count(place) > 0) --place;
    if (place <= after) return;  // derive() says what is wrong
    const auto previous = events.lower_bound(place);
    const std::int64_t time =
        previous == events.begin() ? 0 : number_of(values_of(std::prev(previous)->second), "time");
    const Json payload = {{"nonce", attempt.nonce}, {"rebuilt_from", "job-plan.json"}};
    const Json values = {{"sequence", place},
                         {"time", time},
                         {"qualification", attempt.qualification},
                         {"run", attempt.run},
                         {"attempt", attempt.attempt},
                         {"kind", run::event::kIntent},
                         {"payload", canonical_bytes(payload)}};
    events.emplace(place, TranscriptRow{0, "event", place, canonical_bytes(values)});
    result_.remade.push_back(
        fmt::format("event {}: the intent of {}, run {}, attempt {}, from its "
                    "job-plan.json",
                    place, attempt.qualification, attempt.run, attempt.attempt));
  }

  const run::StatePaths& paths_;
  Rebuilt& result_;
  Rows rows_;
};

}  // namespace

std::string words_for(const TranscriptRow& row) {
  const Json values = values_of(row);
  std::string words = fmt::format("{} {}", row.table, row.key);
  std::string detail;
  for (const char* name : {"kind", "qualification", "run", "name", "gate", "id", "size"}) {
    const auto found = values.find(name);
    if (found == values.end() || found->is_null() || (row.table != "record" && *found == row.key)) {
      continue;
    }
    const std::string text = found->is_string() ? found->get<std::string>() : found->dump();
    if (text.empty()) continue;
    const bool number = found->is_number();
    detail += (detail.empty() ? "" : ", ") + (number ? std::string(name) + " " : std::string()) +
              (text.size() == 64 ? text.substr(0, 12) : text);
  }
  return detail.empty() ? words : words + " (" + detail + ")";
}

Rows tell(const journal::Transcript& transcript, const Rows& salvaged,
          const std::vector<AttemptFolder>& attempts, const run::StatePaths& paths,
          Rebuilt& result) {
  Teller teller(paths, result);
  teller.take(transcript);
  teller.fill(transcript, salvaged);
  teller.remake_intents(attempts);
  teller.mend_qualifications(attempts);
  teller.mend_log();
  return teller.take_rows();
}

}  // namespace qualify::rebuild
