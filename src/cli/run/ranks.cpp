#include "cli/run/ranks.h"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "cli/run/guard.h"

namespace trestle {
namespace {

RankEnd end_of(const siginfo_t& info) {
  if (info.si_code == CLD_EXITED) return {0, info.si_status, false};
  return {info.si_status, 0, info.si_code == CLD_DUMPED};
}

}  // namespace

bool Ranks::any_running() const {
  return std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.running(); });
}

std::vector<Rank*> Ranks::reap() {
  siginfo_t info{};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
    const pid_t pid = info.si_pid;
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(),
                                   [&](const Rank& one) { return one.running() && one.name.pid == pid; });
    if (rank != ranks_.end()) {
      ended(*rank, end_of(info));
      if (seen_.empty()) seen_ns_ = monotonic_clock().now_ns();
      seen_.push_back(&*rank);
    }
    waitpid(pid, nullptr, 0);
    info.si_pid = 0;
  }
  if (others_to_come()) return {};
  std::stable_sort(seen_.begin(), seen_.end(),
                   [](const Rank* a, const Rank* b) { return a->end->signal != 0 && b->end->signal == 0; });
  return std::exchange(seen_, {});
}

bool Ranks::others_to_come() const {
  const auto failed = [](const Rank* rank) { return !rank->told && rank->end->signal == 0 && rank->end->code != 0; };
  if (std::none_of(seen_.begin(), seen_.end(), failed)) return false;
  if (monotonic_clock().now_ns() >= next_ns()) return false;
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return rank.running() && is_exiting(rank.name.pid); });
}

// The rank's process number names its group until the process has been waited for.
void Ranks::ended(Rank& rank, const RankEnd& end) const {
  rank.end = end;
  if (!end.ok() && !rank.told) ::kill(-rank.name.pid, SIGKILL);
  if (!rank.told) Guard::tell(guard_, -rank.name.pid);
  for (RankStream& stream : rank.streams) stream.drain(false);
}

bool Ranks::left_behind(const Rank& rank) const {
  siginfo_t info{};
  return waitid(P_PGID, static_cast<id_t>(rank.name.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::vector<RankName> Ranks::present() const {
  std::vector<RankName> names;
  for (const Rank& rank : ranks_) {
    RankName name = rank.name;
    name.has_ended = !rank.running();
    if (rank.running() || (rank.told && left_behind(rank))) names.push_back(name);
  }
  return names;
}

void Ranks::signal(int number) {
  for (const RankName& name : present()) ::kill(-name.pid, number);
}

void Ranks::tell(int number) {
  for (Rank& rank : ranks_) rank.told = rank.told || rank.running();
  signal(number);
  signal(SIGCONT);
}

}  // namespace trestle
