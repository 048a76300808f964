// The floor for a reader of JSON Lines: simdjson visits every member of every line, decodes each
// number, and keeps nothing. Prints CPU seconds and MB/s of CPU. The file is in memory before the
// clock starts.

#include <simdjson.h>
#include <sys/resource.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: visit_json FILE\n", stderr);
    return 2;
  }
  namespace ondemand = simdjson::ondemand;
  simdjson::padded_string text;
  if (simdjson::padded_string::load(argv[1]).get(text)) {
    std::fprintf(stderr, "cannot read %s\n", argv[1]);
    return 1;
  }
  const auto cpu = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
  };
  const double begin = cpu();
  constexpr std::size_t kBatch = 1U << 20U;
  ondemand::parser parser;
  ondemand::document_stream lines;
  std::size_t numbers = 0;
  std::size_t key_bytes = 0;
  double sum = 0;
  bool good = !parser.iterate_many(text, kBatch).get(lines);
  for (auto line = lines.begin(); good && line != lines.end(); ++line) {
    auto document = *line;
    ondemand::object object;
    good = !document.get_object().get(object);
    if (!good) break;
    for (auto field : object) {
      std::string_view key;
      ondemand::value value;
      ondemand::json_type type{};
      if (field.unescaped_key().get(key) || field.value().get(value) || value.type().get(type)) {
        good = false;
        break;
      }
      key_bytes += key.size();
      double number = 0;
      if (type == ondemand::json_type::number && !value.get_double().get(number)) {
        ++numbers;
        sum += number;
      }
    }
  }
  const double taken = cpu() - begin;
  if (!good) {
    std::fputs("not JSON Lines\n", stderr);
    return 1;
  }
  std::printf("%zu numbers (sum %g), %zu bytes of keys, cpu %.2f s, %.0f MB/s of cpu\n", numbers,
              sum, key_bytes, taken, static_cast<double>(text.size()) / 1e6 / taken);
  return 0;
}
