#pragma once

#include <atomic>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "settings.hpp"
#include "support/temp_folder.hpp"
#include "training.hpp"

namespace quickstart::test {

/// A text with structure to learn, larger than any context used here.
inline std::string small_text() {
  std::string text;
  for (int i = 0; i < 40; ++i) {
    text += "the gradient of rank " + std::to_string(i % 7) + " is added to the sum; ";
  }
  return text;
}

/// Settings of a run that takes milliseconds. Writes the text into `folder`.
inline Settings small_settings(const qualify::test::TempFolder& folder, const std::string& output) {
  std::ofstream(folder / "text") << small_text();
  Settings s;
  s.text = folder / "text";
  s.output = folder / output;
  s.ranks = 3;
  s.train_iters = 8;
  s.micro_batch_size = 4;
  s.context = 4;
  s.embedding = 5;
  s.hidden = 7;
  s.lr_warmup_iters = 2;
  s.save_interval = 4;
  return s;
}

/// Runs to the end and returns the log.
inline std::string run(const Settings& settings) {
  std::ostringstream log;
  const std::atomic<bool> stop = false;
  train(settings, log, stop);
  return log.str();
}

inline std::string content(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

}  // namespace quickstart::test
