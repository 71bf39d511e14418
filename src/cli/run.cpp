#include "cli/run.h"

#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>

#include "base/clock.h"
#include "cli/child.h"

namespace trestle {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

Error system_error(const char* call) {
  return Error{Code::kSystemError, std::string(call) + ": " + std::strerror(errno)};
}

Result<std::string> fresh_secret() {
  std::array<unsigned char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return system_error("getrandom");
  std::string text;
  for (unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// Free when asked. Rank 0 takes the next free ones when somebody else was faster.
Result<int> free_port() {
  const UniqueFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!probe || bind(probe.get(), generic, length) != 0 || getsockname(probe.get(), generic, &length) != 0)
    return system_error("a free port");
  return ntohs(address.sin_port);
}

class Ranks {
 public:
  explicit Ranks(const RunOptions& options) : options_(options) {}
  Result<int> run(Environment environment);

 private:
  Status start(Environment environment);
  void turn();
  void take_signals();
  void reap();
  void stop_all();
  void drain();
  bool any_running() const {
    return std::any_of(children_.begin(), children_.end(), [](const Child& child) { return child.running(); });
  }

  const RunOptions& options_;
  UniqueFd signals_;
  std::vector<Child> children_;
  int code_ = 0;  // of the first failure
  int64_t kill_at_ns_ = kNever;
  bool interrupted_ = false;
};

Result<int> Ranks::run(Environment environment) {
  sigset_t watched;
  sigemptyset(&watched);
  for (int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&watched, number);
  sigprocmask(SIG_BLOCK, &watched, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  signals_.reset(signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals_) return system_error("signalfd");
  const Status started = start(std::move(environment));
  if (!started.ok()) {
    for (const Child& child : children_) child.signal(SIGKILL);
    return started.error();
  }
  while (any_running()) turn();
  drain();
  return code_;
}

Status Ranks::start(Environment environment) {
  environment["WORLD_SIZE"] = environment["LOCAL_WORLD_SIZE"] = std::to_string(options_.ranks);
  environment["MASTER_ADDR"] = "127.0.0.1";
  environment["MASTER_PORT"] = std::to_string(TRY(free_port()));
  std::string& secret = environment["TRESTLE_SECRET"];
  if (secret.empty()) secret = TRY(fresh_secret());
  for (int rank = 0; rank < options_.ranks; ++rank) {
    environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(rank);
    children_.push_back(TRY(Child::start(options_.command, environment, rank)));
  }
  return {};
}

void Ranks::turn() {
  std::vector<pollfd> fds = {{signals_.get(), POLLIN, 0}};
  for (const Child& child : children_) {
    for (int stream = 0; stream < Child::kStreams; ++stream) {
      if (child.fd(stream) >= 0) fds.push_back({child.fd(stream), POLLIN, 0});
    }
  }
  int timeout_ms = -1;
  if (kill_at_ns_ != kNever) {
    const int64_t left_ms = (kill_at_ns_ - monotonic_clock().now_ns()) / 1'000'000 + 1;
    timeout_ms = static_cast<int>(std::clamp<int64_t>(left_ms, 0, 1000));
  }
  ::poll(fds.data(), fds.size(), timeout_ms);
  for (Child& child : children_) {
    for (int stream = 0; stream < Child::kStreams; ++stream) child.pass_on(stream);
  }
  take_signals();
  reap();
  if (monotonic_clock().now_ns() >= kill_at_ns_) {
    for (const Child& child : children_) child.signal(SIGKILL);
    kill_at_ns_ = kNever;
  }
}

void Ranks::take_signals() {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const auto number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) continue;
    for (const Child& child : children_) child.signal(interrupted_ ? SIGKILL : number);
    interrupted_ = true;
  }
}

void Ranks::reap() {
  int status = 0;
  for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0; pid = waitpid(-1, &status, WNOHANG)) {
    for (Child& child : children_) {
      if (child.pid() != pid || !child.running()) continue;
      child.ended(status);
      if (child.code() == 0 || code_ != 0) continue;
      code_ = child.code();
      stop_all();
    }
  }
}

void Ranks::stop_all() {
  for (const Child& child : children_) child.signal(SIGTERM);
  kill_at_ns_ = monotonic_clock().now_ns() + options_.grace_ns;
}

// What is still in the pipes. A grandchild that outlives its rank and keeps one open is not waited for.
void Ranks::drain() {
  for (Child& child : children_) {
    for (int stream = 0; stream < Child::kStreams; ++stream) {
      while (child.pass_on(stream)) {
      }
    }
    child.end_streams();
  }
}

}  // namespace

Result<int> run_ranks(const RunOptions& options, const Environment& environment) {
  return Ranks(options).run(environment);
}

}  // namespace trestle
