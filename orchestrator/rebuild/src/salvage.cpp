#include "salvage.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "qualify/base/files.hpp"
#include "qualify/ledger/ledger.hpp"
#include "qualify/run/job_plan.hpp"

namespace qualify::rebuild {

namespace {

using journal::GrowingTable;
using journal::TranscriptRow;

/// A row may be whole to SQLite and hold a flipped bit: what it is must at least have its form.
bool well_formed(const TranscriptRow& row) {
  const auto json = parse_json(row.values, row.table);
  if (!json) return false;
  const auto text = [&](const char* name) {
    const auto found = json->find(name);
    return found != json->end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  if (row.table == "event") {
    const auto payload = parse_json(text("payload"), "payload");
    if (!payload || !payload->is_object() || text("kind").empty()) return false;
    const auto canonical = canonical_json(*payload);
    return canonical && *canonical == text("payload");
  }
  if (row.table == "qualification") {
    return json->at("number").is_number_integer() &&
           text("name") ==
               text("gate") + "-" + std::to_string(json->at("number").get<std::int64_t>());
  }
  if (row.table == "record") return sha256(text("payload")).hex() == text("id");
  return true;
}

/// All rows of a table that can be read: from both ends, and between them one by one.
void read_table(const journal::Database& database, const GrowingTable& table,
                std::map<std::int64_t, TranscriptRow>& rows) {
  const auto keep = [&](std::int64_t key, const journal::Statement& select) {
    auto values = canonical_json([&] {
      Json row = select.row();
      row.erase("key");
      return row;
    }());
    if (!values) return;
    TranscriptRow row{0, table.name, key, std::move(*values)};
    if (well_formed(row)) rows.try_emplace(key, std::move(row));
  };
  const auto walk = [&](const char* direction) -> std::optional<std::int64_t> {
    std::optional<std::int64_t> reached;
    auto select = database.prepare(std::string("SELECT ") + table.key + " AS \"key\", * FROM " +
                                   table.name + " NOT INDEXED ORDER BY " + table.key + direction);
    if (!select) return reached;
    for (;;) {
      const auto row = select->step();
      if (!row) return reached;
      if (!*row) return std::nullopt;  // to the other end
      reached = select->number(0);
      keep(*reached, *select);
    }
  };
  const auto low = walk(" ASC");
  const auto high = walk(" DESC");
  constexpr std::int64_t kMaxBetween = 10'000'000;  // a damaged key may say anything
  if (!low || !high || *high - *low > kMaxBetween) return;
  auto one = database.prepare(std::string("SELECT ") + table.key + " AS \"key\", * FROM " +
                              table.name + " WHERE " + table.key + " = ?1");
  if (!one) return;
  for (std::int64_t key = *low + 1; key < *high; ++key) {
    one->bind(1, key);
    if (const auto row = one->step(); row && *row) keep(key, *one);
    one->reset();
  }
}

/// A copy of the database and of its log, apart from everything.
Result<fs::path> private_copy(const fs::path& file, const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  if (auto made = make_folders(folder); !made) return tl::unexpected(made.error());
  for (const char* suffix : {"", "-wal", "-journal"}) {
    const fs::path from = file.string() + suffix;
    if (!fs::exists(from)) continue;
    fs::copy_file(from, folder / (std::string("qualify.db") + suffix), error);
    if (error) return fail_errno(error.value(), "cannot copy", from.string());
  }
  return folder / "qualify.db";
}

}  // namespace

Rows salvage(const std::vector<fs::path>& files, const fs::path& temporary) {
  Rows rows;
  const fs::path folder = temporary / "rebuild";
  for (const fs::path& file : files) {
    const auto copy = private_copy(file, folder);
    if (!copy) continue;
    // Read-write on the copy, so that its log is joined.
    const auto database = journal::Database::open_as_is(*copy);
    if (!database) continue;
    for (const GrowingTable& table : journal::growing_tables()) {
      read_table(*database, table, rows[table.name]);
    }
  }
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  return rows;
}

std::vector<AttemptFolder> attempt_folders(const run::StatePaths& paths) {
  std::vector<AttemptFolder> found;
  std::error_code error;
  for (fs::recursive_directory_iterator at(paths.runs(), error), end; !error && at != end;
       at.increment(error)) {
    if (at.depth() == 2) at.disable_recursion_pending();
    if (at.depth() != 2 || !fs::exists(at->path() / run::kJobPlanFile)) continue;
    const auto plan = run::read_job_plan(at->path() / run::kJobPlanFile);
    if (!plan) continue;
    found.push_back({plan->qualification, plan->gate, plan->run, plan->attempt, plan->nonce,
                     plan->bundle.str()});
  }
  std::sort(found.begin(), found.end(), [](const AttemptFolder& a, const AttemptFolder& b) {
    return std::tie(a.qualification, a.run, a.attempt) <
           std::tie(b.qualification, b.run, b.attempt);
  });
  return found;
}

}  // namespace qualify::rebuild
