#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "qualify/store/bundle.hpp"

namespace qualify::run {

/// Whether a laid-out bundle is, as seen from this machine, what was sealed: every code archive is
/// re-hashed and its files and links compared with those in `folder`, configs and the container
/// are re-hashed, and nothing else lies there. Every fault, with its path; empty = all is right.
/// Reads only.
[[nodiscard]] std::vector<std::string> check_layout(const store::BlobStore& store,
                                                    const store::Bundle& bundle,
                                                    const std::filesystem::path& folder);

}  // namespace qualify::run
