#include "qualify/journal/transcript.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "transcript_line.hpp"

namespace qualify::journal {

namespace {

constexpr std::size_t kHex = 2 * Digest::kBytes;
constexpr std::string_view kHexDigits = "0123456789abcdef";

bool is_hex(std::string_view text, std::size_t size) {
  return text.size() == size && text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

Json body_of(const TranscriptLine& line) {
  return {{"after", line.after}, {"row", line.row}, {"table", line.table}};
}

const GrowingTable* table_named(const std::string& name) {
  for (const GrowingTable& table : growing_tables()) {
    if (name == table.name) return &table;
  }
  return nullptr;
}

/// Where the line stands among those before it, when its digest is right.
std::optional<std::string> misplaced(const TranscriptLine& line, const LastKeys& before) {
  const GrowingTable* table = table_named(line.table);
  if (table == nullptr) return "of a table that this qualify does not know: '" + line.table + "'";
  const auto known = before.find(line.table);
  const std::int64_t least = known == before.end() ? table->first : known->second + 1;
  // More than the least where an earlier rebuilding could not have everything back.
  LastKeys after = before;
  after[line.table] = std::max(least, line.after.at(line.table));
  if (line.after != after) return "not a next row of '" + line.table + "'";
  return std::nullopt;
}

}  // namespace

const std::vector<GrowingTable>& growing_tables() {
  static const std::vector<GrowingTable> all = {{"qualification", "id", 1},
                                                {"event", "sequence", 1},
                                                {"public_key", "rowid", 1},
                                                {"record", "position", 0},
                                                {"checkpoint", "id", 1}};
  return all;
}

std::optional<TranscriptLine> parse_line(std::string_view text) {
  auto json = parse_json(text, "transcript");
  if (!json || !json->is_object() || json->size() != 4) return std::nullopt;
  if (const auto canonical = canonical_json(*json); !canonical || *canonical != text) {
    return std::nullopt;
  }
  try {
    TranscriptLine line;
    line.table = json->at("table").get<std::string>();
    line.row = json->at("row");
    line.after = json->at("after").get<LastKeys>();
    line.chain = json->at("chain").get<std::string>();
    if (!line.row.is_object() || !is_hex(line.chain, kHex) || line.after.count(line.table) == 0) {
      return std::nullopt;
    }
    return line;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string to_text(const TranscriptLine& line) {
  Json json = body_of(line);
  json["chain"] = line.chain;
  return canonical_bytes(json) + "\n";
}

std::string chain_of(const std::string& chain_before, const TranscriptLine& line) {
  const auto body = canonical_json(body_of(line));
  return body ? sha256(chain_before + *body).hex() : std::string();
}

std::string legible_chain(std::string_view text) {
  constexpr std::string_view kKey = "\"chain\":\"";
  const auto at = text.rfind(kKey);  // a lost line feed joins two lines
  if (at == std::string_view::npos) return {};
  const std::string_view digits = text.substr(at + kKey.size(), kHex);
  return is_hex(digits, kHex) ? std::string(digits) : std::string();
}

Result<Transcript> read_transcript(const std::filesystem::path& file) {
  auto text = read_file(file, 64ULL << 30U);
  if (!text) return tl::unexpected(text.error());
  Transcript transcript;
  std::string stated;    // digest of the line before, as it says
  std::string computed;  // and as it should be, where that is known
  std::optional<std::pair<TranscriptRow, LastKeys>> doubted;  // the row of that line
  std::size_t number = 0;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) {
      transcript.torn = true;
      break;
    }
    const std::string_view line_text = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    ++number;
    TranscriptFault fault{number, {}, transcript.last, stated, legible_chain(line_text)};
    auto line = parse_line(line_text);
    if (!line) {
      fault.why = "it cannot be read";
      transcript.faults.push_back(fault);
      doubted.reset();
      stated = fault.chain;
      continue;
    }
    const std::string should = chain_of(stated, *line);
    bool proven = should == line->chain;
    if (!proven && doubted && chain_of(computed, *line) == line->chain) {
      // It was only the digest of the line before that is damaged: this one proves the rest of it.
      proven = true;
      transcript.faults.back().why = "its digest is damaged, its row is not";
      transcript.last = doubted->second;
      transcript.rows.push_back(std::move(doubted->first));
    }
    doubted.reset();
    const auto place = proven ? misplaced(*line, transcript.last) : std::nullopt;
    // After a damaged line the keys may jump over what it had.
    const bool after_fault =
        !transcript.faults.empty() && transcript.faults.back().line + 1 == number;
    if (proven && (!place || after_fault)) {
      transcript.last = line->after;
      transcript.rows.push_back(
          {number, line->table, line->after.at(line->table), canonical_bytes(line->row)});
      stated = line->chain;
      continue;
    }
    fault.why = place ? *place : "its digest is another";
    transcript.faults.push_back(fault);
    if (!proven && !misplaced(*line, transcript.last)) {
      doubted.emplace(TranscriptRow{number, line->table, line->after.at(line->table),
                                    canonical_bytes(line->row)},
                      line->after);
      computed = should;
    }
    stated = line->chain;
  }
  return transcript;
}

bool is_row_of(const TranscriptFault& fault, const TranscriptRow& row) {
  if (fault.chain.empty()) return false;
  TranscriptLine line;
  line.table = row.table;
  auto values = parse_json(row.values, "row");
  if (!values) return false;
  line.row = std::move(*values);
  line.after = fault.before;
  line.after[row.table] = row.key;
  return chain_of(fault.chain_before, line) == fault.chain;
}

Result<std::optional<TranscriptRow>> row_of(const Database& database, const GrowingTable& table,
                                            std::int64_t key) {
  auto select = database.prepare(std::string("SELECT * FROM ") + table.name + " WHERE " +
                                 table.key + " = ?1");
  if (!select) return tl::unexpected(select.error());
  select->bind(1, key);
  auto found = select->step();
  if (!found) return tl::unexpected(found.error());
  if (!*found) return std::optional<TranscriptRow>();
  auto values = canonical_json(select->row());
  if (!values) {
    return fail(Errc::integrity, "row " + std::to_string(key) + " of '" + table.name +
                                     "' is damaged: " + values.error().message);
  }
  return std::optional(TranscriptRow{0, table.name, key, std::move(*values)});
}

Result<std::optional<std::int64_t>> last_key_of(const Database& database,
                                                const GrowingTable& table) {
  auto select = database.prepare(std::string("SELECT max(") + table.key + ") FROM " + table.name);
  if (!select) return tl::unexpected(select.error());
  auto found = select->step();
  if (!found) return tl::unexpected(found.error());
  if (!*found || select->is_null(0)) return std::optional<std::int64_t>();
  return std::optional(select->number(0));
}

Result<void> insert_row(const Database& database, const TranscriptRow& row) {
  const GrowingTable* table = table_named(row.table);
  if (table == nullptr) return fail(Errc::invalid_input, "no table '" + row.table + "'");
  auto read = parse_json(row.values, row.table);
  if (!read) return tl::unexpected(read.error());
  Json& values = *read;
  if (!values.contains(table->key)) values[table->key] = row.key;  // a rowid is no column
  std::string names;
  std::string places;
  for (const auto& [name, value] : values.items()) {
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") != std::string::npos) {
      return fail(Errc::invalid_input, "no column '" + name + "'");
    }
    names += (names.empty() ? "" : ", ") + name;
    places += places.empty() ? "?" : ", ?";
  }
  auto insert =
      database.prepare("INSERT INTO " + row.table + " (" + names + ") VALUES (" + places + ")");
  if (!insert) return tl::unexpected(insert.error());
  int position = 0;
  for (const auto& [name, value] : values.items()) {
    ++position;
    if (value.is_null()) {
      insert->bind_null(position);
    } else if (value.is_number_integer()) {
      insert->bind(position, value.get<std::int64_t>());
    } else if (value.is_string()) {
      insert->bind(position, value.get_ref<const std::string&>());
    } else {
      const std::string& hex = value.at("hex").get_ref<const std::string&>();
      if (!is_hex(hex, hex.size()) || hex.size() % 2 != 0) {
        return fail(Errc::invalid_input, "not a blob", row.table);
      }
      std::string bytes;
      for (std::size_t i = 0; i < hex.size(); i += 2) {
        bytes += static_cast<char>(kHexDigits.find(hex[i]) * 16 + kHexDigits.find(hex[i + 1]));
      }
      insert->bind_blob(position, bytes);
    }
  }
  auto done = insert->step();
  if (!done) return tl::unexpected(done.error());
  return {};
}

}  // namespace qualify::journal
