#include "qualify/spec/placeholders.hpp"

namespace qualify::spec {

Result<std::string> expand_placeholders(
    std::string_view text,
    const std::function<std::optional<std::string>(std::string_view name)>& value) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c != '{' && c != '}') {
      out += c;
      continue;
    }
    if (i + 1 < text.size() && text[i + 1] == c) {  // "{{" and "}}"
      out += c;
      ++i;
      continue;
    }
    const std::size_t end = c == '{' ? text.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos) {
      return fail(Errc::invalid_input, "an unpaired brace in '" + std::string(text) + "'", {},
                  "write '{{' or '}}' for a brace that is meant");
    }
    const std::string_view name = text.substr(i + 1, end - i - 1);
    auto replacement = value(name);
    if (!replacement) {
      return fail(Errc::invalid_input, "unknown placeholder '{" + std::string(name) + "}'", {},
                  "write '{{' or '}}' for a brace that is meant");
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
