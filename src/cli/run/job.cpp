#include "cli/run/job.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/clock.h"

namespace trestle {
namespace {

constexpr int64_t kKillNs = 1'000'000'000;  // how long processes may take to end after SIGKILL
constexpr int kNotFound = 127;              // as in a shell
constexpr int kNotExecutable = 126;

Result<std::string> fresh_secret() {
  std::array<unsigned char, 32> bytes;
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) return system_error("getrandom");
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

// A port that is free now at this address; or minus errno. Rank 0 takes one of the next free ones if another program is
// faster.
template <class Address>
int free_port(Address address, in_port_t Address::*port) {
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof address;
  const UniqueFd probe(socket(generic->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe || ::bind(probe.get(), generic, length) != 0 || getsockname(probe.get(), generic, &length) != 0)
    return -errno;
  return ntohs(address.*port);
}

// Where the ranks meet: a host may have no loopback address but ::1.
Status set_meeting_place(Environment& environment) {
  const int port = free_port(sockaddr_in{AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {}}, &sockaddr_in::sin_port);
  const int other =
      port > 0 ? port : free_port(sockaddr_in6{AF_INET6, 0, 0, in6addr_loopback, 0}, &sockaddr_in6::sin6_port);
  if (other < 0)
    return Error{Code::kSystemError, std::string("a free port: ") + std::strerror(-port) + " at 127.0.0.1 or ::1" +
                                         (port == -EADDRNOTAVAIL ? "; is lo up? (ip link set lo up)" : "")};
  environment["MASTER_ADDR"] = port > 0 ? "127.0.0.1" : "::1";
  environment["MASTER_PORT"] = std::to_string(other);
  return {};
}

std::string place_text(const Core& place) {
  std::string text = "is bound to processors ";
  for (const int processor : place.processors) text += std::to_string(processor) + ",";
  text.back() = ' ';
  return text + "of socket " + std::to_string(place.socket);
}

bool has_children() {
  siginfo_t info{};
  return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

Result<int> run_ranks(const RunOptions& options, const Environment& environment) {
  LocalJob job(options);
  TRY(job.prepare(environment));
  return job.run();
}

Status LocalJob::prepare(const Environment& environment) {
  for (int fd = 0; fd < 3; ++fd) {  // so that no pipe becomes one of the ranks' standard descriptors
    if (fcntl(fd, F_GETFD) < 0 && ::open("/dev/null", O_RDWR) != fd) return system_error("/dev/null");
  }
  environment_ = environment;
  const auto ranks = static_cast<size_t>(options_.ranks());
  environment_["WORLD_SIZE"] = environment_["LOCAL_WORLD_SIZE"] = std::to_string(ranks);
  TRY(set_meeting_place(environment_));
  if (environment_["TRESTLE_SECRET"].empty()) environment_["TRESTLE_SECRET"] = TRY(fresh_secret());
  if (environment_["TRESTLE_JOB"].empty()) environment_["TRESTLE_JOB"] = TRY(fresh_secret()).substr(0, 16);
  getrlimit(RLIMIT_NOFILE, &descriptors_);
  const rlimit raised{descriptors_.rlim_max, descriptors_.rlim_max};
  setrlimit(RLIMIT_NOFILE, &raised);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  had_children_ = has_children();
  nothing_.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!nothing_) return system_error("/dev/null");
  TRY(block_signals());
  shared_ = TRY(share(ranks + 3));
  blamed_ = Blame(shared_.subspan(ranks).first<2>());
  guard_ = TRY(start_guard(shared_.first(ranks)));
  if (options_.prints && isatty(STDIN_FILENO) == 1) terminal_ = TRY(start_terminal_reader());
  const std::string& folder = options_.output_folder;
  const bool prefixed = options_.prefix == Prefix::kAuto ? folder.empty() : options_.prefix == Prefix::kAlways;
  printer_.ranks.resize(ranks);
  if (options_.prints)
    printer_ = TRY(start_printer(options_.ranks(), prefixed, folder, shared_.back(), blamed_, terminal_.input));
  begin(Step::kRunning);
  return bind();
}

LocalJob::~LocalJob() {
  for (const pid_t pid : {guard_, terminal_.pid, printer_.pid}) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

// Blocks them for good and ignores SIGPIPE. If SIGHUP is ignored (nohup) it stays ignored. The others are received even
// if they were ignored.
Status LocalJob::block_signals() {
  sigemptyset(&signals_);
  for (const int number : {SIGINT, SIGTERM, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals_, number);
  }
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0) return system_error("sigaction");
  if (hangup.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
  ::signal(SIGCHLD, SIG_DFL);  // if it is ignored, no exit status of a child can be read
  ::signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_BLOCK, &signals_, nullptr);
  return {};
}

Status LocalJob::bind() {
  if (options_.bind == Bind::kNone) return {};
  const Result<std::vector<Core>> cores = usable_cores();
  if (!cores.ok() && options_.bind != Bind::kAuto)
    return Error{Code::kInvalidArgument, "--bind: " + cores.error().message};
  if (cores.ok()) binding_ = bind_ranks(options_.bind, static_cast<size_t>(options_.ranks()), cores.value());
  const std::string note = cores.ok() ? binding_.note : cores.error().message + ": not bound";
  if (!note.empty() && options_.bind == Bind::kCore) say("--bind core: " + note);
  if (!note.empty() && options_.bind == Bind::kAuto && options_.verbose) say(note);
  return {};
}

void LocalJob::say(const std::string& sentence) const {
  const std::string line = sentence + "\n";
  if (::write(printer_.sentences.get(), line.data(), line.size()) < 0) return;  // somebody has killed the printer
}

Launched LocalJob::start(const RankProgram& program, int number) {
  static const std::vector<int> anywhere;
  const auto at = static_cast<size_t>(number);
  Environment environment = environment_;
  for (const auto& [name, value] : program.environment) environment[name] = value;
  environment["RANK"] = environment["LOCAL_RANK"] = std::to_string(number);
  const bool bound = !binding_.places.empty();
  const int input = number > 0 ? nothing_.get() : terminal_.input ? terminal_.input.get() : STDIN_FILENO;
  const std::array<UniqueFd, 2> outputs = std::move(printer_.ranks[at]);
  const Launched launched =
      launch({program.command,
              program.file.empty() ? program.command.front() : program.file,
              environment,
              {input, outputs[0] ? outputs[0].get() : STDOUT_FILENO, outputs[1] ? outputs[1].get() : STDERR_FILENO},
              bound ? binding_.places[at].processors : anywhere,
              descriptors_,
              shared_[at]});
  if (number == 0) terminal_.input.reset();
  if (launched.pid < 0) return launched;
  ranks_.push_back({number, launched.pid, {}, false});
  if (options_.verbose) say(ranks_.back().name() + " " + (bound ? place_text(binding_.places[at]) : "is not bound"));
  return launched;
}

Result<int> LocalJob::run() {
  for (const RankProgram& program : options_.programs) {
    for (int i = 0; i < program.ranks; ++i) {
      const Launched launched = start(program, static_cast<int>(ranks_.size()));
      if (launched.pid < 0) return not_started(program, launched);
    }
  }
  while (!over()) {
    turn(due_ns_);
    on_time();
  }
  if (!cause_.empty()) end_leftovers();
  const std::string ranks = std::to_string(ranks_.size()) + (ranks_.size() == 1 ? " rank " : " ranks ");
  if (!cause_.empty()) say("the job of " + ranks + cause() + "; exit status " + std::to_string(status_));
  const int lost = wait_for_reader();
  return status_ != 0 ? status_ : lost != 0 ? lost : printer_status_;
}

Result<int> LocalJob::not_started(const RankProgram& program, const Launched& failed) {
  const std::string why = std::string(": ") + std::strerror(failed.number);
  if (!ranks_.empty()) end_ranks(SIGKILL, "another rank cannot be started");
  while (!over()) turn(kNever);
  end_leftovers();
  if (failed.failed == nullptr) say(program.command.front() + " cannot be started" + why);
  wait_for_reader();
  if (failed.failed != nullptr) return Error{Code::kSystemError, failed.failed + why};
  return failed.number == ENOENT ? kNotFound : kNotExecutable;
}

void LocalJob::turn(int64_t until_ns) {
  const int64_t left_ns = std::max<int64_t>(until_ns - monotonic_clock().now_ns(), 0);
  const timespec left{left_ns / 1'000'000'000, left_ns % 1'000'000'000};
  const int number = sigtimedwait(&signals_, nullptr, &left);
  if (number > 0 && number != SIGCHLD) signalled(number);
  reap();
}

// Leftovers have left their rank's process group (setsid). This process has adopted them. False: none is left, nor
// anything that they have started. If this process had children before (`exec trestle run` in a script with a job in
// the background), it has adopted what those leave behind too, and kills nothing.
bool LocalJob::kill_leftovers() const {
  bool any = false;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const auto pid = static_cast<pid_t>(std::strtol(entry.path().filename().c_str(), nullptr, 10));
    siginfo_t info{};
    if (pid <= 0 || pid == guard_ || pid == terminal_.pid || pid == printer_.pid || had_children_) continue;
    if (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) continue;  // not a child
    any = true;
    kill(pid, SIGKILL);
  }
  return any;
}

// Each process that ends may leave others behind. A process that does not end after SIGKILL is given up.
void LocalJob::end_leftovers() {
  begin(Step::kKilled);
  const int64_t until_ns = monotonic_clock().now_ns() + kKillNs;
  while (kill_leftovers() && monotonic_clock().now_ns() < until_ns) turn(until_ns);
}

// Waits for those who read the output until the user ends that. A job with a time limit waits until the limit is over
// and nothing was read for the time of --grace. Returns the exit status of what is lost; 0: nothing is.
int LocalJob::wait_for_reader() {
  begin(Step::kKilled);
  impatient_ = 0;                                                     // that one has ended the ranks
  for (Shared& group : shared_.first(shared_.size() - 3)) group = 0;  // numbers that others may get
  printer_.sentences.reset();
  int64_t written = -1;
  int64_t until_ns = kNever;
  while (printer_.pid > 0) {
    const int64_t now_ns = monotonic_clock().now_ns();
    const int64_t seen = shared_.back().load();
    if (limit_ns_ != kNever && std::exchange(written, seen) != seen)
      until_ns = std::max(limit_ns_, now_ns + options_.grace_ns);
    if (impatient_ != 0 || now_ns >= until_ns) {
      constexpr char kLost[] = "trestle: standard output is not read: the last output of the ranks is lost\n";
      pollfd room{STDERR_FILENO, POLLOUT, 0};
      if (::poll(&room, 1, 0) > 0) (void)!::write(STDERR_FILENO, kLost, sizeof kLost - 1);
      return impatient_ != 0 ? 128 + impatient_ : kTimedOut;
    }
    turn(until_ns);
  }
  return 0;
}

}  // namespace trestle
