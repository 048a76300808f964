#include <algorithm>
#include <charconv>

#include "qualify/spec/document.hpp"

namespace qualify::spec {

namespace {

const char* describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "a single value";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
  }
  return "something else";
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// A value of the wrong kind is shown as it stands, so that the reader finds it.
std::string shown(const Node& node) {
  return node.kind == Node::Kind::scalar ? "'" + node.scalar + "'" : describe(node);
}

std::optional<std::int64_t> to_integer(const Node& node) {
  std::int64_t value = 0;
  const char* const end = node.scalar.data() + node.scalar.size();
  const auto [next, error] = std::from_chars(node.scalar.data(), end, value);
  if (node.quoted || error != std::errc() || next != end) return std::nullopt;
  return value;
}

}  // namespace

std::string nearest(std::string_view text, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, text.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

void Faults::add(Mark mark, std::string message, std::string hint) {
  Error error{Errc::invalid_input, std::move(message), file_, std::move(hint), {}};
  if (mark.line > 0) {
    error.context += ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
  }
  errors_.emplace_back(mark, std::move(error));
}

Unexpected Faults::fail() {
  std::stable_sort(errors_.begin(), errors_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
  });
  Error first = std::move(errors_.front().second);
  for (std::size_t i = 1; i < errors_.size(); ++i) {
    first.others.push_back(std::move(errors_[i].second));
  }
  errors_.clear();
  return Unexpected(std::move(first));
}

Fields::Fields(const Node& node, std::string what, Faults& faults)
    : node_(&node), what_(std::move(what)), faults_(&faults) {
  static const Node kEmpty{Node::Kind::mapping, {}, {}, {}, {}, false, {}, {}};
  if (node.kind != Node::Kind::mapping) {
    fault(node.mark, what_ + " must be a mapping, found " + shown(node));
    node_ = &kEmpty;
  }
}

Mark Fields::mark(std::string_view key) const {
  const Node* node = node_->find(key);
  return node != nullptr ? node->mark : node_->mark;
}

const Node* Fields::child(std::string_view key) {
  const bool first = std::find(known_.begin(), known_.end(), key) == known_.end();
  known_.emplace_back(key);
  const Node* node = node_->find(key);
  if (node == nullptr || node->kind != Node::Kind::null) return node;
  // Not the default: whoever wrote the key meant something by it.
  if (first) {
    fault(node->key_mark, "'" + std::string(key) + "' has no value",
          "give it one, or leave the key out");
  }
  return nullptr;
}

const Node* Fields::of_kind(std::string_view key, Node::Kind kind, const char* expected) {
  const Node* node = child(key);
  if (node == nullptr || node->kind == kind) return node;
  fault(node->mark, "'" + std::string(key) + "' must be " + expected + ", found " + shown(*node));
  return nullptr;
}

const Node* Fields::scalar(std::string_view key, const char* expected) {
  return of_kind(key, Node::Kind::scalar, expected);
}

std::string Fields::required_text(std::string_view key) {
  const Node* node = scalar(key, "text");
  if (node != nullptr && !node->scalar.empty()) return node->scalar;
  const Node* there = node_->find(key);
  if (there == nullptr || (there->kind == Node::Kind::scalar && there->scalar.empty())) {
    fault(there != nullptr ? there->key_mark : node_->mark,
          what_ + " needs '" + std::string(key) + "'");
  }
  return {};
}

std::string Fields::text(std::string_view key, std::string fallback) {
  const Node* node = scalar(key, "text");
  if (node != nullptr) return node->scalar;
  return fallback;
}

std::int64_t Fields::integer(std::string_view key, std::int64_t fallback, std::int64_t least,
                             std::int64_t most) {
  const Node* node = scalar(key, "a whole number");
  if (node == nullptr) return fallback;
  const auto value = to_integer(*node);
  if (!value) {
    fault(node->mark, "'" + std::string(key) + "' must be a whole number, found " + shown(*node));
    return fallback;
  }
  if (*value < least || *value > most) {
    fault(node->mark, "'" + std::string(key) + "' must be from " + std::to_string(least) + " to " +
                          std::to_string(most) + ", found " + node->scalar);
    return fallback;
  }
  return *value;
}

bool Fields::boolean(std::string_view key, bool fallback) {
  const Node* node = scalar(key, "true or false");
  if (node == nullptr) return fallback;
  if (!node->quoted && node->scalar == "true") return true;
  if (!node->quoted && node->scalar == "false") return false;
  fault(node->mark, "'" + std::string(key) + "' must be true or false, found " + shown(*node));
  return fallback;
}

Duration Fields::duration(std::string_view key, Duration fallback) {
  const Node* node = scalar(key, "a duration");
  if (node == nullptr) return fallback;
  auto value = parse_duration(node->scalar);
  if (value) return *value;
  fault(node->mark, "'" + std::string(key) + "': " + value.error().message, value.error().hint);
  return fallback;
}

