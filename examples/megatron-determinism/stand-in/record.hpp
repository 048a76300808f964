#pragma once

#include <filesystem>
#include <memory>
#include <stdexcept>

#include "arguments.hpp"
#include "model.hpp"
#include "qualify/tracer/tracer.h"

namespace stand_in {

/// What cannot be written, with the reason.
struct OutputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The trace of this rank: activations and gradient of its own share, and the sum of all gradients.
/// Rank 0 writes the manifest. Writes nothing where no folder is given.
class Record {
 public:
  /// Throws OutputError.
  explicit Record(const Arguments& arguments);

  void iteration(std::int64_t number, const Iteration& values);
  /// Throws OutputError: something was not written.
  void end();

 private:
  std::unique_ptr<qtrace, int (*)(qtrace*)> trace_;
};

}  // namespace stand_in
