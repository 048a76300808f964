#include "qualify/spec/credentials.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace qualify::spec {

namespace {

bool is_alnum(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0;
}
bool is_token_char(char c) {
  return is_alnum(c) || c == '_' || c == '-';
}

/// A token with a fixed prefix and at least `least` characters after it.
struct Form {
  std::string_view prefix;
  std::size_t least;
  std::string_view what;
};

// Forms that their issuers document, so that scanners can find them.
constexpr std::array<Form, 15> kForms{{
    {"AKIA", 16, "an AWS access key"},
    {"ASIA", 16, "an AWS access key"},
    {"AIza", 35, "a Google API key"},
    {"ghp_", 36, "a GitHub token"},
    {"gho_", 36, "a GitHub token"},
    {"ghs_", 36, "a GitHub token"},
    {"github_pat_", 40, "a GitHub token"},
    {"glpat-", 20, "a GitLab token"},
    {"hf_", 30, "a Hugging Face token"},
    {"nvapi-", 40, "an NVIDIA API key"},
    {"xoxb-", 20, "a Slack token"},
    {"xoxp-", 20, "a Slack token"},
    {"sk-", 32, "an API secret key"},
    {"npm_", 36, "an npm token"},
    {"dckr_pat_", 20, "a Docker Hub token"},
}};

bool has_url_password(std::string_view value) {
  for (std::size_t at = value.find("://"); at != std::string_view::npos;
       at = value.find("://", at + 3)) {
    const std::string_view rest = value.substr(at + 3);
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?# \t\"'"));
    const std::size_t sign = authority.rfind('@');
    const std::size_t colon = authority.find(':');
    if (sign != std::string_view::npos && colon != std::string_view::npos && colon + 1 < sign) {
      const std::string_view password = authority.substr(colon + 1, sign - colon - 1);
      if (!password.starts_with('$') && !password.starts_with('<')) return true;
    }
  }
  return false;
}

/// Three base64url parts of which the first starts like {" .
bool has_json_web_token(std::string_view value) {
  for (std::size_t at = value.find("eyJ"); at != std::string_view::npos;
       at = value.find("eyJ", at + 3)) {
    std::size_t end = at;
    int dots = 0;
    while (end < value.size() && (is_token_char(value[end]) || value[end] == '.')) {
      if (value[end] == '.') ++dots;
      ++end;
    }
    if (dots == 2 && end - at > 40) return true;
  }
  return false;
}

/// Upper-case words of a name: "wandbApiKey" -> WANDB API KEY, "HF_TOKEN" -> HF TOKEN.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (std::size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (std::isalnum(c) == 0) {
      words.emplace_back();
      continue;
    }
    const bool hump =
        i > 0 && std::isupper(c) != 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (hump) words.emplace_back();
    words.back() += static_cast<char>(std::toupper(c));
  }
  std::erase(words, std::string());
  return words;
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool has(const std::vector<std::string>& words, std::string_view first, std::string_view second) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] == first && words[i + 1] == second) return true;
  }
  return false;
}

/// A reference to a value elsewhere is no value: ${X}, $X, {output}/x, <password>, a path.
bool is_reference(std::string_view value) {
  return value.starts_with('$') || value.starts_with('{') || value.starts_with('<') ||
         value.starts_with('/') || value.starts_with("./");
}

bool is_word_for_nothing(std::string_view value) {
  for (const std::string_view word : {"", "0", "1", "true", "false", "True", "False", "none",
                                      "None", "null", "~", "no", "yes", "''", "\"\""}) {
    if (value == word) return true;
  }
  return false;
}

/// Long, one word, letters and digits mixed.
bool looks_random(std::string_view value) {
  if (value.size() < 16) return false;
  bool digit = false;
  bool letter = false;
  for (const char c : value) {
    if (!is_token_char(c) && c != '.' && c != '+' && c != '/' && c != '=') return false;
    digit = digit || std::isdigit(static_cast<unsigned char>(c)) != 0;
    letter = letter || std::isalpha(static_cast<unsigned char>(c)) != 0;
  }
  return digit && letter;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r,\"'";
  const std::size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

std::optional<std::string> credential_in_line(std::string_view line) {
  if (auto why = credential_in(line)) return why;
  std::string_view rest = trimmed(line);
  if (rest.starts_with('#')) return std::nullopt;
  if (rest.starts_with("- ")) rest = trimmed(rest.substr(2));
  const bool option = rest.starts_with("--");
  const std::size_t split = rest.find_first_of(option ? " =:" : "=:");
  if (split == std::string_view::npos) return std::nullopt;
  const std::string_view name = trimmed(rest.substr(0, split));
  if (name.empty() || name.find(' ') != std::string_view::npos) return std::nullopt;
  std::string_view value = trimmed(rest.substr(split + 1));
  if (const std::size_t comment = value.find(" #"); comment != std::string_view::npos) {
    value = trimmed(value.substr(0, comment));
  }
  return credential_in(name, value);
}

}  // namespace

std::optional<std::string> credential_in(std::string_view value) {
  for (const Form& form : kForms) {
    for (std::size_t at = value.find(form.prefix); at != std::string_view::npos;
         at = value.find(form.prefix, at + 1)) {
      if (at > 0 && is_token_char(value[at - 1])) continue;
      std::size_t end = at + form.prefix.size();
      while (end < value.size() && is_token_char(value[end])) ++end;
      if (end - at - form.prefix.size() >= form.least) {
        return "it has the form of " + std::string(form.what);
      }
    }
  }
  if (value.find("PRIVATE KEY-----") != std::string_view::npos) return "it holds a private key";
  if (has_json_web_token(value)) return "it has the form of a JSON Web Token";
  if (has_url_password(value)) return "it holds a URL with a password";
  return std::nullopt;
}

std::optional<std::string> credential_in(std::string_view name, std::string_view value) {
  if (auto why = credential_in(value)) return why;
  if (is_word_for_nothing(value) || is_reference(value)) return std::nullopt;
  const auto words = words_of(name);
  for (const std::string_view word :
       {"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "APIKEY", "CREDENTIAL", "CREDENTIALS"}) {
    if (has(words, word)) return "its name says that it is a credential";
  }
  if (has(words, "API", "KEY") || has(words, "ACCESS", "KEY") || has(words, "PRIVATE", "KEY") ||
      has(words, "SECRET", "KEY") || has(words, "AUTH", "KEY")) {
    return "its name says that it is a key";
  }
  if ((has(words, "TOKEN") || has(words, "BEARER") || has(words, "WANDB", "KEY")) &&
      looks_random(value)) {
    return "its name says that it is a token, and it looks random";
  }
  return std::nullopt;
}

std::optional<CredentialLine> credential_in_text(std::string_view text) {
  int number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    if (auto why = credential_in_line(text.substr(0, end))) return CredentialLine{number, *why};
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return std::nullopt;
}

}  // namespace qualify::spec
