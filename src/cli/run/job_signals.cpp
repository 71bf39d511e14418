#include "cli/run/job_signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.h"

namespace trestle {
namespace {

constexpr int64_t kAtOnceNs = 100'000'000;

bool is_ignored(int number) {
  struct sigaction action {};
  return sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace

bool ends_job(int number) {
  return number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT;
}

Result<JobSignals> JobSignals::open() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&watched, number);
  }
  if (!is_ignored(SIGHUP)) sigaddset(&watched, SIGHUP);
  ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, no exit status of a child can be read
  ::signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  UniqueFd fd(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return Error{Code::kSystemError, std::string("signalfd: ") + std::strerror(errno)};
  return JobSignals(std::move(fd));
}

bool JobSignals::repeats(int number, pid_t sender) {
  const int64_t now_ns = monotonic_clock().now_ns();
  if (number == last_ && sender != 0 && sender == last_sender_ && now_ns - last_ns_ < kAtOnceNs) return true;
  last_ = number;
  last_sender_ = sender;
  last_ns_ = now_ns;  // only of counted signals, so a steady stream still counts ten times a second
  return false;
}

std::vector<int> JobSignals::take() {
  std::vector<int> numbers;
  signalfd_siginfo info;
  while (::read(fd_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) continue;
    if (ends_job(number) && repeats(number, static_cast<pid_t>(info.ssi_pid))) continue;
    numbers.push_back(number);
  }
  return numbers;
}

}  // namespace trestle
