#include "qualify/spec/placeholders.hpp"

namespace qualify::spec {

Result<std::string> expand_placeholders(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') {
      out += text[i];
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == '{') {
      out += '{';
      ++i;
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string_view::npos) {
      return fail(Errc::invalid_input, "unclosed '{' in '" + std::string(text) + "'", {},
                  "write '{{' for a brace that is no placeholder");
    }
    const std::string_view name = text.substr(i + 1, end - i - 1);
    auto replacement = value(name);
    if (!replacement) {
      return fail(Errc::invalid_input, "unknown placeholder '{" + std::string(name) + "}'", {},
                  "write '{{' for a brace that is no placeholder");
    }
    out += *replacement;
    i = end;
  }
  return out;
}

Result<std::vector<std::string>> placeholders_in(std::string_view text) {
  std::vector<std::string> names;
  auto done = expand_placeholders(text, [&](std::string_view name) -> std::optional<std::string> {
    names.emplace_back(name);
    return std::string();
  });
  if (!done) return tl::unexpected(done.error());
  return names;
}

}  // namespace qualify::spec
