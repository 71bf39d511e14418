#include "cli/run/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace trestle {
namespace {

// All that the child needs is made before vfork(): afterwards only async-signal-safe calls are allowed.
struct Image {
  std::vector<char*> arguments;
  std::vector<char*> variables;
  std::vector<cpu_set_t> mask;  // empty: not bound
};

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> found;
  for (const std::string& text : texts) found.push_back(const_cast<char*>(text.c_str()));
  found.push_back(nullptr);
  return found;
}

std::vector<cpu_set_t> mask_of(const std::vector<int>& processors) {
  std::vector<cpu_set_t> mask;
  for (const int processor : processors) {
    const auto at = static_cast<size_t>(processor);
    mask.resize(std::max(mask.size(), at / CPU_SETSIZE + 1));
    CPU_SET_S(at, mask.size() * sizeof(cpu_set_t), mask.data());
  }
  return mask;
}

void reset_signals() {
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGCHLD, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2}) {
    ::signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// In the memory of the parent, which waits until the program runs: `launched` is the parent's.
[[noreturn]] [[gnu::noinline]] void become(const Image& image, const Launch& request, pid_t parent,
                                           Launched& launched) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  request.guarded = getpid();
  reset_signals();
  for (int stream = 0; stream < 3; ++stream) dup2(request.streams[static_cast<size_t>(stream)], stream);
  setrlimit(RLIMIT_NOFILE, &request.descriptors);
  launched.failed = "a rank cannot be bound (use --bind none)";
  const size_t bytes = image.mask.size() * sizeof(cpu_set_t);
  if (bytes == 0 || sched_setaffinity(0, bytes, image.mask.data()) == 0) {
    launched.failed = nullptr;
    execvpe(request.file.c_str(), image.arguments.data(), image.variables.data());
  }
  launched.number = errno;
  _exit(126);
}

void wait_for(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  sigwait(&set, &number);
}

// In the background it must not read: SIGTTIN would stop all of the process group, which a shell may have given more
// processes. When the shell gives the terminal back, it sends SIGCONT to a job that was stopped. One that runs hears
// nothing.
void await_foreground() {
  constexpr timespec kLookAgain{0, 200'000'000};
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCONT);
  sigtimedwait(&set, nullptr, &kLookAgain);
}

int read_terminal(int to) {
  ::signal(SIGTTIN, SIG_IGN);
  ::signal(SIGPIPE, SIG_DFL);  // rank 0 reads no more
  std::array<char, 4096> buffer;
  for (ssize_t got = 1; got > 0;) {
    pollfd terminal{STDIN_FILENO, POLLIN, 0};
    ::poll(&terminal, 1, -1);
    const pid_t foreground = tcgetpgrp(STDIN_FILENO);  // -1: not the terminal of this session, which stops nobody
    if (foreground >= 0 && foreground != getpgrp()) {
      await_foreground();
      continue;
    }
    got = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    for (ssize_t sent = 0; sent < got;) {
      const ssize_t taken = ::write(to, buffer.data() + sent, static_cast<size_t>(got - sent));
      if (taken < 0) return 1;
      sent += taken;
    }
  }
  return 0;
}

}  // namespace

Error system_error(const std::string& what) {
  return Error{Code::kSystemError, what + ": " + std::strerror(errno)};
}

Result<Pipe> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("a pipe (limit of open files: ulimit -Hn)");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<std::span<Shared>> share(size_t numbers) {
  const size_t bytes = numbers * sizeof(Shared);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return system_error("mmap");
  return std::span(static_cast<Shared*>(memory), numbers);
}

Launched launch(const Launch& request) {
  std::vector<std::string> variables;
  for (const auto& [name, value] : request.environment) variables.push_back(name + "=" + value);
  const Image image{pointers(request.command), pointers(variables), mask_of(request.processors)};
  Launched launched;
  const pid_t parent = getpid();
  const pid_t pid = vfork();
  if (pid == 0) become(image, request, parent, launched);
  if (pid < 0) launched.number = errno;
  if (launched.number == 0) return {pid, nullptr, 0};
  if (pid > 0) waitpid(pid, nullptr, 0);
  request.guarded = 0;
  return launched;
}

Result<pid_t> start_process(const std::function<int()>& body, int signal) {
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return system_error("fork");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) kill(getpid(), signal);  // it ended before the line above
  _exit(body());
}

// The guard has a session of its own, so that no signal for this process's group reaches it.
Result<pid_t> start_guard(std::span<Shared> guarded) {
  const auto guard = [guarded, parent = getpid()] {
    setsid();
    while (getppid() == parent) wait_for(SIGTERM);
    for (const Shared& group : guarded) {
      if (group > 0) kill(-static_cast<pid_t>(group), SIGKILL);
    }
    return 0;
  };
  return start_process(guard, SIGTERM);
}

Result<TerminalReader> start_terminal_reader() {
  Pipe pipe = TRY(make_pipe());
  const auto reader = [&pipe] {
    pipe.from.reset();
    return read_terminal(pipe.to.get());
  };
  const pid_t pid = TRY(start_process(reader, SIGKILL));
  return TerminalReader{pid, std::move(pipe.from)};
}

}  // namespace trestle
