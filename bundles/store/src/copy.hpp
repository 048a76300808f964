#pragma once

#include <cstdint>
#include <filesystem>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/base/files.hpp"

/// Moving and hashing large files at the speed of one core's SHA-256. Internal to this module.
///
/// SHA-256 of one file is serial, so that nothing is faster than one core's rate; but reading and
/// writing need not be added to it: they go on while another thread hashes. At most 2 MiB a file
/// are under way. Small files take no thread.
namespace qualify::store {

/// Hashes everything from the descriptor's place on; `sink`, when there is one, gets the same
/// pieces, in order. `name` is for errors. Errors: io, the sink's.
[[nodiscard]] Result<HashedFile> hash_stream(int from, const std::filesystem::path& name,
                                             const Sink& sink = {});

/// Copies everything from `from` into the empty file `to` and hashes what was stored. On file
/// systems that can (XFS, btrfs), blocks are shared instead of written. Space that is not there is
/// found before the first byte is read. `sink` as of hash_stream. Errors: io, no_space, the sink's.
[[nodiscard]] Result<HashedFile> copy_and_hash(int from, int to, const std::filesystem::path& name,
                                               const Sink& sink = {});

}  // namespace qualify::store
