#include "qualify/scheduler/hostlist.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

namespace qualify::scheduler {

namespace {

constexpr std::size_t kMostNames = 65536;

Unexpected wrong(std::string_view text) {
  return fail(Errc::invalid_input, "not a list of host names: '" + std::string(text) + "'");
}

Result<std::uint64_t> number(std::string_view digits, std::string_view whole) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
    return wrong(whole);
  }
  return value;
}

/// "0001-0003,0007": the numbers with the width that they were written in.
Result<std::vector<std::string>> expand_ranges(std::string_view ranges, std::string_view whole) {
  std::vector<std::string> values;
  while (true) {
    const std::string_view range = ranges.substr(0, ranges.find(','));
    const std::size_t dash = range.find('-');
    const std::string_view low = range.substr(0, dash);
    const std::string_view high = dash == std::string_view::npos ? low : range.substr(dash + 1);
    const auto first = number(low, whole);
    const auto last = number(high, whole);
    if (!first || !last || *last < *first || *last - *first >= kMostNames) return wrong(whole);
    for (std::uint64_t value = *first; value <= *last; ++value) {
      std::string digits = std::to_string(value);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      values.push_back(std::move(digits));
    }
    if (range.size() == ranges.size()) return values;
    ranges.remove_prefix(range.size() + 1);
  }
}

/// One name, brackets and all.
Result<std::vector<std::string>> expand_name(std::string_view name, std::string_view whole) {
  std::vector<std::string> names = {""};
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    const std::string_view plain = name.substr(0, open);
    if (plain.find(']') != std::string_view::npos) return wrong(whole);
    for (std::string& made : names) made += plain;
    if (open == std::string_view::npos) break;
    const std::size_t close = name.find(']', open);
    if (close == std::string_view::npos) return wrong(whole);
    const auto values = expand_ranges(name.substr(open + 1, close - open - 1), whole);
    if (!values) return values;
    if (names.size() * values->size() > kMostNames) return wrong(whole);
    std::vector<std::string> longer;
    for (const std::string& made : names) {
      for (const std::string& value : *values) longer.push_back(made + value);
    }
    names = std::move(longer);
    name.remove_prefix(close + 1);
  }
  return names;
}

}  // namespace

Result<std::vector<std::string>> expand_hostlist(std::string_view text) {
  std::vector<std::string> all;
  for (std::size_t begin = 0; begin < text.size();) {
    bool inside = false;
    std::size_t end = begin;
    for (; end < text.size() && (inside || text[end] != ','); ++end) {
      if (text[end] == '[') inside = true;
      if (text[end] == ']') inside = false;
    }
    if (end == begin) return wrong(text);
    const auto names = expand_name(text.substr(begin, end - begin), text);
    if (!names) return names;
    if (all.size() + names->size() > kMostNames) return wrong(text);
    all.insert(all.end(), names->begin(), names->end());
    begin = end + 1;
    if (begin == text.size()) return wrong(text);  // a comma at the end
  }
  return all;
}

std::string compress_hostlist(std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  /// Names of one beginning, whose last numbers have one width.
  struct Group {
    std::string stem;
    std::size_t width = 0;  // 0: no number
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  };
  std::vector<Group> groups;
  for (const std::string& name : names) {
    const std::size_t last = name.find_last_not_of("0123456789");
    const std::size_t at = last == std::string::npos ? 0 : last + 1;
    std::uint64_t value = 0;
    const auto read = std::from_chars(name.data() + at, name.data() + name.size(), value);
    const bool numbered = at < name.size() && read.ec == std::errc();
    const std::string stem = numbered ? name.substr(0, at) : name;
    const std::size_t width = numbered ? name.size() - at : 0;
    if (groups.empty() || groups.back().stem != stem || groups.back().width != width || !numbered) {
      groups.push_back({stem, width, {}});
    }
    if (!numbered) continue;
    auto& ranges = groups.back().ranges;
    if (!ranges.empty() && ranges.back().second + 1 == value) {
      ranges.back().second = value;
    } else {
      ranges.emplace_back(value, value);
    }
  }
  std::string text;
  for (const Group& group : groups) {
    text += (text.empty() ? "" : ",") + group.stem;
    if (group.width == 0) continue;
    const auto padded = [&](std::uint64_t value) {
      const std::string digits = std::to_string(value);
      return std::string(group.width - std::min(group.width, digits.size()), '0') + digits;
    };
    if (group.ranges.size() == 1 && group.ranges[0].first == group.ranges[0].second) {
      text += padded(group.ranges[0].first);
      continue;
    }
    std::string list;
    for (const auto& [low, high] : group.ranges) {
      list += (list.empty() ? "" : ",") + padded(low);
      if (low != high) list += "-" + padded(high);
    }
    text += "[" + list + "]";
  }
  return text;
}

}  // namespace qualify::scheduler
