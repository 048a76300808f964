#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

struct ZSTD_CCtx_s;

/// Compression of the buffers of sealed files. Internal to this module.
namespace qualify::traces {

/// zstd frames, one after another on one thread. Iterations repeat themselves, and ranks one
/// another: most columns that say what an event is hold the same bytes as in the batch before, and
/// get the same frame without being compressed again.
class Frames {
 public:
  Frames();
  Frames(const Frames&) = delete;
  Frames& operator=(const Frames&) = delete;
  ~Frames();

  /// The frame of `raw`, valid until the next call.
  /// `place`: of the buffer in its message; what it held before is kept for it.
  [[nodiscard]] std::string_view of(std::string_view raw, std::size_t place);
  /// For what does not come again.
  [[nodiscard]] std::string_view once(std::string_view raw);

 private:
  struct Known {
    std::string raw;
    std::string frame;
  };
  struct Place {
    std::array<Known, 2> known;  ///< a whole batch, and a rank's last
    std::size_t older = 0;
  };
  ZSTD_CCtx_s* context_;
  std::string frame_;  ///< kept, so that no buffer is cleared for each frame
  std::vector<Place> places_;
};

}  // namespace qualify::traces
