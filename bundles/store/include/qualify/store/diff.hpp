#pragma once

#include <string>
#include <vector>

#include "qualify/store/bundle.hpp"

namespace qualify::store {

/// One input that differs between two bundles, in words.
struct Difference {
  std::string input;                 ///< "code trainer", "environment", "arm deterministic", …
  std::string what;                  ///< "commit 1a2b… -> 3c4d…", "NCCL_ALGO: Ring -> Tree"
  std::vector<std::string> details;  ///< changed paths: "added lib/x.py", "removed …", "changed …"
};

/// What would have to change to come from `a` to `b`; empty when the digests are equal. Code and
/// data are compared file by file. Errors: integrity, io.
[[nodiscard]] Result<std::vector<Difference>> diff(const BlobStore& store, const Bundle& a,
                                                   const Bundle& b);

}  // namespace qualify::store
