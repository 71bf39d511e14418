// Memory that the driver and all processes of a job share; zero at first.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <trestle/trestle.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

#include "torture/program.h"

namespace torture {

inline constexpr int kMostRanks = 16;
inline constexpr int kMostThreads = 4;
inline constexpr int kMostFailures = 6;
inline constexpr size_t kTextBytes = 2000;

enum class LaneState : int { kNotBegun, kRuns, kDone, kFailed };

// How a communicator failed on one rank, in the library's words.
inline constexpr int kNoComm = -1;
struct Failure {
  int comm;  // kNoComm - c: no communicator says that it has failed, the call was about c
  int result;
  int action;
  char sentence[kTextBytes];
};

// One thread of one rank.
struct LaneBoard {
  std::atomic<int> state;
  std::atomic<int> action;  // the one that it is at; -1: makes its communicator
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> checksum;  // over all results without a reference
  std::atomic<int> failures;
  Failure failure[kMostFailures];
  char wrong[kTextBytes];  // what a check of the torture found; "" nothing
};

inline constexpr int kNoId = 2;

struct Board {
  std::atomic<int> id_made[kMostThreads];  // 1: yes; kNoId: nobody will
  trestleUniqueId id[kMostThreads];
  LaneBoard lane[kMostRanks][kMostThreads];
  std::atomic<int> came[kMostThreads][kMaxActions];          // ranks that have come to the barrier of an action
  std::atomic<uint64_t> sum[kMostThreads][kMaxActions * 8];  // of an all-reduce without a reference, by call
  char left[kMostRanks][kTextBytes];  // by process: what it has left behind in itself; "" nothing
  std::atomic<int> struck;            // the fault has happened
  std::atomic<int> victim_at;         // the victim's action then
  std::atomic<int> floods;            // rounds of strangers
  std::atomic<int> strangers;         // sockets that they visited, over all rounds
};

// A futex between processes: waits, without using the processor, until a word is no longer `old`; tells those that
// wait.
inline void wait_while(std::atomic<int>& word, int old) {
  while (word.load() == old) syscall(SYS_futex, &word, FUTEX_WAIT, old, nullptr, nullptr, 0);
}
inline void wake_all(std::atomic<int>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace torture
