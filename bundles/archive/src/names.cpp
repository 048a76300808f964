#include "qualify/archive/names.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>

#include "qualify/base/digest.hpp"

namespace qualify::archive {

namespace {

constexpr std::size_t kLongestPath = 3840;
constexpr std::size_t kLongestPart = 255;
constexpr std::size_t kLongestTarget = 4095;  ///< PATH_MAX with its NUL
constexpr int kMostLinks = 40;  ///< as the kernel: more is a loop (ELOOP), which leads nowhere

/// Takes the first part off `path`; empty at its end.
std::string_view next_part(std::string_view& path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const std::string_view part = path.substr(0, path.find('/'));
  path.remove_prefix(part.size());
  return part;
}

/// What `path` lies in; empty for the top.
std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash));
}

/// Case-folded, composed form (Unicode default caseless matching); the text itself when not UTF-8.
std::string folded(std::string_view text) {
  utf8proc_uint8_t* raw = nullptr;
  const auto size = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(text.size()), &raw,
      static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD));
  if (size < 0) return std::string(text);
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owned(raw, &std::free);
  return std::string(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size));
}

/// Length of the valid UTF-8 character at the begin, or 0.
std::size_t character(std::string_view text) {
  utf8proc_int32_t code = 0;
  const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                       static_cast<utf8proc_ssize_t>(text.size()), &code);
  return length <= 0 ? 0 : static_cast<std::size_t>(length);
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

}  // namespace

std::string printable(std::string_view path) {
  constexpr char digits[] = "0123456789abcdef";
  constexpr std::size_t kShown = 200;
  std::string out;
  for (std::size_t i = 0; i < path.size();) {
    const std::size_t length = is_control(path[i]) ? 0 : character(path.substr(i));
    if (length > 0) {
      out += path.substr(i, length);
      i += length;
      continue;
    }
    const auto byte = static_cast<unsigned char>(path[i++]);
    out += std::string("\\x") + digits[byte >> 4U] + digits[byte & 15U];
  }
  if (out.size() <= kShown) return out;
  // Cut between characters, as what is printed may become JSON.
  const auto inside = [&](std::size_t at) {
    return at < out.size() && (static_cast<unsigned char>(out[at]) & 0xC0U) == 0x80U;
  };
  std::size_t head = kShown / 2;
  while (inside(head)) --head;
  std::size_t tail = out.size() - kShown / 4;
  while (inside(tail)) ++tail;
  return out.substr(0, head) + "…" + out.substr(tail) + " (" + std::to_string(path.size()) +
         " bytes)";
}

Result<void> check_member_name(std::string_view path) {
  const auto refuse = [&](const char* why) -> Result<void> {
    return fail(Errc::invalid_input, std::string("a file name cannot be used: it ") + why,
                printable(path));
  };
  if (path.empty()) return refuse("is empty");
  if (path.front() == '/') return refuse("is absolute");
  if (path.size() > kLongestPath) return refuse("is longer than 3840 bytes");
  for (std::size_t i = 0; i < path.size();) {
    if (is_control(path[i])) return refuse("has a control character");
    const std::size_t length = character(path.substr(i));
    if (length == 0) return refuse("is not UTF-8");
    i += length;
  }
  for (std::string_view rest = path;;) {
    const std::size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    if (part.empty()) return refuse("has an empty part");
    if (part == "." || part == "..") return refuse("has a '.' or '..' part");
    if (part.size() > kLongestPart) return refuse("has a part of more than 255 bytes");
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

Result<void> check_link_target(std::string_view path, std::string_view target) {
  if (!target.empty() && target.size() <= kLongestTarget &&
      target.find('\0') == std::string_view::npos) {
    return {};
  }
  return fail(Errc::invalid_input, "symbolic link has no usable target", printable(path));
}

void TreeCheck::add(std::string_view path, std::string_view target) {
  paths_.emplace_back(path);
  if (!target.empty()) links_.emplace(path, target);
}

bool TreeCheck::leaves(const std::string& path, const std::string& target) const {
  if (target.starts_with('/')) return true;
  std::string here = folder_of(path);
  std::vector<std::string_view> todo{target};  // what is left of each link that is followed
  int links = 1;
  while (!todo.empty()) {
    const std::string_view part = next_part(todo.back());
    if (part.empty()) {
      todo.pop_back();
    } else if (part == "..") {
      if (here.empty()) return true;
      here = folder_of(here);
    } else if (part != ".") {
      const std::size_t before = here.size();
      if (!here.empty()) here += '/';
      here += part;
      const auto link = links_.find(here);
      if (link == links_.end()) continue;
      if (link->second.starts_with('/')) return true;
      if (++links > kMostLinks) return false;
      here.resize(before);
      todo.emplace_back(link->second);
    }
  }
  return false;
}

namespace {

/// Where a name was first seen: the beginning of one of the paths.
struct Seen {
  std::uint32_t path = 0;    ///< index
  std::uint32_t length = 0;  ///< bytes of it
  bool file = false;         ///< else a folder
};
struct FirstBytes {
  std::size_t operator()(const Digest& digest) const {
    std::size_t value = 0;
    std::memcpy(&value, digest.bytes().data(), sizeof value);
    return value;
  }
};

/// A name below a folder, in the form in which other names clash with it. A digest, as there may be
/// very many names.
Digest key_below(const Digest& folder, std::string_view part) {
  Sha256 hash;
  hash.update(std::as_bytes(std::span(folder.bytes())));
  hash.update(folded(part));
  return hash.finish();
}

std::string_view last_part(std::string_view path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 is 0
}

}  // namespace

std::vector<Error> TreeCheck::faults() const {
  std::vector<Error> faults;
  // Every name by its folded form; a second spelling of one is a clash.
  std::unordered_map<Digest, Seen, FirstBytes> seen;
  seen.reserve(paths_.size() + paths_.size() / 8);
  std::set<Digest> reported;
  for (std::uint32_t n = 0; n < paths_.size(); ++n) {
    const std::string_view path = paths_[n];
    Digest key;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const bool last = end == path.size();
      const std::string_view part = path.substr(begin, end - begin);
      const std::string_view name = path.substr(0, end);
      begin = end + 1;
      key = key_below(key, part);
      const auto [known, added] = seen.emplace(key, Seen{n, static_cast<std::uint32_t>(end), last});
      if (added) continue;
      const Seen& first = known->second;
      const std::string_view spelling =
          std::string_view(paths_[first.path]).substr(0, first.length);
      if (spelling != name) {
        // Where folders clash, what lies in them need not be named again.
        if (last_part(spelling) == part || !reported.insert(key).second) continue;
        faults.push_back({Errc::invalid_input,
                          "two names differ only by case or Unicode form: '" + printable(spelling) +
                              "' and '" + printable(name) + "'",
                          printable(path),
                          "rename one of them",
                          {}});
      } else if (last && first.file) {
        faults.push_back(
            {Errc::invalid_input, "the name stands there twice", printable(name), {}, {}});
      } else if (last || first.file) {
        faults.push_back(
            {Errc::invalid_input, "a file and a folder share a name", printable(name), {}, {}});
      }
    }
  }
  for (const auto& [path, target] : links_) {
    if (leaves(path, target)) {
      faults.push_back({Errc::invalid_input,
                        "symbolic link leads out of the tree: '" + printable(target) + "'",
                        printable(path),
                        "what it points at would not be in the bundle: link inside, or copy",
                        {}});
    }
  }
  return faults;
}

}  // namespace qualify::archive
