#pragma once

#include <string>
#include <string_view>

namespace qualify {

/// Text for XML and SVG, in content and in attributes: markup is escaped; control characters, which
/// XML cannot hold, become '?'.
[[nodiscard]] std::string escape_xml(std::string_view text);

}  // namespace qualify
