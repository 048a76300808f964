#include "qualify/evidence/lines.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "qualify/base/files.hpp"

namespace qualify::evidence {

Result<void> for_each_line(const std::filesystem::path& path,
                           const std::function<bool(const Line&)>& each, const LineStart& start,
                           const TakeLines& take) {
  auto fd = open_read(path);
  if (!fd) return tl::unexpected(fd.error());
  if (start.byte > 0 && ::lseek(fd->get(), static_cast<off_t>(start.byte), SEEK_SET) < 0) {
    return fail_errno(errno, "cannot read", path.string());
  }
  // What was read stays in the cache nearest to the core until it is looked at.
  std::vector<char> buffer((256U << 10U) + kLinePadding);
  std::size_t begin = 0;  // of the line that is being read
  std::size_t end = 0;    // of what is in the buffer
  std::uint64_t number = start.line;
  bool skipping = false;
  for (;;) {
    if (begin > 0) {
      std::memmove(buffer.data(), buffer.data() + begin, end - begin);
      end -= begin;
      begin = 0;
    }
    if (end + kLinePadding == buffer.size()) {
      if (end < kLongestTextLine) {
        buffer.resize(2 * end + kLinePadding);
      } else {
        if (!skipping && !each({{buffer.data(), end}, number, true, false})) return {};
        skipping = true;
        end = 0;
      }
    }
    const ssize_t count =
        ::read(fd->get(), buffer.data() + end, buffer.size() - kLinePadding - end);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "cannot read", path.string());
    if (count == 0) {
      if (end > 0 && !skipping) (void)each({{buffer.data(), end}, number, false, true});
      return {};
    }
    std::size_t from = end;
    end += static_cast<std::size_t>(count);
    for (;;) {
      if (take && !skipping && from == begin) {
        const TakenLines taken = take({buffer.data() + begin, end - begin}, number);
        begin += taken.bytes;
        number += taken.count;
        from = begin;
      }
      const void* hit = std::memchr(buffer.data() + from, '\n', end - from);
      if (hit == nullptr) break;
      const auto stop = static_cast<std::size_t>(static_cast<const char*>(hit) - buffer.data());
      if (!skipping && !each({{buffer.data() + begin, stop - begin}, number, true, true}))
        return {};
      skipping = false;
      ++number;
      begin = from = stop + 1;
    }
    if (skipping) end = begin;
  }
}

}  // namespace qualify::evidence
