// How a rank has ended, and the launcher's sentences about ranks.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace trestle {

struct RankEnd {
  int signal = 0;  // the signal that killed it; 0: it has exited
  int code = 0;    // its exit code
  bool core_dumped = false;
  bool ok() const { return signal == 0 && code == 0; }
  int status() const { return signal != 0 ? 128 + signal : code; }  // as in a shell
};

struct RankName {
  int rank = 0;
  pid_t pid = 0;
  bool has_ended = false;  // the rank has ended, but not what it has started
};

// Whether the kernel is ending the process. Its descriptors may be closed already.
bool is_exiting(pid_t pid);

std::string signal_text(int number);          // "SIGTERM"; "signal 42" if it has no name
std::string name_text(const RankName& rank);  // "rank 3 (pid 4711)"
std::string end_text(const RankEnd& end);     // "was killed by signal 9 (Killed)", "ended with exit code 7"
// A few ranks with their process ids, and "stopped" where a process is; many as "ranks 0-2, 5". Ascending ranks.
std::string names_text(const std::vector<RankName>& ranks);

}  // namespace trestle
