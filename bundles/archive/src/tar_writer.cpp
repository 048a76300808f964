#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "qualify/archive/tar.hpp"

namespace qualify::archive {

namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kNameField = 100;
constexpr std::uint64_t kLargestOctalSize = 077777777777;

using Header = std::array<char, kBlock>;

bool fits(std::string_view name) {
  return name.size() <= kNameField && std::all_of(name.begin(), name.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x80;
         });
}

/// `digits` octal digits and a NUL.
void put_octal(Header& header, std::size_t at, std::size_t digits, std::uint64_t value) {
  for (std::size_t i = digits; i-- > 0; value >>= 3U) {
    header[at + i] = static_cast<char>('0' + (value & 7U));
  }
}

void put_text(Header& header, std::size_t at, std::size_t room, std::string_view text) {
  std::memcpy(header.data() + at, text.data(), std::min(room, text.size()));
}

/// "<length> key=value\n" where the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  std::string record = std::to_string(length);
  record.append(" ").append(key).append("=").append(value).append("\n");
  return record;
}

Header make_header(std::string_view name, std::string_view target, char type, unsigned mode,
                   std::uint64_t size) {
  Header header{};
  put_text(header, 0, kNameField, name);
  put_octal(header, 100, 7, mode);
  put_octal(header, 108, 7, 0);
  put_octal(header, 116, 7, 0);
  put_octal(header, 124, 11, std::min(size, kLargestOctalSize));
  put_octal(header, 136, 11, 0);
  header[156] = type;
  put_text(header, 157, kNameField, target);
  put_text(header, 257, 8, std::string_view("ustar\00000", 8));
  put_octal(header, 329, 7, 0);
  put_octal(header, 337, 7, 0);
  std::memset(header.data() + 148, ' ', 8);
  unsigned sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 6, sum);
  header[154] = '\0';
  return header;
}

}  // namespace

Result<void> TarWriter::put(std::string_view text) {
  return sink_(std::as_bytes(std::span(text)));
}

Result<void> TarWriter::pad() {
  static const std::array<char, kBlock> zeros{};
  const std::uint64_t count = std::exchange(padding_, 0);
  return count == 0 ? Result<void>() : put(std::string_view(zeros.data(), count));
}

Result<void> TarWriter::header(std::string_view path, std::string_view target, char type,
                               unsigned mode, std::uint64_t size) {
  if (left_ != 0) throw std::logic_error("tar: the last file is not complete");
  if (!last_path_.empty() && path <= last_path_) throw std::logic_error("tar: paths not ascending");
  last_path_ = path;
  if (auto done = pad(); !done) return done;
  std::string pax;
  if (!fits(target)) pax += pax_record("linkpath", target);
  if (!fits(path)) pax += pax_record("path", path);
  if (size > kLargestOctalSize) pax += pax_record("size", std::to_string(size));
  if (!pax.empty()) {
    const Header extended = make_header("PaxHeaders/entry", "", 'x', 0644, pax.size());
    pax.resize((pax.size() + kBlock - 1) / kBlock * kBlock, '\0');
    if (auto done = put({extended.data(), extended.size()}); !done) return done;
    if (auto done = put(pax); !done) return done;
  }
  const Header plain = make_header(path, target, type, mode, size);
  return put({plain.data(), plain.size()});
}

Result<void> TarWriter::begin_file(std::string_view path, bool executable, std::uint64_t size) {
  if (auto done = header(path, "", '0', executable ? 0755 : 0644, size); !done) return done;
  left_ = size;
  padding_ = (kBlock - size % kBlock) % kBlock;
  return {};
}

Result<void> TarWriter::write(std::span<const std::byte> data) {
  if (data.size() > left_) throw std::logic_error("tar: more content than announced");
  left_ -= data.size();
  return sink_(data);
}

Result<void> TarWriter::symlink(std::string_view path, std::string_view target) {
  return header(path, target, '2', 0777, 0);
}

Result<void> TarWriter::finish() {
  if (left_ != 0) throw std::logic_error("tar: the last file is not complete");
  if (auto done = pad(); !done) return done;
  return put(std::string(2 * kBlock, '\0'));
}

}  // namespace qualify::archive