std::size_t Fields::choice(std::string_view key, const std::vector<std::string>& choices,
                           std::optional<std::size_t> fallback) {
  const Node* node = scalar(key, "a single word");
  if (node == nullptr) {
    if (!fallback && node_->find(key) == nullptr) {
      fault(node_->mark, what_ + " needs '" + std::string(key) + "'", "one of: " + joined(choices));
    }
    return fallback.value_or(0);
  }
  const auto found = std::find(choices.begin(), choices.end(), node->scalar);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  const std::string near = nearest(node->scalar, choices);
  fault(node->mark, "'" + std::string(key) + "' cannot be " + shown(*node),
        (near.empty() ? "" : "did you mean '" + near + "'? ") + "one of: " + joined(choices));
  return fallback.value_or(0);
}

std::vector<std::string> Fields::texts(std::string_view key) {
  const Node* node = of_kind(key, Node::Kind::sequence, "a list");
  std::vector<std::string> values;
  if (node == nullptr) return values;
  for (const Node& item : node->items) {
    if (item.kind == Node::Kind::scalar) {
      values.push_back(item.scalar);
    } else {
      fault(item.mark, "items of '" + std::string(key) + "' must be text, found " + shown(item));
    }
  }
  return values;
}

std::vector<std::int64_t> Fields::integers(std::string_view key) {
  const Node* node = of_kind(key, Node::Kind::sequence, "a list");
  std::vector<std::int64_t> values;
  if (node == nullptr) return values;
  for (const Node& item : node->items) {
    const auto value = item.kind == Node::Kind::scalar ? to_integer(item) : std::nullopt;
    if (value) {
      values.push_back(*value);
    } else {
      fault(item.mark,
            "items of '" + std::string(key) + "' must be whole numbers, found " + shown(item));
    }
  }
  return values;
}

std::map<std::string, std::string> Fields::text_map(std::string_view key) {
  const Node* node = of_kind(key, Node::Kind::mapping, "a mapping of names to text");
  std::map<std::string, std::string> values;
  if (node == nullptr) return values;
  for (const Node& value : node->members) {
    const std::string& name = value.key;
    if (value.kind == Node::Kind::scalar) {
      values.emplace(name, value.scalar);
    } else {
      fault(value.mark, "'" + name + "' must be text, found " + shown(value),
            value.kind == Node::Kind::null ? "write '' for an empty value" : "");
    }
  }
  return values;
}

void Fields::each(std::string_view key, const std::string& what,
                  const std::function<void(Fields&)>& read) {
  const Node* node = of_kind(key, Node::Kind::sequence, "a list");
  if (node == nullptr) return;
  for (const Node& item : node->items) {
    Fields fields(item, what, *faults_);
    if (item.kind != Node::Kind::mapping) continue;
    read(fields);
    fields.finish();
  }
}

void Fields::each_named(std::string_view key, const std::string& what,
                        const std::function<void(const std::string&, Fields&)>& read) {
  const Node* node = of_kind(key, Node::Kind::mapping, "a mapping");
  if (node == nullptr) return;
  for (const Node& value : node->members) {
    const std::string& name = value.key;
    // An entry without content ("deterministic:") is an entry with defaults.
    Node empty;
    empty.kind = Node::Kind::mapping;
    empty.mark = value.key_mark;
    const Node& content = value.kind == Node::Kind::null ? empty : value;
    Fields fields(content, what + " '" + name + "'", *faults_);
    if (content.kind != Node::Kind::mapping) continue;
    read(name, fields);
    fields.finish();
  }
}

void Fields::section(std::string_view key, const std::string& what,
                     const std::function<void(Fields&)>& read) {
  const Node* node = of_kind(key, Node::Kind::mapping, "a mapping");
  if (node == nullptr) return;
  Fields fields(*node, what, *faults_);
  read(fields);
  fields.finish();
}

void Fields::schema_version(std::int64_t known) {
  if (!has("schema_version")) {
    known_.emplace_back("schema_version");
    fault(node_->mark, what_ + " needs 'schema_version'",
          "write schema_version: " + std::to_string(known));
    return;
  }
  const std::int64_t version = integer("schema_version", known, 1, 1'000'000);
  if (version != known) {
    fault(mark("schema_version"), "schema_version " + std::to_string(version) + " is not known",
          "this qualify reads version " + std::to_string(known));
  }
}

void Fields::finish() {
  for (const Node& node : node_->members) {
    const std::string& name = node.key;
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const std::string near = nearest(name, known_);
    fault(node.key_mark, "unknown key '" + name + "' in " + what_,
          near.empty() ? "known keys: " + joined(known_) : "did you mean '" + near + "'?");
  }
}

}  // namespace qualify::spec
