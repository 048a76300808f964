#include "signals.hpp"

#include <signal.h>

namespace qualify::cli {

namespace {

volatile sig_atomic_t g_interrupts = 0;
volatile sig_atomic_t g_detach = 0;

void on_signal(int signal) {
  if (signal != SIGINT) {
    g_detach = 1;
    return;
  }
  g_interrupts = g_interrupts + 1;
  if (g_interrupts > 1) ::signal(SIGINT, SIG_DFL);  // the next one is final
}

}  // namespace

void catch_stop_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  ::sigemptyset(&action.sa_mask);
  // No SA_RESTART: a wait must end early so that the request is seen.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
}

run::Stop stop_requested() {
  if (g_interrupts > 0) return run::Stop::cancel;
  if (g_detach > 0) return run::Stop::detach;
  return run::Stop::none;
}

}  // namespace qualify::cli
