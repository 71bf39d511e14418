#include "cli/run/guard.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace trestle {
namespace {

constexpr pid_t kDismissed = 0;

// Closes every descriptor but `from`, which becomes descriptor 3. Otherwise a reader that waits for the end of a pipe
// would wait for the guard too.
void let_go(int from) {
  const int nothing = open("/dev/null", O_RDWR);
  for (int stream = 0; stream < 3; ++stream) dup2(nothing, stream);
  if (from != 3) dup2(from, 3);
  if (close_range(4, ~0U, 0) == 0) return;
  const auto end = static_cast<int>(sysconf(_SC_OPEN_MAX));
  for (int fd = 4; fd < end; ++fd) close(fd);
}

[[noreturn]] void watch(int from) {
  setsid();
  prctl(PR_SET_NAME, "trestle-guard");
  let_go(from);
  if (chdir("/") != 0) _exit(1);
  std::vector<pid_t> groups;
  pid_t group = 0;
  ssize_t got = 0;
  while ((got = read(3, &group, sizeof group)) != 0) {
    if (got < 0 && errno == EINTR) continue;
    if (got != static_cast<ssize_t>(sizeof group)) break;
    if (group == kDismissed) _exit(0);
    if (group > 0) groups.push_back(group);
    if (group < 0) groups.erase(std::remove(groups.begin(), groups.end(), -group), groups.end());
  }
  for (const pid_t left : groups) kill(-left, SIGKILL);
  _exit(0);
}

}  // namespace

Result<Guard> Guard::start() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kSystemError, std::string("pipe2: ") + std::strerror(errno)};
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t pid = fork();
  if (pid < 0) return Error{Code::kSystemError, std::string("fork: ") + std::strerror(errno)};
  if (pid == 0) watch(from.get());
  return Guard(pid, std::move(to));
}

Guard::Guard(Guard&& other) noexcept : pid_(std::exchange(other.pid_, -1)), to_(std::move(other.to_)) {}

Guard::~Guard() {
  if (pid_ < 0) return;
  tell(to_.get(), kDismissed);
  to_.reset();
  waitpid(pid_, nullptr, 0);
}

bool Guard::tell(int fd, pid_t group) {
  ssize_t written = 0;
  do {
    written = ::write(fd, &group, sizeof group);
  } while (written < 0 && errno == EINTR);
  return written == static_cast<ssize_t>(sizeof group) || errno == EPIPE;  // the guard was killed, which is tolerated
}

}  // namespace trestle
