#pragma once

#include <filesystem>

/// Names in an exported folder. Internal to this module.
namespace qualify::signoff {

struct Folder {
  std::filesystem::path root;

  [[nodiscard]] std::filesystem::path qualification() const { return root / "qualification.yaml"; }
  [[nodiscard]] std::filesystem::path state_key() const { return root / "state.pub"; }
  [[nodiscard]] std::filesystem::path log_key() const { return root / "log.vkey"; }
  [[nodiscard]] std::filesystem::path checkpoint() const { return root / "checkpoint"; }
  [[nodiscard]] std::filesystem::path signoff() const { return root / "signoff.sigstore.json"; }
  [[nodiscard]] std::filesystem::path records() const { return root / "records"; }
  [[nodiscard]] std::filesystem::path report() const { return root / "report.txt"; }
};

inline constexpr const char* kRecordEnd = ".sigstore.json";

}  // namespace qualify::signoff
