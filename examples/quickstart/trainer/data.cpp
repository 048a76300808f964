#include "data.hpp"

#include <fstream>
#include <iterator>

#include "errors.hpp"
#include "sha256.hpp"

namespace quickstart {

std::uint64_t mix64(std::uint64_t counter) {
  std::uint64_t z = counter + 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

Text Text::read(const std::filesystem::path& file) {
  constexpr std::uintmax_t kLimit = 64U << 20U;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    throw InputError("the text " + file.string() + " is not a file; --text names it");
  }
  if (std::filesystem::file_size(file, error) > kLimit) {
    throw InputError("the text " + file.string() + " is larger than 64 MiB");
  }
  std::ifstream stream(file, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(stream)),
                          std::istreambuf_iterator<char>());
  if (!stream) {
    throw InputError("the text " + file.string() + " cannot be read");
  }
  Text text(bytes);
  if (text.vocabulary() < 2) {
    throw InputError("the text " + file.string() + " has fewer than two different characters");
  }
  return text;
}

Text::Text(const std::string& bytes) : sha256_(sha256_hex({std::as_bytes(std::span(bytes))})) {
  std::array<std::int32_t, 256> number{};
  number.fill(-1);
  for (const char c : bytes) {
    number[static_cast<unsigned char>(c)] = 0;
  }
  for (std::int32_t& n : number) {
    if (n == 0) {
      n = static_cast<std::int32_t>(vocabulary_++);
    }
  }
  symbols_.reserve(bytes.size());
  for (const char c : bytes) {
    symbols_.push_back(number[static_cast<unsigned char>(c)]);
  }
}

Batch Text::batch(std::uint64_t seed, std::uint64_t first, unsigned size, unsigned context) const {
  if (symbols_.size() <= context) {
    throw InputError("the text has " + std::to_string(symbols_.size()) +
                     " characters; it needs more than --context, which is " +
                     std::to_string(context));
  }
  Batch batch{size, context, {}, {}};
  batch.inputs.reserve(std::size_t{size} * context);
  batch.targets.reserve(size);
  const std::uint64_t places = symbols_.size() - context;
  for (unsigned i = 0; i < size; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(mix64(mix64(seed) ^ (first + i)) % places);
    const auto from = symbols_.begin() + at;
    batch.inputs.insert(batch.inputs.end(), from, from + context);
    batch.targets.push_back(*(from + context));
  }
  return batch;
}

}  // namespace quickstart
