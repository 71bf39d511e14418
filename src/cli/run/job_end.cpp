// How a job ends: by itself, after a rank has failed, at the user's signal, or at its time limit.
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/clock.h"
#include "base/text/value_text.h"
#include "cli/run/job.h"

namespace trestle {
namespace {

constexpr int64_t kAtOnceNs = 100'000'000;
constexpr int64_t kReadNs = 1'000'000'000;  // how long the printer may take to read what is there
constexpr int64_t kLookNs = 5'000'000;

int64_t now_ns() {
  return monotonic_clock().now_ns();
}

// The part of /proc/PID/stat ("4711 (name) T 1 2 ...") behind the name, which may contain anything, also parentheses.
std::istringstream state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream all;
  all << file.rdbuf();  // unlike an iterator, it does not throw if the process ends meanwhile
  const std::string text = all.str();
  const size_t end = text.rfind(") ");
  return std::istringstream(end == std::string::npos ? "" : text.substr(end + 2));
}

// Whether the kernel is ending the process. Its descriptors may be closed already.
bool is_exiting(pid_t pid) {
  constexpr unsigned kExiting = 4;  // PF_EXITING of the kernel's sched.h
  std::istringstream state = state_of(pid);
  std::string skipped;  // state, parent, group, session, terminal and its group
  for (int field = 0; field < 6; ++field) state >> skipped;
  unsigned flags = 0;
  return state >> flags && (flags & kExiting) != 0;
}

// At most a second: a process whose end takes longer must not hold up signals and deadlines.
void wait_for_end(pid_t pid) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd end{process.get(), POLLIN, 0};
  if (process) ::poll(&end, 1, 1000);
}

std::string signal_name(int number) {
  return std::string("SIG") + sigabbrev_np(number);
}

int exit_code(int status) {  // as of a shell
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// "was killed by signal 9 (Killed)", "ended with exit code 7"
std::string end_text(int status) {
  if (!WIFSIGNALED(status)) return "ended with exit code " + std::to_string(exit_code(status));
  return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
         (WCOREDUMP(status) ? ", core dumped)" : ")");
}

std::string with_process_id(const Rank& rank) {
  const std::string pid = "pid " + std::to_string(rank.pid);
  if (!rank.running()) return " (processes that " + pid + " started)";
  return " (" + pid + (state_of(rank.pid).peek() == 'T' ? ", stopped)" : ")");
}

// A few ranks with their process ids; many as "ranks 0-2, 5".
std::string names_of(const std::vector<const Rank*>& ranks) {
  const bool few = ranks.size() <= 4;
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t first = 0, last = 0; first < ranks.size(); first = ++last) {
    while (!few && last + 1 < ranks.size() && ranks[last + 1]->number == ranks[last]->number + 1) ++last;
    text += (first == 0 ? "" : ", ") + std::to_string(ranks[first]->number);
    if (last > first) text += "-" + std::to_string(ranks[last]->number);
    if (few) text += with_process_id(*ranks[first]);
  }
  return text;
}

}  // namespace

// What a failed rank leaves behind is killed with it, unless the rank was told to end and its processes still have
// time. A rank's number names its group until this process has waited for it.
void LocalJob::collect(std::vector<const Rank*>& ended) {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = std::exchange(info.si_pid, 0);
    const auto rank =
        std::find_if(ranks_.begin(), ranks_.end(), [&](const Rank& one) { return one.running() && one.pid == pid; });
    if (rank != ranks_.end() && !rank->told) {
      if (info.si_code != CLD_EXITED || info.si_status != 0) kill(-pid, SIGKILL);
      shared_[static_cast<size_t>(rank->number)] = 0;
    }
    int status = 0;
    waitpid(pid, &status, 0);
    if (pid == printer_.pid) printer_status_ = status == 0 ? 0 : 1;
    for (pid_t* const one : {&guard_, &terminal_.pid, &printer_.pid}) *one = *one == pid ? 0 : *one;
    if (rank == ranks_.end()) continue;
    rank->status = status;
    ended.push_back(&*rank);
    if (rank->number == 0 && terminal_.pid > 0) kill(terminal_.pid, SIGKILL);
  }
}

// Ranks that a signal has killed are reported first: the others may have ended because of them. A process closes its
// connections before its end can be seen. So when ranks have failed, those that are about to end are waited for.
void LocalJob::reap() {
  std::vector<const Rank*> ended;
  collect(ended);
  const auto killed = [](const Rank* rank) { return WIFSIGNALED(*rank->status); };
  if (std::any_of(ended.begin(), ended.end(), [&](const Rank* one) { return *one->status != 0 && !killed(one); })) {
    for (const Rank& rank : ranks_) {
      if (rank.running() && is_exiting(rank.pid)) wait_for_end(rank.pid);
    }
    collect(ended);
  }
  std::stable_partition(ended.begin(), ended.end(), killed);
  for (const Rank* rank : ended) rank_ended(*rank);
}

