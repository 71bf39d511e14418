// A job: everything that its seed determines before its program, and the settings that the command line fixes instead.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "torture/random.h"

namespace torture {

enum class FaultKind {
  kNone,
  kKill,    // SIGKILL
  kFreeze,  // SIGSTOP, and SIGCONT or SIGKILL when all others have their errors
  kBlink,   // SIGSTOP and soon SIGCONT; no other rank notices
  kExit,    // exit or _exit in the middle, without destroying anything
  kAbort,   // trestleCommAbort in the middle
  kIdle,    // a rank stops making calls
  // When all is done and awaited, some ranks exit at once and destroy nothing; no other rank notices.
  kLeave,
  kFlood  // strangers connect to every socket on which the job listens; no rank notices
};
std::string name(FaultKind kind);

enum class Rendezvous { kId, kCommId, kStore, kLauncher };

struct Layout {
  std::string name;
  int ranks;  // 0: any number
  std::string dims;
  std::string transport;
  std::string hosts;  // a letter per rank: the host that it pretends to be on
  int per_process;    // 0: all ranks are threads of one process
};
const std::vector<Layout>& layouts();

// Settings of the command line for every job. "" and 0: the seed decides.
struct Fixed {
  std::string faults = "none";  // none, kill, freeze, blink, exit, abort, idle, leave, flood, all
  std::string layout;
  int ranks = 0;
  int64_t deadline_ms = 0;
};
bool is_known_faults(const std::string& name);

struct Fault {
  FaultKind kind = FaultKind::kNone;
  int victim = 0;     // rank
  double at = 0;      // fraction of the program after which it happens; below 0: while the communicator is made
  uint64_t spin = 0;  // additional rounds of a busy loop
  bool variant = false;
};
// Whether survivors must get errors.
bool fails_others(FaultKind kind);

struct JobPlan {
  uint64_t seed = 0;
  Layout layout;
  int ranks = 2;
  int per_process = 1;
  int threads = 1;  // per rank, each with its own communicators
  int actions = 40;
  size_t most_bytes = 0;  // of one side of a call
  int streams = 2;
  bool blocking = true;
  bool init_all = false;
  bool finalize = true;
  bool ordered_operators = true;  // false if TRESTLE_ALGO names algorithms that cannot serve them
  bool progress_thread = true;
  Rendezvous rendezvous = Rendezvous::kId;
  std::map<std::string, std::string> environment;
  int64_t deadline_ms = 60'000;
  Fault fault;

  // Whether the fault is noticed without the deadline.
  bool may_wait_forever() const { return fault.kind != FaultKind::kFreeze && fault.kind != FaultKind::kIdle; }
  int processes() const { return (ranks + per_process - 1) / per_process; }
  int process_of(int rank) const { return rank / per_process; }
};
JobPlan plan_job(uint64_t seed, const Fixed& fixed);
std::string to_string(const JobPlan& plan);

}  // namespace torture
