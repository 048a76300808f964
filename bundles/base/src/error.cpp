#include "qualify/base/error.hpp"

#include <cerrno>
#include <iterator>
#include <system_error>

namespace qualify {

std::string Error::describe() const {
  std::string text;
  if (!context.empty()) text += context + ": ";
  text += message;
  if (!hint.empty()) text += "\n  " + hint;
  for (const Error& other : others) text += "\n" + other.describe();
  return text;
}

Unexpected fail(Errc code, std::string message, std::string context, std::string hint) {
  return Unexpected(Error{code, std::move(message), std::move(context), std::move(hint), {}});
}

Unexpected fail_all(std::vector<Error> errors) {
  Error first = std::move(errors.front());
  first.others.insert(first.others.end(), std::make_move_iterator(errors.begin() + 1),
                      std::make_move_iterator(errors.end()));
  return Unexpected(std::move(first));
}

Unexpected fail_errno(int error_number, std::string message, std::string context) {
  Errc code = Errc::io;
  if (error_number == ENOSPC || error_number == EDQUOT) code = Errc::no_space;
  if (error_number == ENOENT) code = Errc::not_found;
  message += ": " + std::system_category().message(error_number);
  return fail(code, std::move(message), std::move(context));
}

Exit exit_for(Errc code) {
  switch (code) {
    case Errc::usage:
    case Errc::invalid_input:
    case Errc::not_found:
    case Errc::already_exists:
    case Errc::unsupported:
    case Errc::io:  // a path that may not be read or written, a full disk: for a person to mend
    case Errc::no_space:
      return Exit::usage;
    case Errc::refused:
      return Exit::undecided;
    case Errc::busy:
    case Errc::unavailable:
    case Errc::internal:
      return Exit::unavailable;
    case Errc::interrupted:
      return Exit::interrupted;
    case Errc::integrity:
      return Exit::integrity;
  }
  return Exit::unavailable;
}

const char* name_of(Errc code) {
  switch (code) {
    case Errc::usage:
      return "usage";
    case Errc::invalid_input:
      return "invalid-input";
    case Errc::not_found:
      return "not-found";
    case Errc::already_exists:
      return "already-exists";
    case Errc::refused:
      return "refused";
    case Errc::unsupported:
      return "unsupported";
    case Errc::busy:
      return "busy";
    case Errc::io:
      return "io";
    case Errc::no_space:
      return "no-space";
    case Errc::unavailable:
      return "unavailable";
    case Errc::integrity:
      return "integrity";
    case Errc::interrupted:
      return "interrupted";
    case Errc::internal:
      return "internal";
  }
  return "internal";
}

}  // namespace qualify
