#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <sstream>

#include "qualify/base/files.hpp"
#include "qualify/spec/document.hpp"

namespace qualify::spec {

namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr std::uint64_t kMaxFile = 4ULL << 20U;

Mark to_mark(const YAML::Mark& mark) {
  return {mark.line + 1, mark.column + 1};
}

/// Stops the parse from within an event.
struct Refusal {
  Mark mark;
  std::string message;
  std::string hint;
};

/// Builds the tree from yaml-cpp's events. The library's own node graph loses duplicate keys and
/// expands aliases without bound; its events do neither.
class Builder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    no_anchor(mark, anchor);
    Node node;
    node.mark = to_mark(mark);
    add(std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refusal{to_mark(mark), "aliases are not accepted", "write the value out"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    no_anchor(mark, anchor);
    // The parser says "?" for a plain scalar and "!" for a quoted one; anything else was written.
    if (tag != "?" && tag != "!" && !tag.empty()) refuse_tag(mark);
    Node node;
    node.mark = to_mark(mark);
    node.quoted = tag == "!";
    node.scalar = value;
    node.kind = !node.quoted && (value.empty() || value == "~" || value == "null")
                    ? Node::Kind::null
                    : Node::Kind::scalar;
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::mapping);
  }
  void OnMapEnd() override { close(); }

  Node root;

 private:
  struct Open {
    Node node;
    std::optional<std::pair<std::string, Mark>> key;  ///< read, its value still to come
  };

  static void no_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != 0)
      throw Refusal{to_mark(mark), "anchors are not accepted", "write the value out"};
  }
  static void refuse_tag(const YAML::Mark& mark) {
    throw Refusal{to_mark(mark), "tags are not accepted", "remove the '!…' before the value"};
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    no_anchor(mark, anchor);
    if (!tag.empty() && tag != "?") refuse_tag(mark);
    if (stack_.size() >= kMaxDepth) {
      throw Refusal{
          to_mark(mark), "nested deeper than " + std::to_string(kMaxDepth) + " levels", {}};
    }
    if (!stack_.empty() && stack_.back().node.kind == Node::Kind::mapping && !stack_.back().key) {
      throw Refusal{to_mark(mark), "a key must be plain text", {}};
    }
    Open entry;
    entry.node.kind = kind;
    entry.node.mark = to_mark(mark);
    stack_.push_back(std::move(entry));
  }
  void close() {
    Node node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }
  void add(Node node) {
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    Open& top = stack_.back();
    if (top.node.kind == Node::Kind::sequence) {
      top.node.items.push_back(std::move(node));
      return;
    }
    if (!top.key) {
      if (node.kind != Node::Kind::scalar) throw Refusal{node.mark, "a key must be plain text", {}};
      if (const Node* first = top.node.find(node.scalar)) {
        throw Refusal{node.mark, "duplicate key '" + node.scalar + "'",
                      "first written in line " + std::to_string(first->key_mark.line)};
      }
      top.key = {std::move(node.scalar), node.mark};
      return;
    }
    node.key_mark = top.key->second;
    if (node.kind == Node::Kind::null && node.mark.line == 0) node.mark = node.key_mark;
    node.key = std::move(top.key->first);
    top.node.members.push_back(std::move(node));
    top.key.reset();
  }

  std::vector<Open> stack_;
};

std::string place(const std::string& file, Mark mark) {
  return file + ":" + std::to_string(mark.line) + ":" + std::to_string(mark.column);
}

}  // namespace

const Node* Node::find(std::string_view name) const {
  for (const Node& member : members) {
    if (member.key == name) return &member;
  }
  return nullptr;
}

Result<Node> parse_yaml(std::string_view text, const std::string& file) {
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) {
    return qualify::fail(Errc::invalid_input, "not a text file: it holds a NUL byte", file);
  }
  std::istringstream stream{std::string(text)};
  Builder builder;
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      return qualify::fail(Errc::invalid_input, "the file is empty", file);
    }
    Builder second;
    if (parser.HandleNextDocument(second)) {
      return qualify::fail(Errc::invalid_input, "more than one YAML document",
                           place(file, second.root.mark),
                           "keep one; remove the '---' between them");
    }
  } catch (const Refusal& refusal) {
    return qualify::fail(Errc::invalid_input, refusal.message, place(file, refusal.mark),
                         refusal.hint);
  } catch (const YAML::Exception& error) {
    return qualify::fail(Errc::invalid_input, "not valid YAML: " + error.msg,
                         place(file, to_mark(error.mark)));
  }
  return std::move(builder.root);
}

Result<Node> read_yaml(const std::filesystem::path& file) {
  auto text = read_file(file, kMaxFile);
  if (!text) return tl::unexpected(text.error());
  return parse_yaml(*text, file.string());
}

}  // namespace qualify::spec
