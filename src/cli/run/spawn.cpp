#include "cli/run/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/unique_fd.h"
#include "cli/run/guard.h"

namespace trestle {
namespace {

using Step = Spawned::Step;

struct SpawnFailure {
  Step step{};
  int number = 0;
};

// Everything that must be prepared before fork(): afterwards only async-signal-safe calls are allowed.
struct Image {
  explicit Image(const SpawnRequest& request) {
    for (const auto& [name, value] : request.environment) texts.push_back(name + "=" + value);
    for (const std::string& argument : request.command) arguments.push_back(const_cast<char*>(argument.c_str()));
    for (const std::string& text : texts) variables.push_back(const_cast<char*>(text.c_str()));
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
    for (const int processor : request.processors) {
      const auto at = static_cast<size_t>(processor);
      mask.resize(std::max(mask.size(), at / CPU_SETSIZE + 1));
      CPU_SET_S(at, mask.size() * sizeof(cpu_set_t), mask.data());
    }
  }
  std::vector<std::string> texts;
  std::vector<char*> arguments;
  std::vector<char*> variables;
  std::vector<cpu_set_t> mask;  // empty: not bound
};

[[noreturn]] void fail(int report, Step step) {
  const SpawnFailure failure{step, errno};
  if (::write(report, &failure, sizeof failure) < 0) _exit(125);
  _exit(126);
}

void reset_signals() {
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void become(const Image& image, const SpawnRequest& request, pid_t parent, int report) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent ended before the line above
  if (!Guard::tell(request.guard, getpid())) fail(report, Step::kGuard);
  reset_signals();
  for (int stream = 0; stream < 3; ++stream) dup2(request.streams[static_cast<size_t>(stream)], stream);
  setrlimit(RLIMIT_NOFILE, &request.descriptors);
  const size_t bytes = image.mask.size() * sizeof(cpu_set_t);
  if (bytes > 0 && sched_setaffinity(0, bytes, image.mask.data()) != 0) fail(report, Step::kBind);
  execvpe(image.arguments[0], image.arguments.data(), image.variables.data());
  fail(report, Step::kExec);
}

// A successful exec closes the pipe.
bool read_failure(int report, SpawnFailure& failure) {
  ssize_t got = 0;
  do {
    got = ::read(report, &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof failure);
}

}  // namespace

Spawned spawn(const SpawnRequest& request) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {-1, Step::kFork, errno};
  const UniqueFd report(ends[0]);
  UniqueFd reporter(ends[1]);
  const Image image(request);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return {-1, Step::kFork, errno};
  if (pid == 0) become(image, request, parent, reporter.get());
  setpgid(pid, pid);  // parent and child both call this; the first call counts
  reporter.reset();
  SpawnFailure failure;
  if (!read_failure(report.get(), failure)) return {pid, {}, 0};
  waitpid(pid, nullptr, 0);
  Guard::tell(request.guard, -pid);
  return {-1, failure.step, failure.number};
}

}  // namespace trestle
