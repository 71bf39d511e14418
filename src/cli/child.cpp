#include "cli/child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace trestle {
namespace {

// What must be prepared before fork(): afterwards only async-signal-safe calls.
struct Image {
  explicit Image(const std::vector<std::string>& command, const Environment& environment) {
    for (const auto& [name, value] : environment) texts.push_back(name + "=" + value);
    for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
    for (const std::string& text : texts) variables.push_back(const_cast<char*>(text.c_str()));
    arguments.push_back(nullptr);
    variables.push_back(nullptr);
  }
  std::vector<std::string> texts;
  std::vector<char*> arguments;
  std::vector<char*> variables;
};

[[noreturn]] void become(const Image& image, pid_t parent, int out, int err) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it ended before the line above
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = open("/dev/null", O_RDONLY);
  dup2(nothing, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execvpe(image.arguments[0], image.arguments.data(), image.variables.data());
  const int reason = errno;
  const char* text = strerrordesc_np(reason);
  for (const char* part : {"cannot execute ", static_cast<const char*>(image.arguments[0]), ": ", text, "\n"}) {
    if (write(STDERR_FILENO, part, std::strlen(part)) < 0) break;
  }
  _exit(reason == ENOENT ? 127 : 126);
}

Result<std::array<UniqueFd, 2>> make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Error{Code::kSystemError, std::string("pipe2: ") + std::strerror(errno)};
  fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return std::array<UniqueFd, 2>{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<Child> Child::start(const std::vector<std::string>& command, const Environment& environment, int rank) {
  auto out = TRY(make_pipe());
  auto err = TRY(make_pipe());
  const Image image(command, environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Error{Code::kSystemError, std::string("fork: ") + std::strerror(errno)};
  if (pid == 0) become(image, parent, out[1].get(), err[1].get());
  setpgid(pid, pid);  // in both: whoever is first
  Child child;
  child.pid_ = pid;
  const std::string prefix = "[" + std::to_string(rank) + "] ";
  child.streams_.push_back({std::move(out[0]), LinePrefix(STDOUT_FILENO, prefix)});
  child.streams_.push_back({std::move(err[0]), LinePrefix(STDERR_FILENO, prefix)});
  return child;
}

void Child::ended(int wait_status) {
  code_ = WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

void Child::signal(int number) const {
  if (running()) kill(-pid_, number);
}

bool Child::pass_on(int stream) {
  Stream& at = streams_[static_cast<size_t>(stream)];
  if (!at.from) return false;
  std::array<char, 65536> buffer;
  const ssize_t got = read(at.from.get(), buffer.data(), buffer.size());
  if (got > 0) {
    at.to.add({buffer.data(), static_cast<size_t>(got)});
    return true;
  }
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  at.from.reset();
  at.to.end();
  return false;
}

void Child::end_streams() {
  for (Stream& stream : streams_) {
    stream.from.reset();
    stream.to.end();
  }
}

}  // namespace trestle
