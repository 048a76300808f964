#include "text_numbers.hpp"

#include <algorithm>
#include <cstring>

namespace qualify::traces {

std::uint32_t TextNumbers::of(std::string_view text) {
  if (text.empty()) return 0;
  if (text.size() > 128) return strings_.id(text);
  std::uint64_t h = text.size();
  std::uint64_t word = 0;
  std::memcpy(&word, text.data(), std::min<std::size_t>(8, text.size()));
  h = (h ^ word) * 0x9E3779B97F4A7C15U;
  word = 0;
  const std::size_t tail = std::min<std::size_t>(8, text.size());
  std::memcpy(&word, text.data() + text.size() - tail, tail);
  h = ((h >> 29U) ^ h ^ word) * 0xBF58476D1CE4E5B9U;
  if (text.size() > 16) {
    std::memcpy(&word, text.data() + text.size() / 2 - 4, 8);
    h = ((h >> 29U) ^ h ^ word) * 0x94D049BB133111EBU;
  }
  Known& known = recent_[h >> 56U];
  if (known.text != text) {
    known.id = strings_.id(text);
    known.text = text;
  }
  return known.id;
}

std::uint32_t TextNumbers::of_group(std::string_view name) {
  if (name.empty()) return 0;
  if (name == last_group_) return last_group_id_;
  last_group_ = name;
  const auto [found, fresh] = groups_.try_emplace(last_group_, 0);
  if (fresh) {
    const auto ranks = manifest_.groups.find(last_group_);
    found->second = strings_.id(ranks == manifest_.groups.end()
                                    ? last_group_
                                    : last_group_ + "@" + ranks_text(ranks->second));
  }
  last_group_id_ = found->second;
  return last_group_id_;
}

}  // namespace qualify::traces
