#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "qualify/base/error.hpp"
#include "qualify/traces/faults.hpp"
#include "qualify/traces/summary.hpp"

namespace qualify::traces {

class Frames;
class Unsettled;

/// Writes one rank's events of a window of iterations as an Arrow IPC file (columnar format V5,
/// buffers compressed with zstd), under a temporary name until finish(): a crash leaves nothing
/// that looks sealed.
class SealedWriter {
 public:
  /// `frames`: where one thread writes files one after another, what they compress with; it
  /// outlives the writer. Errors: io, no_space, not_found (the folder).
  [[nodiscard]] static Result<SealedWriter> create(const std::filesystem::path& path,
                                                   std::int64_t rank, Frames* frames = nullptr);
  SealedWriter(SealedWriter&&) noexcept;
  SealedWriter& operator=(SealedWriter&&) noexcept;
  ~SealedWriter();  ///< without finish(): the temporary file is removed

  /// Rows in the rank's order; all calls with the same Strings. Errors: io, no_space.
  [[nodiscard]] Result<void> append(const Event& event, const Strings& strings);

  struct Source {
    std::uint64_t bytes = 0;  ///< of the source, up to where the window ends
    std::uint64_t lines = 0;  ///< the same in lines
    std::int64_t last_sequence = -1;
    std::string schema;  ///< "trace-pr6610", "trace-fork"
    Faults faults;       ///< of the records that it holds
  };
  /// Durable under its name when it returns, or with the others of `later`. Errors: io, no_space.
  [[nodiscard]] Result<RankSummary> finish(const Strings& strings, const Source& source,
                                           Unsettled* later = nullptr);
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }  ///< of the finished file

 private:
  struct State;
  explicit SealedWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
  std::uint64_t bytes_ = 0;
};

/// A sealed file, mapped. Thread rule: const members from any thread.
class SealedFile {
 public:
  /// Errors: not_found, io, integrity (cut off, not a sealed trace, footer that points outside).
  [[nodiscard]] static Result<SealedFile> open(const std::filesystem::path& path);
  SealedFile(SealedFile&&) noexcept;
  SealedFile& operator=(SealedFile&&) noexcept;
  ~SealedFile();

  [[nodiscard]] std::int64_t rank() const;
  [[nodiscard]] const RankSummary& summary() const;
  [[nodiscard]] const SealedWriter::Source& source() const;
  [[nodiscard]] std::uint64_t rows() const;

  /// One iteration's rows, empty where the file has none. Errors: integrity (a damaged buffer).
  [[nodiscard]] Result<Events> read(std::int64_t iteration, Strings& strings) const;
  /// All rows. Errors: integrity.
  [[nodiscard]] Result<Events> read_all(Strings& strings) const;
  /// Reads every row and makes the summary anew. Errors: integrity, naming the first node that does
  /// not have its leaves' hash.
  [[nodiscard]] Result<void> check() const;

  /// Whether two whole sealed files are the same, byte for byte. False where they differ or are not
  /// whole: open() says more. Errors: not_found, io.
  [[nodiscard]] static Result<bool> same_bytes(const std::filesystem::path& a,
                                               const std::filesystem::path& b);
  /// Whether two files hold the same values, bytes of buffers first, and values where those differ;
  /// times aside. Errors: integrity.
  [[nodiscard]] static Result<bool> same_values(const SealedFile& a, const SealedFile& b);

 private:
  struct State;
  explicit SealedFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace qualify::traces
