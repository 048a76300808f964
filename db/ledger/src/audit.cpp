#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "qualify/base/parallel.hpp"
#include "qualify/ledger/log.hpp"
#include "qualify/ledger/merkle.hpp"

namespace qualify::ledger {

namespace {

constexpr std::size_t kBatch = 512;  // records; two batches are in memory at once

/// All complete subtrees of a log, in memory: 64 bytes a leaf.
class Tree {
 public:
  void add(Digest hash) {
    for (std::size_t level = 0;; ++level) {
      if (levels_.size() == level) levels_.emplace_back();
      auto& nodes = levels_[level];
      nodes.push_back(hash);
      if (nodes.size() % 2 != 0) return;
      hash = merkle::node_hash(nodes[nodes.size() - 2], hash);
    }
  }
  [[nodiscard]] std::uint64_t size() const { return levels_.empty() ? 0 : levels_[0].size(); }
  [[nodiscard]] Digest root(std::uint64_t size) const {
    return merkle::root(size,
                        [&](int level, std::uint64_t index) -> Result<Digest> {
                          return levels_[static_cast<std::size_t>(level)][index];
                        })
        .value();
  }
  [[nodiscard]] const Digest* node(std::int64_t level, std::int64_t position) const {
    const auto l = static_cast<std::size_t>(level);
    const auto p = static_cast<std::size_t>(position);
    return level >= 0 && l < levels_.size() && position >= 0 && p < levels_[l].size()
               ? &levels_[l][p]
               : nullptr;
  }
  [[nodiscard]] std::size_t nodes() const {
    std::size_t all = 0;
    for (const auto& level : levels_) all += level.size();
    return all;
  }

 private:
  std::vector<std::vector<Digest>> levels_;
};

/// Public keys by their PEM text; parsed once.
using Keys = std::map<std::string, Result<PublicKey>>;

struct Checked {
  std::optional<Error> fault;
  std::optional<Digest> leaf;
  Json statement;  ///< null where the payload is none
};

Checked check(const Record& record, const Result<PublicKey>& key) {
  auto statement = statement_of(record);
  Checked checked;
  if (!key) {
    checked.fault = key.error();
  } else {
    if (auto good = verify_record(record, *key, statement); !good) checked.fault = good.error();
    checked.leaf = merkle::leaf_hash(leaf_of(record.envelope, *key));
  }
  if (statement) checked.statement = std::move(*statement);
  return checked;
}

class Audit {
 public:
  Audit(journal::Database& database, unsigned threads, const VisitBatch& visit)
      : database_(&database), threads_(std::max(1U, threads)), visit_(visit) {}

  /// One thread reads on while the others check what was read.
  void records() {
    const Ledger ledger(*database_);
    auto rows = ledger.rows(0, kBatch);
    while (rows && !rows->empty()) {
      learn_keys(*rows);
      std::vector<Checked> checked(rows->size());
      Result<std::vector<Ledger::Row>> next;
      for_each_index(rows->size() + 1, threads_, [&](std::size_t i) {
        if (i == 0) {
          next = ledger.rows(rows->back().position + 1, kBatch);
        } else if (const auto& record = (*rows)[i - 1].record) {
          checked[i - 1] = check(*record, keys_.at(record->public_key_pem));
        }
      });
      take(*rows, checked);
      rows = std::move(next);
    }
    if (!rows) fault(rows.error());
    result_.root = tree_.root(tree_.size());
  }

  void nodes() {
    auto select =
        database_->prepare("SELECT level, position, hash FROM tree_node ORDER BY level, position");
    if (!select) return fault(select.error());
    std::size_t seen = 0;
    std::size_t wrong = 0;
    for (;;) {
      auto row = select->step();
      if (!row) return fault(row.error());
      if (!*row) break;
      ++seen;
      const Digest* node = tree_.node(select->number(0), select->number(1));
      const std::string bytes = select->text(2);
      if (node == nullptr ||
          !std::equal(bytes.begin(), bytes.end(), node->bytes().begin(), node->bytes().end(),
                      [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; })) {
        ++wrong;
      }
    }
    if (wrong > 0) {
      fault({Errc::integrity,
             std::to_string(wrong) + " of " + std::to_string(seen) +
                 " tree nodes are not those of the records",
             "log",
             {},
             {}});
    }
    if (seen < tree_.nodes()) {
      fault({Errc::integrity,
             std::to_string(tree_.nodes() - seen) + " tree nodes are missing",
             "log",
             "qualify log checkpoint adds those of an older version",
             {}});
    }
  }

