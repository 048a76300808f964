#include "loose_objects.hpp"

#include <git2/errors.h>
#include <git2/sys/odb_backend.h>
#include <zlib.h>

#include <charconv>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "handles.hpp"
#include "qualify/base/files.hpp"

namespace qualify::git {

namespace {

/// Before the packs (2) and libgit2's own loose objects (1).
constexpr int kPriority = 3;
constexpr std::size_t kLongestHeader = 64;  ///< bytes, "commit 12345" and its NUL among them
constexpr std::uint64_t kBestRatio = 1032;  ///< zlib compresses no better

struct Backend : git_odb_backend {
  std::filesystem::path folder;  ///< .git/objects
};

int damaged(const git_oid* id, const char* why) {
  git_error_set_str(GIT_ERROR_ODB, ("loose object " + hex(*id) + " is damaged: " + why).c_str());
  return GIT_ERROR;
}

/// zlib's stream over a file's bytes.
class Inflate {
 public:
  explicit Inflate(std::string_view bytes) : good_(::inflateInit(&stream_) == Z_OK) {
    // zlib takes what it reads as not constant, and does not change it.
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
  }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;
  ~Inflate() { ::inflateEnd(&stream_); }

  /// Bytes written to `out`: all of it, unless the stream ends or is cut short.
  std::optional<std::size_t> into(char* out, std::size_t size) {
    std::size_t done = 0;
    while (good_ && !ended_ && done < size) {
      const auto part = std::min<std::size_t>(size - done, std::numeric_limits<uInt>::max());
      stream_.next_out = reinterpret_cast<Bytef*>(out + done);
      stream_.avail_out = static_cast<uInt>(part);
      const int code = ::inflate(&stream_, Z_NO_FLUSH);
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) return std::nullopt;
      const std::size_t got = part - stream_.avail_out;
      done += got;
      ended_ = code == Z_STREAM_END;
      if (got == 0) break;
    }
    return good_ ? std::optional(done) : std::nullopt;
  }
  /// Nothing more comes, and the stream's own sum was right.
  bool finish() {
    char more = 0;
    const auto count = ended_ ? std::optional<std::size_t>(0) : into(&more, 1);
    return count && *count == 0 && ended_;
  }

 private:
  z_stream stream_{};
  bool good_;
  bool ended_ = false;
};

struct Header {
  git_object_t type = GIT_OBJECT_INVALID;
  std::size_t size = 0;    ///< bytes of the object
  std::size_t length = 0;  ///< of the header with its NUL
};

std::optional<Header> parse_header(std::string_view begin) {
  const std::size_t end = begin.find('\0');
  const std::size_t space = begin.find(' ');
  if (end == std::string_view::npos || space >= end) return std::nullopt;
  Header header;
  header.length = end + 1;
  header.type = git_object_string2type(std::string(begin.substr(0, space)).c_str());
  const char* const last = begin.data() + end;
  const auto [stop, error] = std::from_chars(begin.data() + space + 1, last, header.size);
  if (error != std::errc() || stop != last || header.type == GIT_OBJECT_INVALID) {
    return std::nullopt;
  }
  return header;
}

/// The object's file; nothing where it is not loose, or is left to libgit2.
std::optional<std::string> file_of(const Backend& backend, const git_oid* id) {
  const std::string name = hex(*id);
  auto bytes = read_file(backend.folder / name.substr(0, 2) / name.substr(2));
  // As zlib's streams begin; libgit2 refuses what is empty, and knows a form from before git 1.5.
  const bool zlib =
      bytes && bytes->size() >= 2 && ((*bytes)[0] & 0x0F) == 8 &&
      (static_cast<unsigned char>((*bytes)[0]) * 256U + static_cast<unsigned char>((*bytes)[1])) %
              31 ==
          0;
  return zlib ? std::optional(std::move(*bytes)) : std::nullopt;
}

int read_object(void** data, std::size_t* size, git_object_t* type, git_odb_backend* raw,
                const git_oid* id) {
  const auto bytes = file_of(*static_cast<Backend*>(raw), id);
  if (!bytes) return GIT_ENOTFOUND;
  Inflate stream(*bytes);
  char begin[kLongestHeader];
  const auto count = stream.into(begin, sizeof begin);
  if (!count) return damaged(id, "it is not compressed as it should be");
  const auto header = parse_header({begin, *count});
  if (!header) return damaged(id, "its header cannot be read");
  const std::size_t early = *count - header->length;
  if (early > header->size || header->size / kBestRatio > bytes->size()) {
    return damaged(id, "its header gives another size");
  }
  // libgit2 keeps a NUL behind its objects.
  auto* content = static_cast<char*>(git_odb_backend_data_alloc(raw, header->size + 1));
  if (content == nullptr) return GIT_ERROR;
  std::copy_n(begin + header->length, early, content);
  content[header->size] = '\0';
  const auto rest = stream.into(content + early, header->size - early);
  if (!rest || *rest < header->size - early || !stream.finish()) {
    git_odb_backend_data_free(raw, content);
    return damaged(id, rest && *rest < header->size - early ? "it is cut short"
                                                            : "its end is not what it should be");
  }
  *data = content;
  *size = header->size;
  *type = header->type;
  return GIT_OK;
}

int read_header(std::size_t* size, git_object_t* type, git_odb_backend* raw, const git_oid* id) {
  const auto bytes = file_of(*static_cast<Backend*>(raw), id);
  if (!bytes) return GIT_ENOTFOUND;
  char begin[kLongestHeader];
  const auto count = Inflate(*bytes).into(begin, sizeof begin);
  const auto header = count ? parse_header({begin, *count}) : std::nullopt;
  if (!header) return damaged(id, "its header cannot be read");
  *size = header->size;
  *type = header->type;
  return GIT_OK;
}

}  // namespace

int use_own_loose_reader(git_repository* repository) {
  git_odb* raw = nullptr;
  if (const int code = git_repository_odb(&raw, repository); code != 0) return code;
  const std::unique_ptr<git_odb, Deleter<git_odb_free>> odb(raw);
  git_buf path{};
  if (const int code = git_repository_item_path(&path, repository, GIT_REPOSITORY_ITEM_OBJECTS);
      code != 0) {
    return code;
  }
  auto backend = std::make_unique<Backend>();
  backend->folder = path.ptr;
  git_buf_dispose(&path);
  git_odb_init_backend(backend.get(), GIT_ODB_BACKEND_VERSION);
  backend->read = read_object;
  backend->read_header = read_header;
  backend->free = [](git_odb_backend* one) { delete static_cast<Backend*>(one); };
  const int code = git_odb_add_backend(odb.get(), backend.get(), kPriority);
  if (code == 0) static_cast<void>(backend.release());  // the database's now
  return code;
}

}  // namespace qualify::git
