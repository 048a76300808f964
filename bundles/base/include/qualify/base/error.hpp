#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

namespace qualify {

/// The closed set of reasons for which an operation can fail. A gate that fails is not among them:
/// that is a verdict, and a value.
enum class Errc {
  usage,           ///< the command line asks for something that does not exist
  invalid_input,   ///< a file that a person wrote, or data that a run left, is not well-formed
  not_found,       ///< a named thing is not there
  already_exists,  ///< a named thing is there and may not be replaced
  refused,         ///< policy forbids it (no grant, dirty tree, credential in an environment)
  unsupported,     ///< well-formed, but this build or version cannot do it
  busy,            ///< somebody else holds the state, the machine or the reservation
  io,              ///< the operating system refused a read or write
  no_space,        ///< the disk or quota is full
  unavailable,     ///< a scheduler or another system does not answer
  integrity,       ///< content does not have the digest, signature or shape that it was stored with
  interrupted,     ///< the user asked to stop
  internal,        ///< a bug in qualify
};

/// An error for a person: what was wrong, where, and what to do next.
struct Error {
  Errc code = Errc::internal;
  std::string message;  ///< what was wrong, one sentence, no trailing full stop
  std::string context;  ///< where: "path", "path:line:column", "reservation NAME"; may be empty
  std::string hint;     ///< what to try next; may be empty
  std::vector<Error> others;  ///< further faults found in the same pass, in order

  /// "context: message" and an indented hint line; `others` follow, one fault a paragraph.
  [[nodiscard]] std::string describe() const;
};

template <class T>
using Result = tl::expected<T, Error>;

using Unexpected = tl::unexpected<Error>;

/// Shorthand for `return fail(Errc::io, "cannot read", path)`.
[[nodiscard]] Unexpected fail(Errc code, std::string message, std::string context = {},
                              std::string hint = {});

/// The first of them, with the others beside it. At least one.
[[nodiscard]] Unexpected fail_all(std::vector<Error> errors);

/// As fail(), from errno (`error_number`): ENOSPC and EDQUOT become no_space, ENOENT not_found,
/// others io. The system's text is appended to `message`.
[[nodiscard]] Unexpected fail_errno(int error_number, std::string message,
                                    std::string context = {});

/// The stable exit codes of the command line.
enum class Exit : int {
  ok = 0,             ///< pass, equal, done
  differs = 1,        ///< fail, differs
  usage = 2,          ///< usage, bad input, a file that cannot be used (io, no_space too)
  undecided = 3,      ///< inconclusive, needs-decision, blocked
  unavailable = 4,    ///< scheduler or system unavailable
  integrity = 5,      ///< integrity fault
  interrupted = 130,  ///< stopped by Ctrl-C, as a shell says it
};

[[nodiscard]] Exit exit_for(Errc code);

/// Stable lower-case name of a code, for `--json`.
[[nodiscard]] const char* name_of(Errc code);

}  // namespace qualify
