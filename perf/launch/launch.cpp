#include "perf/launch/launch.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "cli/run/binding.h"
#include "perf/driver/ending.h"

namespace trestle::perf {
namespace {

using Clock = std::chrono::steady_clock;

// A port that was free a moment ago; 0 on failure. Another program may take it before rank 0 listens. The job reports
// that.
uint16_t free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool fine = fd >= 0 && bind(fd, generic, length) == 0 && getsockname(fd, generic, &length) == 0;
  if (fd >= 0) close(fd);
  return fine ? ntohs(address.sin_port) : 0;
}

bool set_random_secret() {
  unsigned char bytes[32];
  if (getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes)) return false;
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return setenv("TRESTLE_SECRET", text.c_str(), 0) == 0;  // keeps a secret that is set
}

void set_number(const char* name, int value) {
  setenv(name, std::to_string(value).c_str(), 1);
}

// The cores of the processes; empty: not bound. While this exists, no other job takes them.
struct Places {
  Places(int processes, bool bind) {
    const auto cores = bind ? usable_cores() : Result<std::vector<Core>>(std::vector<Core>());
    if (bind && cores.ok()) binding = bind_ranks(Bind::kAuto, static_cast<size_t>(processes), cores.value());
  }
  // Called only in the child. If the kernel refuses the mask, the child stays where it was.
  void bind_to(int rank) const {
    if (binding.places.empty()) return;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (const int processor : binding.places[static_cast<size_t>(rank)].processors) {
      if (processor < CPU_SETSIZE) CPU_SET(processor, &mask);
    }
    if (CPU_COUNT(&mask) != 0) sched_setaffinity(0, sizeof mask, &mask);
  }

  Binding binding;
};

// Called only in the child.
[[noreturn]] void become_rank(int argc, char** argv, int rank, pid_t parent, const sigset_t& mask) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kExitInternal);  // the parent ended before prctl
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  set_number("RANK", rank);
  set_number("LOCAL_RANK", rank);
  std::vector<char*> arguments(argv, argv + argc);
  char flag[] = "-P", zero[] = "0";
  arguments.insert(arguments.end(), {flag, zero, nullptr});
  execv("/proc/self/exe", arguments.data());
  std::fprintf(stderr, "cannot start %s again: %s\n", argv[0], std::strerror(errno));
  _exit(kExitInternal);
}

int exit_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void kill_all(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    if (child > 0) kill(child, SIGKILL);
  }
}

// Reaps all children (pid 0: reaped). SIGCHLD is blocked, so waiting for it with a deadline misses none.
int reap(std::vector<pid_t>& children, const sigset_t& child_signal) {
  int first_failure = 0;
  size_t left = children.size();
  Clock::time_point deadline{};
  bool killed = false;
  while (left > 0) {
    int status = 0;
    const pid_t done = waitpid(-1, &status, WNOHANG);
    if (done > 0) {
      for (pid_t& child : children) {
        if (child != done) continue;
        child = 0;
        --left;
        if (first_failure == 0 && exit_code(status) != 0) {
          first_failure = exit_code(status);
          deadline = Clock::now() + std::chrono::seconds(kGraceSeconds);
        }
      }
      continue;
    }
    if (first_failure == 0 || killed) {
      sigwaitinfo(&child_signal, nullptr);
      continue;
    }
    const auto left_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(deadline - Clock::now()).count();
    const timespec wait{left_ns > 0 ? left_ns / 1'000'000'000 : 0, left_ns > 0 ? left_ns % 1'000'000'000 : 0};
    if (sigtimedwait(&child_signal, nullptr, &wait) < 0 && errno == EAGAIN) {
      kill_all(children);
      killed = true;
    }
  }
  return first_failure;
}

}  // namespace

int run_local_processes(int argc, char** argv, int processes, bool bind) {
  const uint16_t port = free_port();
  if (port == 0 || !set_random_secret()) {
    std::printf("cannot prepare local processes: %s\n", std::strerror(errno));
    return kExitInternal;
  }
  set_number("WORLD_SIZE", processes);
  set_number("LOCAL_WORLD_SIZE", processes);
  setenv("MASTER_ADDR", "127.0.0.1", 1);
  set_number("MASTER_PORT", port);
  sigset_t child_signal, before;
  sigemptyset(&child_signal);
  sigaddset(&child_signal, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child_signal, &before);
  const Places places(processes, bind);
  std::fflush(nullptr);
  const pid_t parent = getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < processes; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      places.bind_to(rank);
      become_rank(argc, argv, rank, parent, before);
    }
    if (child < 0) {
      std::printf("cannot start process %d of %d: %s\n", rank + 1, processes, std::strerror(errno));
      kill_all(children);
      reap(children, child_signal);
      return kExitInternal;
    }
    children.push_back(child);
  }
  const int code = reap(children, child_signal);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return code;
}

}  // namespace trestle::perf
