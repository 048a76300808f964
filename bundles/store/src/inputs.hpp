#pragma once

#include <atomic>

#include "qualify/store/bundle.hpp"
#include "stat_cache.hpp"

/// Freezing one input each. Internal to this module; safe to call from several threads with one
/// context.
namespace qualify::store {

struct SealContext {
  BlobStore& store;
  StatCache& cache;
  bool allow_dirty = false;
  unsigned jobs = 0;
  unsigned jobs_a_folder = 1;  ///< of `jobs`, those with which one data folder's files are read
  std::atomic<bool> dirty = false;  ///< some code was
};

/// Errors: those of git::Tree.
[[nodiscard]] Result<SealedCode> seal_code(const spec::CodeInput& input, SealContext& context);
/// Errors: not_found, io, invalid_input (does not parse, over 16 MiB), refused (credential).
[[nodiscard]] Result<SealedConfig> seal_config(const spec::ConfigInput& input,
                                               SealContext& context);
/// Errors: not_found, io, no_space, invalid_input, unsupported, integrity.
[[nodiscard]] Result<SealedContainer> seal_container(const spec::ContainerInput& input,
                                                     SealContext& context);
/// Errors: not_found, io, invalid_input (not files), integrity (changed while read), refused
/// (another digest than the spec says).
[[nodiscard]] Result<SealedData> seal_data(const spec::DataInput& input, SealContext& context);

}  // namespace qualify::store
