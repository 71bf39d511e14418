#include "torture/run.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

#include "torture/flood.h"
#include "torture/leaks.h"
#include "torture/process.h"

namespace torture {
namespace {

constexpr int kLookMs = 20;

int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const bool ok = bind(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 &&
                  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0;
  close(fd);
  return ok ? ntohs(address.sin_port) : 29'500;
}

// Forks a child that does not outlive this process.
pid_t fork_bound() {
  const pid_t driver = getpid();
  const pid_t pid = fork();
  if (pid != 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != driver) _exit(4);
  return 0;
}

}  // namespace

void Run::choose_rendezvous() {
  if (plan_.rendezvous == Rendezvous::kCommId) {
    plan_.environment["TRESTLE_COMM_ID"] = "127.0.0.1:" + std::to_string(free_port());
  } else if (plan_.rendezvous == Rendezvous::kStore) {
    store_ = "/tmp/torture-store-" + std::to_string(getpid());
    plan_.environment["TRESTLE_STORE"] = "file:" + store_;
  } else if (plan_.rendezvous == Rendezvous::kLauncher) {
    plan_.environment["MASTER_ADDR"] = "127.0.0.1";
    plan_.environment["MASTER_PORT"] = std::to_string(free_port());
  }
  if (plan_.rendezvous != Rendezvous::kId) plan_.environment["TRESTLE_SECRET"] = "a secret of the torture's";
}

void Run::begin() {
  void* const memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::perror("torture: mmap");
    std::abort();
  }
  board_ = new (memory) Board();
  shm_before_ = names_in("/dev/shm");
  children_.resize(static_cast<size_t>(plan_.processes()));
  std::fflush(nullptr);
  std::vector<pid_t> pids;
  for (size_t p = 0; p < children_.size(); ++p) {
    Child& child = children_[p];
    child.output = memfd_create("output", MFD_CLOEXEC);
    child.pid = fork_bound();
    if (child.pid == 0) {
      dup2(child.output, STDOUT_FILENO);
      dup2(child.output, STDERR_FILENO);
      run_process(plan_, static_cast<int>(p), *board_);
    }
    child.pidfd = static_cast<int>(syscall(SYS_pidfd_open, child.pid, 0));
    pids.push_back(child.pid);
  }
  if (plan_.fault.kind != FaultKind::kFlood) return;
  flooder_ = fork_bound();
  if (flooder_ == 0) flood(pids, plan_.seed, *board_);
}

// Collects the state of all processes. True if any has not ended.
bool Run::look() {
  bool any = false;
  for (Child& child : children_) {
    if (child.ended) continue;
    int status = 0;
    if (waitpid(child.pid, &status, WNOHANG | WUNTRACED) != child.pid) {
      any = true;
    } else if (WIFSTOPPED(status)) {
      child.stopped = true;
      any = true;
    } else {
      child.ended = true;
      child.status = status;
    }
  }
  return any;
}

bool Run::others_are_done() const {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const auto process = static_cast<size_t>(plan_.process_of(rank));
    if (is_victim(process) || children_[process].ended) continue;
    for (int t = 0; t < plan_.threads; ++t) {
      if (board_->lane[rank][t].state != static_cast<int>(LaneState::kDone)) return false;
    }
  }
  return true;
}

// If the victim was to make the ids, tells the others not to wait for them.
void Run::tell_no_id() {
  if (plan_.process_of(plan_.fault.victim) != 0) return;
  for (std::atomic<int>& made : board_->id_made) {
    int not_yet = 0;
    made.compare_exchange_strong(not_yet, kNoId);
    wake_all(made);
  }
}

// Continues or kills a victim that is stopped.
void Run::on_struck() {
  const Child& victim = children_[static_cast<size_t>(plan_.process_of(plan_.fault.victim))];
  if (victim.ended || (victim.stopped && plan_.fault.kind == FaultKind::kFreeze)) tell_no_id();
  if (victim.ended || resumed_) return;
  const FaultKind kind = plan_.fault.kind;
  if (kind == FaultKind::kBlink && victim.stopped && ++looks_ > static_cast<int>(plan_.seed % 8)) {
    resumed_ = true;
    kill(victim.pid, SIGCONT);
  }
  if ((kind == FaultKind::kFreeze && !victim.stopped) || (kind != FaultKind::kFreeze && kind != FaultKind::kIdle))
    return;
  if (board_->struck == 0 || !others_are_done()) return;
  resumed_ = true;
  const bool go_on = kind == FaultKind::kFreeze && plan_.fault.variant;
  killed_by_driver_ = !go_on;
  kill(victim.pid, go_on ? SIGCONT : SIGKILL);
}

uint64_t Run::progress() const {
  uint64_t sum = 0;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (int t = 0; t < plan_.threads; ++t) {
      const LaneBoard& lane = board_->lane[rank][t];
      sum += lane.calls + static_cast<uint64_t>(lane.action + lane.state + lane.failures + 2);
    }
  }
  for (const Child& child : children_) sum += child.ended;
  return sum;
}

void Run::watch() {
  using Clock = std::chrono::steady_clock;
  auto last = Clock::now();
  uint64_t before = 0;
  while (look()) {
    on_struck();
    const uint64_t now = progress();
    if (now != before) last = Clock::now();
    before = now;
    if (Clock::now() - last > std::chrono::seconds(watch_.seconds)) return hung();
    std::vector<pollfd> fds;
    for (const Child& child : children_) {
      if (!child.ended) fds.push_back({child.pidfd, POLLIN, 0});
    }
    poll(fds.data(), fds.size(), kLookMs);
  }
}

void Run::hung() {
  std::string text = "hangs:";
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (int t = 0; t < plan_.threads; ++t) {
      const LaneBoard& lane = board_->lane[rank][t];
      if (lane.state == static_cast<int>(LaneState::kDone)) continue;
      text += " rank " + std::to_string(rank) + " thread " + std::to_string(t) + " is at action " +
              std::to_string(lane.action);
      if (lane.action >= 0)
        text += " (" + to_string(make_program(plan_, t).actions[static_cast<size_t>(lane.action.load())]) + ")";
      text += ";";
    }
  }
  result_.wrong.push_back(text);
  for (const Child& child : children_) {
    if (child.ended || !watch_.stacks) continue;
    std::fflush(nullptr);
    const std::string command =
        "gdb -q -batch -p " + std::to_string(child.pid) + " -ex 'thread apply all bt 14' 2>/dev/null";
    if (std::system(command.c_str()) != 0) std::fprintf(stderr, "torture: gdb failed\n");
  }
}

JobResult Run::run() {
  choose_rendezvous();
  begin();
  watch();
  end();
  result_.struck = board_->struck != 0;
  result_.strangers = board_->strangers;
  judge_processes();
  // A process that ended badly has reported its own error. The other errors follow from it.
  if (result_.wrong.empty() && (result_.struck || !fails_others(plan_.fault.kind))) {
    result_.verdict = judge(plan_, *board_, children_[static_cast<size_t>(plan_.process_of(plan_.fault.victim))].pid);
    if (!result_.verdict.wrong.empty()) result_.wrong.push_back(result_.verdict.wrong);
  }
  look_for_leaks();
  for (size_t p = 0; p < children_.size(); ++p) {
    if (board_->left[p][0] == '\0') continue;
    ++result_.leaks;
    result_.wrong.push_back("process " + std::to_string(p) + " has left in itself:" + board_->left[p]);
  }
  tell();
  munmap(board_, sizeof(Board));
  return result_;
}

JobResult run_job(JobPlan plan, const Watch& watch) {
  return Run(std::move(plan), watch).run();
}

}  // namespace torture
