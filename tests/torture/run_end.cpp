// The leftovers of an ended job, and the output of its ranks.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "torture/leaks.h"
#include "torture/run.h"

namespace torture {
namespace {

std::string contents(int fd) {
  std::string text;
  char buffer[4096];
  for (off_t at = 0;;) {
    const ssize_t n = pread(fd, buffer, sizeof buffer, at);
    if (n <= 0) return text;
    text.append(buffer, static_cast<size_t>(n));
    at += n;
  }
}

}  // namespace

void Run::end() {
  if (flooder_ > 0) {
    kill(flooder_, SIGKILL);
    waitpid(flooder_, nullptr, 0);
  }
  for (Child& child : children_) {
    if (!child.ended) {
      kill(child.pid, SIGKILL);
      waitpid(child.pid, &child.status, 0);
    }
    close(child.pidfd);
  }
  if (waitpid(-1, nullptr, WNOHANG) != -1 || errno != ECHILD) result_.wrong.push_back("processes are left behind");
}

void Run::judge_processes() {
  for (size_t p = 0; p < children_.size(); ++p) {
    const int status = children_[p].status;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    if (is_victim(p) && (plan_.fault.kind == FaultKind::kKill || killed_by_driver_) && WIFSIGNALED(status) &&
        WTERMSIG(status) == SIGKILL)
      continue;
    if (!children_[p].ended) continue;  // it hung, which is reported
    std::string text = "process " + std::to_string(p) +
                       (WIFSIGNALED(status) ? " died of signal " + std::to_string(WTERMSIG(status)) : " failed");
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (plan_.process_of(rank) != static_cast<int>(p)) continue;
      for (int t = 0; t < plan_.threads; ++t) {
        const LaneBoard& lane = board_->lane[rank][t];
        if (lane.wrong[0] != '\0')
          text += "\n    rank " + std::to_string(rank) + " thread " + std::to_string(t) + ": " + lane.wrong;
      }
    }
    result_.wrong.push_back(text);
  }
}

void Run::look_for_leaks() {
  const bool in_order = !fails_others(plan_.fault.kind) && result_.wrong.empty();
  if (!store_.empty()) {
    const bool there = access(store_.c_str(), F_OK) == 0;
    if (there && in_order) result_.wrong.push_back("the file of TRESTLE_STORE is left behind");
    if (there) unlink(store_.c_str());
  }
  if (!watch_.isolated) return;
  for (const std::string& name : names_in("/dev/shm")) {
    if (shm_before_.count(name) == 0) result_.wrong.push_back("/dev/shm/" + name + " is left behind");
  }
}

void Run::tell() {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (int t = 0; t < plan_.threads; ++t) {
      const LaneBoard& lane = board_->lane[rank][t];
      result_.calls += lane.calls;
      result_.checksums.push_back(lane.checksum);
      for (int i = 0; i < lane.failures; ++i) {
        const Failure& f = lane.failure[i];
        result_.details.push_back("rank " + std::to_string(rank) +
                                  (plan_.threads > 1 ? " thread " + std::to_string(t) : "") + ", action " +
                                  std::to_string(f.action) + ", comm " + std::to_string(f.comm) + ": " +
                                  trestleGetErrorString(static_cast<trestleResult_t>(f.result)) + ": " + f.sentence);
      }
    }
  }
  for (size_t p = 0; p < children_.size(); ++p) {
    const std::string output = contents(children_[p].output);
    close(children_[p].output);
    result_.wrote = result_.wrote || !output.empty();
    if (!output.empty())
      result_.details.push_back("process " + std::to_string(p) + " wrote:\n" + output.substr(0, 3000));
  }
}

}  // namespace torture
