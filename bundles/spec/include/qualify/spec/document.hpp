#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qualify/base/clock.hpp"
#include "qualify/base/error.hpp"

/// Strict YAML 1.2 for files that people write: one document, no anchors or aliases, no tags, no
/// duplicate keys, string keys only; every value knows where it stands.
namespace qualify::spec {

/// Where a value stands in its file, 1-based; {0, 0} = nowhere.
struct Mark {
  int line = 0;
  int column = 0;
};

struct Node {
  enum class Kind { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  Mark mark;
  std::string key;      ///< when the node is a mapping's member
  Mark key_mark;        ///< of the key
  std::string scalar;   ///< text as written, unquoted
  bool quoted = false;  ///< '…' or "…" or block text: always a string, never a number
  std::vector<Node> items;
  std::vector<Node> members;  ///< in file order

  [[nodiscard]] const Node* find(std::string_view name) const;
};

/// `file` only names the source in errors. Errors: invalid_input with file:line:column.
[[nodiscard]] Result<Node> parse_yaml(std::string_view text, const std::string& file);

/// Reads and parses; at most 4 MiB. Errors: not_found, io, invalid_input.
[[nodiscard]] Result<Node> read_yaml(const std::filesystem::path& file);

/// Collects everything that is wrong with one file, so that a person sees all of it at once.
class Faults {
 public:
  explicit Faults(std::string file) : file_(std::move(file)) {}
  void add(Mark mark, std::string message, std::string hint = {});
  [[nodiscard]] bool empty() const { return errors_.empty(); }
  /// The first fault with the rest as Error::others, in file order. Call only when not empty.
  [[nodiscard]] Unexpected fail();

 private:
  std::string file_;
  std::vector<std::pair<Mark, Error>> errors_;
};

/// Typed access to the members of one mapping. Whatever is wrong goes to `faults`, and the value
/// returned is then the fallback. Keys never asked for are reported by finish() as unknown.
class Fields {
 public:
  /// `what` names the mapping in messages: "the bundle", "arm 'deterministic'".
  Fields(const Node& node, std::string what, Faults& faults);

  [[nodiscard]] bool has(std::string_view key) const { return node_->find(key) != nullptr; }
  [[nodiscard]] Mark mark(std::string_view key) const;  ///< of the value, or of the mapping
  [[nodiscard]] Mark mark() const { return node_->mark; }

  std::string required_text(std::string_view key);
  std::string text(std::string_view key, std::string fallback = {});
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t least,
                       std::int64_t most);
  bool boolean(std::string_view key, bool fallback);
  Duration duration(std::string_view key, Duration fallback);
  /// One of `choices`, as its index; `fallback` when the key is missing, a fault without fallback.
  std::size_t choice(std::string_view key, const std::vector<std::string>& choices,
                     std::optional<std::size_t> fallback);
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::int64_t> integers(std::string_view key);
  std::map<std::string, std::string> text_map(std::string_view key);
  /// Calls `read` for each item of a sequence of mappings; missing = none.
  void each(std::string_view key, const std::string& what,
            const std::function<void(Fields&)>& read);
  /// Calls `read(name, fields)` for each member of a mapping of mappings, in file order.
  void each_named(std::string_view key, const std::string& what,
                  const std::function<void(const std::string&, Fields&)>& read);
  /// Calls `read` when the member is there and is a mapping.
  void section(std::string_view key, const std::string& what,
               const std::function<void(Fields&)>& read);
  /// Raw member; counts as asked for.
  const Node* child(std::string_view key);
  /// `schema_version: 1` must be there; another version is a fault.
  void schema_version(std::int64_t known);

  void fault(Mark at, std::string message, std::string hint = {}) {
    faults_->add(at, std::move(message), std::move(hint));
  }
  /// Reports unknown keys, each with the nearest known one. Call last.
  void finish();

 private:
  const Node* scalar(std::string_view key, const char* expected);
  const Node* of_kind(std::string_view key, Node::Kind kind, const char* expected);

  const Node* node_;
  std::string what_;
  Faults* faults_;
  std::vector<std::string> known_;
};

/// The candidate nearest to `text` by edit distance, or empty when none is near.
[[nodiscard]] std::string nearest(std::string_view text,
                                  const std::vector<std::string>& candidates);

}  // namespace qualify::spec
