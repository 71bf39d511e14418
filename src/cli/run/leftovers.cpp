#include "cli/run/leftovers.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace trestle {
namespace {

bool is_child(pid_t pid) {
  siginfo_t info{};
  return waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir("/proc"), closedir);
  if (folder == nullptr) return found;
  while (const dirent* entry = readdir(folder.get())) {
    const auto pid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (pid > 0 && is_child(pid)) found.push_back(pid);
  }
  return found;
}

}  // namespace

Leftovers::Leftovers() : all_from_ranks_(children().empty()) {}

bool Leftovers::kill(pid_t spared) const {
  if (!all_from_ranks_) return false;
  bool any = false;
  for (const pid_t pid : children()) {
    if (pid == spared) continue;
    any = true;
    ::kill(pid, SIGKILL);
  }
  return any;
}

}  // namespace trestle
