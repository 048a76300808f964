// A checkpoint folder whose tracker and folder name are any bytes.

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "qualify/exactness/compare.hpp"

namespace fs = std::filesystem;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 512) return 0;
  static const fs::path root =
      fs::temp_directory_path() / ("fuzz-checkpoint." + std::to_string(::getpid()));
  fs::remove_all(root);
  fs::create_directories(root);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto line = std::min(text.find('\n'), text.size());
  std::ofstream(root / "latest_checkpointed_iteration.txt", std::ios::binary)
      << text.substr(0, line);
  std::string name = "iter_" + (line < text.size() ? text.substr(line + 1, 100) : "0000001");
  std::replace(name.begin(), name.end(), '/', '_');
  name = name.substr(0, name.find('\0'));
  std::error_code error;
  fs::create_directories(root / name, error);
  std::ofstream(root / name / "common.pt", std::ios::binary) << text;
  const auto run = qualify::evidence::read_metrics(root);
  if (!run ||
      qualify::exactness::compare(*run, *run).outcome == qualify::exactness::Outcome::differs ||
      !qualify::canonical_json(
          qualify::exactness::to_json(qualify::exactness::compare(*run, *run)))) {
    std::abort();
  }
  fs::remove_all(root);
  return 0;
}
