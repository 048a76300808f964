#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "qualify/base/digest.hpp"
#include "qualify/base/error.hpp"
#include "qualify/store/blob_store.hpp"
#include "qualify/traces/localize.hpp"
#include "qualify/traces/trace_set.hpp"

namespace qualify::run {

/// One run's traces, out of the evidence store by the names they had in the attempt. The links that
/// this takes go with the object.
class RunTraces {
 public:
  /// `scratch`: a folder for the links. Every file is hashed again. Errors: not_found (the run left
  /// no traces), integrity and not_found (the store's), io.
  [[nodiscard]] static Result<RunTraces> open(const store::BlobStore& store, const Digest& evidence,
                                              const std::filesystem::path& scratch);
  RunTraces(RunTraces&&) noexcept;
  RunTraces& operator=(RunTraces&&) noexcept;
  ~RunTraces();

  /// The traces, or why they can't be read, in names of the attempt.
  [[nodiscard]] const Result<traces::TraceSet>& set() const;
  /// The folder of links taken out of a text and of faults, whose names are then those of the
  /// attempt.
  [[nodiscard]] std::string without_folder(std::string text) const;
  [[nodiscard]] Error without_folder(Error error) const;
  void without_folder(traces::Faults& faults) const;

 private:
  struct State;
  explicit RunTraces(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Where B parts from A (traces::localize), in names of their attempts. Errors: those of
/// traces::localize, and of RunTraces::set().
[[nodiscard]] Result<traces::Localization> localize(const RunTraces& a, const RunTraces& b,
                                                    const traces::LocalizeOptions& options);

}  // namespace qualify::run
