#include "qualify/spec/names.hpp"

#include <algorithm>
#include <cctype>

namespace qualify::spec {

namespace {

constexpr std::size_t kLongestName = 64;

bool is_alphanumeric(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

}  // namespace

bool is_name(std::string_view name) {
  const auto good = [](char c) { return is_alphanumeric(c) || c == '.' || c == '_' || c == '-'; };
  return !name.empty() && name.size() <= kLongestName && is_alphanumeric(name.front()) &&
         std::all_of(name.begin(), name.end(), good);
}

bool is_variable_name(std::string_view name) {
  const auto good = [](char c) { return is_alphanumeric(c) || c == '_'; };
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), good);
}

bool is_file_name(std::string_view name) {
  const auto bad = [](char c) { return c == '/' || is_control(c); };
  return !name.empty() && name != "." && name != ".." &&
         std::none_of(name.begin(), name.end(), bad);
}

bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  for (;;) {
    const std::size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    if (part.empty() || part == "." || part == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace qualify::spec
