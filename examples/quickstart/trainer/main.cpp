// quickstart_trainer: see README.md.

#include <atomic>
#include <csignal>
#include <exception>
#include <iostream>

#include "errors.hpp"
#include "settings.hpp"
#include "training.hpp"

namespace {

std::atomic<bool> stop_requested = false;
std::atomic<int> stop_signal = 0;
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_signal(int number) {
  stop_signal = number;
  stop_requested = true;
}

int complain(int code, const std::exception& error) {
  std::cerr << "quickstart_trainer: " << error.what() << "\n";
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  const quickstart::Invocation invocation = quickstart::read_settings(argc, argv);
  if (!invocation.settings) {
    (invocation.exit_code == 0 ? std::cout : std::cerr) << invocation.text;
    return invocation.exit_code;
  }
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // a second signal ends the program at once
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  try {
    if (quickstart::train(*invocation.settings, std::cout, stop_requested) ==
        quickstart::Ending::finished) {
      return 0;
    }
  } catch (const quickstart::InputError& error) {
    return complain(2, error);
  } catch (const quickstart::TrainingError& error) {
    return complain(1, error);
  } catch (const quickstart::OutputError& error) {
    return complain(3, error);
  } catch (const std::exception& error) {
    return complain(1, error);
  }
  // Stopped in good order. Ending by the signal itself tells every parent the truth: not finished.
  std::cout.flush();
  const int number = stop_signal;
  std::signal(number, SIG_DFL);
  std::raise(number);
  return 128 + number;
}