  void checkpoints(const std::optional<LogVerifier>& verifier) {
    const auto kept = Log(*database_).checkpoints();
    if (!kept) return fault(kept.error());
    if (!kept->empty() && !verifier) {
      fault({Errc::integrity,
             "the log's public key is not at hand: checkpoints are not checked",
             "log",
             "give it with --log-key",
             {}});
    }
    for (const SignedCheckpoint& each : *kept) {
      const std::string where = "checkpoint of size " + std::to_string(each.checkpoint.size);
      if (verifier) {
        const auto opened = open_checkpoint(each.note, *verifier);
        if (!opened) {
          fault_at(where, opened.error());
          continue;
        }
        if (*opened != each.checkpoint) {
          fault({Errc::integrity, "its columns are not those that were signed", where, {}, {}});
        }
        must_continue(where, *opened);
      } else {
        must_continue(where, each.checkpoint);
      }
      ++result_.checkpoints;
    }
  }

  void remembered(const std::vector<std::string>& notes,
                  const std::optional<LogVerifier>& verifier) {
    for (const std::string& note : notes) {
      if (!verifier) {
        fault({Errc::integrity,
               "the log's public key is not at hand",
               "remembered checkpoint",
               "give it with --log-key",
               {}});
        return;
      }
      const auto opened = open_checkpoint(note, *verifier);
      if (!opened) {
        fault_at("remembered checkpoint", opened.error());
        continue;
      }
      must_continue("remembered checkpoint of size " + std::to_string(opened->size), *opened);
      ++result_.checkpoints;
    }
  }

  LogAudit take() { return std::move(result_); }

 private:
  void learn_keys(const std::vector<Ledger::Row>& rows) {
    for (const auto& [position, record] : rows) {
      if (!record || keys_.contains(record->public_key_pem)) continue;
      keys_.emplace(record->public_key_pem, PublicKey::parse_pem(record->public_key_pem));
    }
  }

  void take(std::vector<Ledger::Row>& rows, std::vector<Checked>& checked) {
    std::vector<Record> records;
    std::vector<Json> statements;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      must_follow(rows[i].position);
      auto& record = rows[i].record;
      if (checked[i].fault) fault(*checked[i].fault);
      // Without a leaf (no record, no usable key) the tree cannot be right any more, and says so.
      tree_.add(checked[i].leaf.value_or(Digest()));
      if (!record) {
        fault(record.error());
        continue;
      }
      if (record->time < newest_) {
        fault({Errc::integrity,
               "it is older than a record before it: it was dated back",
               "record " + std::to_string(record->index),
               {},
               {}});
      }
      newest_ = std::max(newest_, record->time);
      records.push_back(std::move(*record));
      statements.push_back(std::move(checked[i].statement));
    }
    if (visit_ && !records.empty()) visit_(records, statements);
  }

  void must_follow(std::int64_t position) {
    const std::int64_t expected = next_;
    next_ = position + 1;
    ++result_.size;
    if (position == expected) return;
    fault({Errc::integrity,
           position - expected == 1 ? "record " + std::to_string(expected) + " is missing"
                                    : "records " + std::to_string(expected) + " to " +
                                          std::to_string(position - 1) + " are missing",
           "log",
           {},
           {}});
  }

  void must_continue(const std::string& where, const Checkpoint& checkpoint) {
    if (checkpoint.size > tree_.size()) {
      fault({Errc::integrity,
             "the log was cut: it has " + std::to_string(tree_.size()) +
                 " records, and signed for " + std::to_string(checkpoint.size),
             where,
             {},
             {}});
    } else if (tree_.root(checkpoint.size) != checkpoint.root) {
      fault({Errc::integrity,
             "the log was rewritten: its first " + std::to_string(checkpoint.size) +
                 " records are not those that were signed for",
             where,
             {},
             {}});
    }
  }
  void fault(Error error) { result_.faults.push_back(std::move(error)); }
  void fault_at(const std::string& where, Error error) {
    error.context = where;
    error.code = Errc::integrity;
    fault(std::move(error));
  }

  journal::Database* database_;
  unsigned threads_;
  const VisitBatch& visit_;
  Keys keys_;
  Time newest_ = Time::min();  ///< of the records so far
  std::int64_t next_ = 0;      ///< position that comes next
  Tree tree_;
  LogAudit result_;
};

}  // namespace

LogAudit audit_log(journal::Database& database, const std::optional<LogVerifier>& verifier,
                   const std::vector<std::string>& remembered, unsigned threads,
                   const VisitBatch& visit) {
  Audit audit(database, threads, visit);
  audit.records();
  audit.nodes();
  audit.checkpoints(verifier);
  audit.remembered(remembered, verifier);
  return audit.take();
}

}  // namespace qualify::ledger
