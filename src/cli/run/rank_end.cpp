#include "cli/run/rank_end.h"

#include <signal.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace trestle {
namespace {

constexpr size_t kMostWithProcessIds = 4;

// The part of /proc/PID/stat ("4711 (name) T 1 2 ...") behind the name, which may contain anything, also parentheses.
std::istringstream status_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream all;
  all << file.rdbuf();  // unlike an iterator, it does not throw if the process ends meanwhile
  const std::string text = all.str();
  const size_t end = text.rfind(") ");
  return std::istringstream(end == std::string::npos ? "" : text.substr(end + 2));
}

bool is_stopped(pid_t pid) {
  return status_of(pid).peek() == 'T';
}

std::string with_process_id(const RankName& rank) {
  if (rank.has_ended)
    return std::to_string(rank.rank) + " (processes that pid " + std::to_string(rank.pid) + " started)";
  return std::to_string(rank.rank) + " (pid " + std::to_string(rank.pid) + (is_stopped(rank.pid) ? ", stopped)" : ")");
}

std::string ranges(const std::vector<RankName>& ranks) {
  std::string text;
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1].rank == ranks[last].rank + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(ranks[first].rank);
    if (last > first) text += "-" + std::to_string(ranks[last].rank);
    first = last + 1;
  }
  return text;
}

}  // namespace

bool is_exiting(pid_t pid) {
  constexpr unsigned kExiting = 4;  // PF_EXITING of the kernel's sched.h
  std::istringstream status = status_of(pid);
  std::string skipped;  // state, parent, group, session, terminal and its group
  for (int field = 0; field < 6; ++field) status >> skipped;
  unsigned flags = 0;
  return status >> flags && (flags & kExiting) != 0;
}

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  return name == nullptr ? "signal " + std::to_string(number) : std::string("SIG") + name;
}

std::string name_text(const RankName& rank) {
  return "rank " + std::to_string(rank.rank) + " (pid " + std::to_string(rank.pid) + ")";
}

std::string end_text(const RankEnd& end) {
  if (end.signal == 0) return "ended with exit code " + std::to_string(end.code);
  const char* description = sigdescr_np(end.signal);
  return "was killed by signal " + std::to_string(end.signal) + " (" +
         (description == nullptr ? "unknown" : description) + (end.core_dumped ? ", core dumped)" : ")");
}

std::string names_text(const std::vector<RankName>& ranks) {
  if (ranks.size() > kMostWithProcessIds) return "ranks " + ranges(ranks);
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (size_t i = 0; i < ranks.size(); ++i) text += (i == 0 ? "" : ", ") + with_process_id(ranks[i]);
  return text;
}

}  // namespace trestle
