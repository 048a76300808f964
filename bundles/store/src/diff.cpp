#include "qualify/store/diff.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <nlohmann/json.hpp>

#include "open_blob.hpp"
#include "qualify/archive/tar.hpp"

namespace qualify::store {

namespace {

constexpr std::size_t kPiece = 1U << 18U;

/// What one file is, as text that is equal exactly when the file is.
using Files = std::map<std::string, std::string>;

Result<Files> files_in_archive(const BlobStore& store, const Descriptor& blob) {
  auto fd = open_blob(store.path_of(blob.digest));
  if (!fd) return tl::unexpected(fd.error());
  if (auto good = store.verify(blob.digest); !good) return tl::unexpected(good.error());
  archive::TarReader tar([&](std::span<std::byte> buffer) -> Result<std::size_t> {
    ssize_t count = 0;
    do {
      count = ::read(fd->get(), buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) return fail_errno(errno, "cannot read", store.path_of(blob.digest).string());
    return static_cast<std::size_t>(count);
  });
  Files files;
  std::vector<std::byte> buffer(kPiece);
  for (;;) {
    auto next = tar.next();
    if (!next) return tl::unexpected(next.error());
    if (!*next) return files;
    const archive::Entry& entry = **next;
    Sha256 hash;
    for (;;) {
      auto count = tar.read(buffer);
      if (!count) return tl::unexpected(count.error());
      if (*count == 0) break;
      hash.update(std::span(buffer).first(*count));
    }
    files[entry.path] = entry.kind == archive::Entry::Kind::symlink
                            ? "link to " + entry.target
                            : (entry.executable ? "0755 " : "0644 ") + hash.finish().str();
  }
}

Result<Files> files_in_manifest(const BlobStore& store, const Descriptor& blob) {
  Files files;
  if (blob.size == 0) return files;
  auto bytes = store.read(blob.digest);
  if (!bytes) return tl::unexpected(bytes.error());
  auto json = parse_json(*bytes, store.path_of(blob.digest).string());
  if (!json) return tl::unexpected(json.error());
  for (const Json& file : (*json)["files"]) files[file["path"]] = file["digest"];
  return files;
}

std::vector<std::string> changed_files(const Files& a, const Files& b) {
  std::vector<std::string> lines;
  for (const auto& [path, is] : a) {
    const auto other = b.find(path);
    if (other == b.end()) {
      lines.push_back("removed " + path);
    } else if (other->second != is) {
      const bool mode =
          is.substr(5) == other->second.substr(5) && is.size() == other->second.size();
      lines.push_back((mode ? "changed mode of " : "changed ") + path);
    }
  }
  for (const auto& [path, is] : b) {
    if (!a.contains(path)) lines.push_back("added " + path);
  }
  std::sort(lines.begin(), lines.end(), [](const std::string& x, const std::string& y) {
    return x.substr(x.find(' ')) < y.substr(y.find(' '));
  });
  return lines;
}

std::string shown(const std::string& text) {
  return text.empty() ? "''" : text;
}

std::string change(const std::string& what, const std::string& from, const std::string& to) {
  return what + (what.empty() ? "" : " ") + shown(from) + " -> " + shown(to);
}

std::string brief_digest(const std::string& digest) {
  const std::size_t colon = digest.find(':');
  return digest.substr(colon == std::string::npos ? 0 : colon + 1, 12);
}

class Comparison {
 public:
  Comparison(const BlobStore& store, const Bundle& a, const Bundle& b)
      : store_(store), a_(a), b_(b) {}

  Result<std::vector<Difference>> run() {
    scalar("name", a_.name, b_.name);
    scalar("recipe", spec::name_of(a_.recipe), spec::name_of(b_.recipe));
    scalar("model", a_.model, b_.model);
    scalar("dirty", a_.dirty ? "yes" : "no", b_.dirty ? "yes" : "no");
    if (auto done = named(a_.code, b_.code, "code",
                          [&](const auto& x, const auto& y) { return code(x, y); });
        !done) {
      return tl::unexpected(done.error());
    }
    container();
    if (auto done = named(a_.configs, b_.configs, "config",
                          [&](const auto& x, const auto& y) { return config(x, y); });
        !done) {
      return tl::unexpected(done.error());
    }
    environment("environment", a_.environment, b_.environment);
    list("passed_environment", a_.passed_environment, b_.passed_environment);
    environment("required_environment", a_.required_environment, b_.required_environment);
    if (auto done =
            named(a_.arms, b_.arms, "arm", [&](const auto& x, const auto& y) { return arm(x, y); });
        !done) {
      return tl::unexpected(done.error());
    }
    if (auto done = named(a_.data, b_.data, "data",
                          [&](const auto& x, const auto& y) { return data(x, y); });
        !done) {
      return tl::unexpected(done.error());
    }
    topology();
    list("seeds", texts(a_.seeds), texts(b_.seeds));
    scalar("launch tasks_per_node", std::to_string(a_.launch.tasks_per_node),
           std::to_string(b_.launch.tasks_per_node));
    list("launch argv", a_.launch.argv, b_.launch.argv);
    list("outputs", texts(a_.outputs), texts(b_.outputs));
    if (found_.empty() && a_.digest != b_.digest) add("order", "the arms stand in another order");
    return std::move(found_);
  }

 private:
  void add(std::string input, std::string what, std::vector<std::string> details = {}) {
    found_.push_back({std::move(input), std::move(what), std::move(details)});
  }
  void scalar(const std::string& input, const std::string& from, const std::string& to) {
    if (from != to) add(input, change("", from, to));
  }
  void environment(const std::string& input, const std::map<std::string, std::string>& from,
                   const std::map<std::string, std::string>& to) {
    for (const auto& [name, value] : from) {
      const auto other = to.find(name);
      if (other == to.end()) {
        add(input, name + " removed (was " + shown(value) + ")");
      } else if (other->second != value) {
        add(input, change(name + ":", value, other->second));
      }
    }
    for (const auto& [name, value] : to) {
      if (!from.contains(name)) add(input, name + " added: " + shown(value));
    }
  }
  void list(const std::string& input, const std::vector<std::string>& from,
            const std::vector<std::string>& to) {
    if (from == to) return;
    std::vector<std::string> details;
    for (const std::string& word : from) {
      if (std::count(from.begin(), from.end(), word) > std::count(to.begin(), to.end(), word)) {
        details.push_back("removed " + word);
      }
    }
    for (const std::string& word : to) {
      if (std::count(to.begin(), to.end(), word) > std::count(from.begin(), from.end(), word)) {
        details.push_back("added " + word);
      }
    }
    const char* const what = details.empty() ? "in another order" : "changed";
    add(input, what, std::move(details));
  }
  /// Pairs items by name; `both` compares two of one name.
  template <class Item, class Both>
  Result<void> named(const std::vector<Item>& from, const std::vector<Item>& to,
                     const std::string& kind, const Both& both) {
    const auto find = [](const std::vector<Item>& in, const std::string& name) {
      return std::find_if(in.begin(), in.end(), [&](const Item& one) { return one.name == name; });
    };
    for (const Item& item : from) {
      const auto other = find(to, item.name);
      if (other == to.end()) {
        add(kind + " " + item.name, "removed");
      } else if (Result<void> done = both(item, *other); !done) {
        return done;
      }
    }
    for (const Item& item : to) {
      if (find(from, item.name) == from.end()) add(kind + " " + item.name, "added");
    }
    return {};
  }

  Result<void> code(const SealedCode& from, const SealedCode& to) {
    const std::string input = "code " + from.name;
    std::vector<std::string> details;
    if (from.archive.digest != to.archive.digest) {
      auto before = files_in_archive(store_, from.archive);
      if (!before) return tl::unexpected(before.error());
      auto after = files_in_archive(store_, to.archive);
      if (!after) return tl::unexpected(after.error());
      details = changed_files(*before, *after);
    }
    if (from.commit != to.commit) {
      if (details.empty()) details.emplace_back("no file differs");
      add(input, change("commit", from.commit.substr(0, 12), to.commit.substr(0, 12)),
          std::move(details));
    } else if (!details.empty()) {
      add(input, "the same commit with other content", std::move(details));
    }
    if (from.revision != to.revision) add(input, change("revision", from.revision, to.revision));
    return {};
  }

  Result<void> config(const SealedConfig& from, const SealedConfig& to) {
    const std::string input = "config " + from.name;
    if (from.file_name != to.file_name)
      add(input, change("file name", from.file_name, to.file_name));
    if (from.content.digest == to.content.digest) return {};
    auto before = store_.read(from.content.digest);
    if (!before) return tl::unexpected(before.error());
    auto after = store_.read(to.content.digest);
    if (!after) return tl::unexpected(after.error());
    add(input, "changed, first in line " + std::to_string(first_different_line(*before, *after)));
    return {};
  }
  static long first_different_line(const std::string& a, const std::string& b) {
    const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
    return 1 + std::count(a.begin(), at, '\n');
  }

  Result<void> data(const SealedData& from, const SealedData& to) {
    if (from.digest == to.digest) return {};
    auto before = files_in_manifest(store_, from.manifest);
    if (!before) return tl::unexpected(before.error());
    auto after = files_in_manifest(store_, to.manifest);
    if (!after) return tl::unexpected(after.error());
    add("data " + from.name, change("digest", brief_digest(from.digest), brief_digest(to.digest)),
        from.manifest.size > 0 && to.manifest.size > 0 ? changed_files(*before, *after)
                                                       : std::vector<std::string>{});
    return {};
  }

  Result<void> arm(const spec::Arm& from, const spec::Arm& to) {
    list("arm " + from.name + " arguments", from.arguments, to.arguments);
    environment("arm " + from.name + " environment", from.environment, to.environment);
    return {};
  }

  void container() {
    const SealedContainer& from = a_.container;
    const SealedContainer& to = b_.container;
    scalar("container kind", spec::name_of(from.kind), spec::name_of(to.kind));
    scalar("container reference", from.reference, to.reference);
    if (from.content.digest != to.content.digest) {
      const auto text = [](const Descriptor& blob) {
        return blob.size == 0 ? "none"
                              : blob.digest.brief() + " (" + std::to_string(blob.size) + " bytes)";
      };
      add("container", change("content", text(from.content), text(to.content)));
    }
  }

  void topology() {
    const auto compare = [&](const char* what, std::uint32_t from, std::uint32_t to) {
      scalar(std::string("topology ") + what, std::to_string(from), std::to_string(to));
    };
    const spec::Topology& from = a_.topology;
    const spec::Topology& to = b_.topology;
    compare("nodes", from.nodes, to.nodes);
    compare("gpus_per_node", from.gpus_per_node, to.gpus_per_node);
    compare("tensor_parallel", from.tensor_parallel, to.tensor_parallel);
    compare("pipeline_parallel", from.pipeline_parallel, to.pipeline_parallel);
    compare("expert_parallel", from.expert_parallel, to.expert_parallel);
    compare("context_parallel", from.context_parallel, to.context_parallel);
    compare("data_parallel", from.data_parallel, to.data_parallel);
  }

  static std::vector<std::string> texts(const std::vector<std::int64_t>& numbers) {
    std::vector<std::string> words;
    for (const std::int64_t number : numbers) words.push_back(std::to_string(number));
    return words;
  }
  static std::vector<std::string> texts(const std::vector<spec::Output>& outputs) {
    std::vector<std::string> words;
    for (const spec::Output& output : outputs) {
      words.push_back(output.kind + " " + output.path +
                      (output.format.empty() ? "" : " as " + output.format) +
                      (output.required ? "" : ", optional"));
    }
    return words;
  }

  const BlobStore& store_;
  const Bundle& a_;
  const Bundle& b_;
  std::vector<Difference> found_;
};

}  // namespace

Result<std::vector<Difference>> diff(const BlobStore& store, const Bundle& a, const Bundle& b) {
  if (a.digest == b.digest) return std::vector<Difference>{};
  return Comparison(store, a, b).run();
}

}  // namespace qualify::store
