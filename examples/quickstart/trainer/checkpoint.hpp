#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "model.hpp"
#include "settings.hpp"

/// Checkpoints, laid out as Megatron-LM lays them out:
///   latest_checkpointed_iteration.txt        the number of the newest complete one
///   iter_0000050/rank_000000.safetensors     rank 0's share of model and optimizer
///   iter_0000050/metadata.json               written last: without it the checkpoint is incomplete
/// A share is every parameter whose index leaves the rank's number as remainder, in the safetensors
/// format (8-byte length, JSON header, raw float32): NAME, optimizer.mean.NAME and
/// optimizer.square.NAME. metadata.json has the SHA-256 and size of every share, and the settings
/// that a resumed run must have in common to go on bit for bit.
namespace quickstart {

/// Model and optimizer of one replica, all flat buffers of equal length.
struct ReplicaState {
  std::span<float> weights;
  std::span<float> mean;
  std::span<float> square;
};

/// What must be the same in the run that saved and the one that resumes.
[[nodiscard]] nlohmann::json identity_of(const Settings& settings, const ModelShape& shape,
                                         const std::string& text_sha256);

[[nodiscard]] std::filesystem::path checkpoint_folder(const std::filesystem::path& root,
                                                      std::int64_t iteration);

/// Writes one rank's share; the folder is made if missing. Throws OutputError.
void save_share(const std::filesystem::path& folder, unsigned rank, unsigned ranks,
                const std::vector<Parameter>& parameters, const ReplicaState& state);

/// Once every share is there: metadata.json, then the `latest` file. Throws OutputError.
void complete_checkpoint(const std::filesystem::path& root, std::int64_t iteration, unsigned ranks,
                         const nlohmann::json& identity);

/// A complete checkpoint whose files have been checked.
struct Checkpoint {
  std::filesystem::path folder;
  std::int64_t iteration = 0;
  unsigned ranks = 0;
};

/// `where`: the folder of all checkpoints (the latest is taken) or of one. Throws InputError: none
/// there, incomplete, a share missing or changed, or made with another identity (says which part).
[[nodiscard]] Checkpoint open_checkpoint(const std::filesystem::path& where,
                                         const nlohmann::json& identity);

/// Reads all shares into `state`. Throws InputError.
void load_checkpoint(const Checkpoint& checkpoint, const std::vector<Parameter>& parameters,
                     const ReplicaState& state);

}  // namespace quickstart