void LocalJob::rank_ended(const Rank& rank) {
  if (*rank.status == 0) return;
  const std::string sentence = rank.name() + " " + end_text(*rank.status);
  if (!rank.told) say(sentence);
  if (cause_.empty()) {
    failed_ = &rank;
    failed_ns_ = now_ns();
    blamed_before_ = blamed_.of_failure(failed_ns_);
  }
  blame("has failed: " + sentence, exit_code(*rank.status));
  if (step_ == Step::kRunning) begin(Step::kMoment);
}

void LocalJob::blame(const std::string& cause, int status) {
  if (!cause_.empty()) return;
  cause_ = cause;
  status_ = status;
}

// A rank that fails has said why before it ended, but the printer may not have read it. What the launcher says comes
// behind that, so the printer has read it when it has read the launcher's sentences.
const Rank* LocalJob::blamed_by_others() {
  const int64_t until_ns = now_ns() + kReadNs;
  for (int unread = 1; printer_.pid > 0 && now_ns() < until_ns; turn(now_ns() + kLookNs)) {
    if (ioctl(printer_.sentences.get(), FIONREAD, &unread) != 0 || unread == 0) break;
  }
  const int64_t blamed = blamed_before_ != 0 ? blamed_before_ : blamed_.of_failure(failed_ns_);
  const auto is_it = [&](const Rank& one) { return one.pid == blamed || one.number == -1 - blamed; };
  const auto found = blamed == 0 ? ranks_.end() : std::ranges::find_if(ranks_, is_it);
  return found == ranks_.end() || &*found == failed_ ? nullptr : &*found;
}

// The first event gives the exit status, but the rank that ended first may be a victim.
std::string LocalJob::cause() {
  const Rank* const blamed = failed_ == nullptr ? nullptr : blamed_by_others();
  if (blamed == nullptr) return cause_;
  const bool by_itself = !blamed->running() && !blamed->told;
  return "has failed: " + blamed->name() + (by_itself ? " " + end_text(*blamed->status) + ", and" : "") +
         " is blamed by the other ranks; first, " + failed_->name() + " " + end_text(*failed_->status);
}

void LocalJob::begin(Step step) {
  step_ = step;
  const int64_t time_ns = step == Step::kRunning ? options_.timeout_ns : options_.grace_ns;
  const bool ends = step == Step::kRunning ? time_ns > 0 : step != Step::kKilled;
  due_ns_ = ends && time_ns < kNever - now_ns() ? now_ns() + time_ns : kNever;
  if (step == Step::kRunning) limit_ns_ = due_ns_;
}

// If the same signal comes twice at once, it is one: timeout(1) sends it to its child and to its process group.
void LocalJob::signalled(int number) {
  if (number == SIGTSTP) return stop();
  if (number == SIGCONT || number == SIGUSR1 || number == SIGUSR2) return signal(number);
  if (number == signal_ && now_ns() - signal_ns_ < kAtOnceNs) return;
  if (step_ == Step::kKilled) impatient_ = number;
  if (signal_ != 0 || impatient_ != 0) return end_ranks(SIGKILL, "a second signal, " + signal_name(number));
  signal_ = number;
  signal_ns_ = now_ns();
  blame("was ended by " + signal_name(number), 128 + number);
  end_ranks(number, "passed on; a second signal is SIGKILL");
}

// Stops together with all ranks. Time limits do not run meanwhile.
void LocalJob::stop() {
  signal(SIGTSTP);
  const int64_t before_ns = now_ns();
  raise(SIGSTOP);  // returns after SIGCONT, which is then passed on
  for (int64_t* const time_ns : {&due_ns_, &limit_ns_}) {
    if (*time_ns != kNever) *time_ns += now_ns() - before_ns;
  }
}

// Signals the process groups; stopped processes hear it too.
void LocalJob::end_ranks(int number, const std::string& why) {
  if (!present().empty()) say(signal_name(number) + " to " + names_of(present()) + ": " + why);
  for (Rank& rank : ranks_) rank.told = rank.told || rank.running();
  signal(number);
  signal(SIGCONT);
  begin(number == SIGKILL ? Step::kKilled : Step::kTold);
}

void LocalJob::on_time() {
  if (over() || now_ns() < due_ns_) return;
  const std::string late = "no end within " + duration_text(options_.grace_ns);
  if (step_ == Step::kTold) return end_ranks(SIGKILL, late);
  if (step_ == Step::kMoment) return end_ranks(SIGTERM, late + " of the failure");
  blame("has not ended within " + duration_text(options_.timeout_ns), kTimedOut);
  end_ranks(SIGTERM, "the job " + cause_);
}

bool LocalJob::over() const {
  const bool running = std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running(); });
  return !running && (step_ != Step::kTold || present().empty());
}

std::vector<const Rank*> LocalJob::present() const {
  std::vector<const Rank*> found;
  for (const Rank& rank : ranks_) {
    siginfo_t info{};
    const auto left = [&] {
      return waitid(P_PGID, static_cast<id_t>(rank.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
    };
    if (rank.running() || (rank.told && left())) found.push_back(&rank);
  }
  return found;
}

void LocalJob::signal(int number) const {
  for (const Rank* rank : present()) kill(-rank->pid, number);
}

}  // namespace trestle
