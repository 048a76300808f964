#include "frames.hpp"

#include <zstd.h>

#include <new>

namespace qualify::traces {

namespace {

constexpr int kLevel =
    1;  ///< of zstd: half of what is left is digests, which no level makes smaller
constexpr std::size_t kLargestKept = 64U << 10U;

}  // namespace

Frames::Frames() : context_(ZSTD_createCCtx()) {}
Frames::~Frames() {
  ZSTD_freeCCtx(context_);
}

std::string_view Frames::once(std::string_view raw) {
  const std::size_t bound = ZSTD_compressBound(raw.size());
  if (frame_.size() < bound) frame_.resize(bound);
  const std::size_t size =
      ZSTD_compressCCtx(context_, frame_.data(), frame_.size(), raw.data(), raw.size(), kLevel);
  if (ZSTD_isError(size) != 0) throw std::bad_alloc();  // nothing else can fail in a large frame_
  return {frame_.data(), size};
}

std::string_view Frames::of(std::string_view raw, std::size_t place) {
  if (raw.size() > kLargestKept) return once(raw);
  if (place >= places_.size()) places_.resize(place + 1);
  Place& held = places_[place];
  for (std::size_t i = 0; i < held.known.size(); ++i) {
    if (held.known[i].raw != raw) continue;
    held.older = 1 - i;
    return held.known[i].frame;
  }
  Known& known = held.known[held.older];
  held.older = 1 - held.older;
  known.frame = once(raw);
  known.raw = raw;
  return known.frame;
}

}  // namespace qualify::traces
