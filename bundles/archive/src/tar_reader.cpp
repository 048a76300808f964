#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>

#include "qualify/archive/tar.hpp"

namespace qualify::archive {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kLargestExtension = 1U << 20U;  ///< pax records and GNU long names
constexpr std::uint64_t kLargestSize = 1ULL << 62U;

Unexpected broken(std::string what, std::uint64_t at) {
  return fail(Errc::integrity, "not a well-formed tar archive: " + std::move(what),
              "byte " + std::to_string(at));
}

/// Octal digits, or GNU's base-256 form.
std::optional<std::uint64_t> number(std::string_view field) {
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
    if (static_cast<unsigned char>(field[0]) != 0x80U) return std::nullopt;  // negative or huge
    for (const char c : field.substr(1)) {
      if (value > (kLargestSize >> 8U)) return std::nullopt;
      value = (value << 8U) | static_cast<unsigned char>(c);
    }
    return value;
  }
  const std::size_t begin = field.find_first_not_of(' ');
  if (begin == std::string_view::npos) return 0;
  for (const char c : field.substr(begin)) {
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = (value << 3U) | static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::string text(std::string_view field) {
  return std::string(field.substr(0, field.find('\0')));
}

struct Overrides {
  std::optional<std::string> path;
  std::optional<std::string> target;
  std::optional<std::uint64_t> size;
};

bool read_pax(std::string_view records, Overrides& overrides) {
  while (!records.empty()) {
    std::size_t length = 0;
    const auto [next, error] =
        std::from_chars(records.data(), records.data() + records.size(), length);
    const auto digits = static_cast<std::size_t>(next - records.data());
    if (error != std::errc() || length > records.size() || length < digits + 3 ||
        records[digits] != ' ' || records[length - 1] != '\n') {
      return false;
    }
    const std::string_view record = records.substr(digits + 1, length - digits - 2);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    // The kernel ends a name at a NUL, whatever is checked of what stands after it.
    const bool name = key == "path" || key == "linkpath";
    if (name && value.find('\0') != std::string_view::npos) return false;
    if (key == "path") overrides.path = value;
    if (key == "linkpath") overrides.target = value;
    if (key == "size") {
      std::uint64_t size = 0;
      const auto parsed = std::from_chars(value.data(), value.data() + value.size(), size);
      if (parsed.ec != std::errc() || parsed.ptr != value.data() + value.size()) return false;
      overrides.size = size;
    }
    records.remove_prefix(length);
  }
  return true;
}

Entry::Kind kind_of(char type) {
  switch (type) {
    case '0':
    case '\0':
    case '7':
      return Entry::Kind::file;
    case '1':
      return Entry::Kind::hardlink;
    case '2':
      return Entry::Kind::symlink;
    case '5':
      return Entry::Kind::folder;
    default:
      return Entry::Kind::other;
  }
}

}  // namespace

Result<bool> TarReader::block(std::span<std::byte> buffer) {
  std::size_t have = 0;
  while (have < buffer.size()) {
    auto count = source_(buffer.subspan(have));
    if (!count) return tl::unexpected(count.error());
    if (*count == 0) break;
    have += *count;
  }
  position_ += have;
  if (have == 0) return false;
  if (have < buffer.size()) return broken("cut short", position_);
  return true;
}

Result<void> TarReader::skip(std::uint64_t count) {
  std::array<std::byte, 64UL * 1024> buffer;
  while (count > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, buffer.size()));
    auto more = block(std::span(buffer).first(part));
    if (!more) return tl::unexpected(more.error());
    if (!*more) return broken("cut short", position_);
    count -= part;
  }
  return {};
}

Result<std::string> TarReader::small_content(std::uint64_t size) {
  if (size > kLargestExtension) return broken("an extended header is too large", position_);
  std::string content((size + kBlock - 1) / kBlock * kBlock, '\0');
  auto more = block(std::as_writable_bytes(std::span(content)));
  if (!more) return tl::unexpected(more.error());
  if (!*more && size > 0) return broken("cut short", position_);
  content.resize(size);
  return content;
}

Result<std::optional<Entry>> TarReader::next() {
  if (auto done = skip(left_ + padding_); !done) return tl::unexpected(done.error());
  left_ = padding_ = 0;
  Overrides overrides;
  for (;;) {
    std::array<char, kBlock> raw{};
    auto more = block(std::as_writable_bytes(std::span(raw)));
    if (!more) return tl::unexpected(more.error());
    if (!*more) return broken("no end mark", position_);
    const std::string_view header(raw.data(), raw.size());
    if (header.find_first_not_of('\0') == std::string_view::npos) return std::nullopt;

    unsigned sum = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
    }
    const auto stored = number(header.substr(148, 8));
    if (!stored || *stored != sum) return broken("a header's sum is wrong", position_ - kBlock);
    const auto size = number(header.substr(124, 12));
    const auto mode = number(header.substr(100, 8));
    if (!size || !mode) return broken("a number in a header is wrong", position_ - kBlock);

    const char type = header[156];
    if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
      auto content = small_content(*size);
      if (!content) return tl::unexpected(content.error());
      if (type == 'L') overrides.path = text(*content);
      if (type == 'K') overrides.target = text(*content);
      if (type == 'x' && !read_pax(*content, overrides)) {
        return broken("a pax record is wrong", position_);
      }
      continue;
    }
    Entry entry;
    entry.kind = kind_of(type);
    entry.executable = (*mode & 0100U) != 0;
    entry.path = text(header.substr(0, 100));
    if (header.substr(257, 6) == std::string_view("ustar\0", 6)) {
      if (const std::string prefix = text(header.substr(345, 155)); !prefix.empty()) {
        entry.path = prefix + "/" + entry.path;
      }
    }
    entry.target = text(header.substr(157, 100));
    if (overrides.path) entry.path = *overrides.path;
    if (overrides.target) entry.target = *overrides.target;
    entry.size = entry.kind == Entry::Kind::file ? overrides.size.value_or(*size) : 0;
    if (entry.size > kLargestSize) return broken("a size is too large", position_);
    entry.offset = position_;
    left_ = entry.size;
    padding_ = (kBlock - entry.size % kBlock) % kBlock;
    return std::optional<Entry>(std::move(entry));
  }
}

Result<std::size_t> TarReader::read(std::span<std::byte> buffer) {
  const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(left_, buffer.size()));
  if (want == 0) return std::size_t{0};
  auto more = block(buffer.first(want));
  if (!more) return tl::unexpected(more.error());
  if (!*more) return broken("cut short", position_);
  left_ -= want;
  return want;
}

}  // namespace qualify::archive
