#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "qualify/base/error.hpp"

namespace qualify::evidence {

/// Hands on a text file line by line, without the newline, in constant memory. The bytes behind a
/// line can be read, not used, for kLinePadding (what simdjson asks for). `ended`: a newline
/// follows. `number` is 1-based. A line beyond kLongestTextLine is handed on cut, with `whole`
/// false.
struct Line {
  std::string_view text;
  std::uint64_t number = 0;
  bool ended = true;
  bool whole = true;
};
inline constexpr std::size_t kLinePadding = 64;
inline constexpr std::size_t kLongestTextLine = 16U << 20U;

/// Where to begin: at a line's first byte, whose number is `line`.
struct LineStart {
  std::uint64_t byte = 0;
  std::uint64_t line = 1;
};

/// Whole lines at the front of a text, their newlines included.
struct TakenLines {
  std::size_t bytes = 0;
  std::uint64_t count = 0;
};
/// Is shown what has been read, from the first byte of line `number` on, before that line is looked
/// for; takes those lines that it reads by itself, which `each` then does not get. The text may end
/// within a line; the bytes behind it can be read as those behind a line.
using TakeLines = std::function<TakenLines(std::string_view text, std::uint64_t number)>;

/// Stops early, without an error, when `each` returns false. Errors: not_found, io.
[[nodiscard]] Result<void> for_each_line(const std::filesystem::path& path,
                                         const std::function<bool(const Line&)>& each,
                                         const LineStart& start = {}, const TakeLines& take = {});

}  // namespace qualify::evidence
