#pragma once

namespace qualify {

/// "major.minor.patch", from the top CMakeLists.txt.
[[nodiscard]] const char* version();

}  // namespace qualify
