// Memory that the driver and all processes of a job share. Zero at first.
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

// How a communicator failed on one rank: the library's code and sentence.
inline constexpr int kNoComm = -1;
struct Failure {
  int comm;  // kNoComm - c: a call on c failed, but no communicator reports a failure
  int result;
  int action;
  char sentence[kTextBytes];
};

// The state of one thread of one rank.
struct LaneBoard {
  std::atomic<int> state;
  std::atomic<int> action;  // its present action; -1: it makes its communicator
  std::atomic<uint64_t> calls;
  std::atomic<uint64_t> checksum;  // over all results without a reference
  std::atomic<int> failures;
  Failure failure[kMostFailures];
  char wrong[kTextBytes];  // the error that a check found; "": none
};

inline constexpr int kNoId = 2;

struct Board {
  std::atomic<int> id_made[kMostThreads];  // 1: yes; kNoId: it will not be made
  trestleUniqueId id[kMostThreads];
  LaneBoard lane[kMostRanks][kMostThreads];
  std::atomic<int> came[kMostThreads][kMaxActions];          // ranks that have reached the barrier of an action
  std::atomic<uint64_t> sum[kMostThreads][kMaxActions * 8];  // of an all-reduce without a reference, by call
  char left[kMostRanks][kTextBytes];                         // by process: its own leftovers; "": none
  std::atomic<int> struck;                                   // the fault has happened
  std::atomic<int> victim_at;                                // the victim's action at that moment
  std::atomic<int> floods;                                   // rounds of strangers
  std::atomic<int> strangers;                                // sockets that they connected to, over all rounds
};

// A futex between processes. wait_while() sleeps until a word differs from `old`; wake_all() wakes the waiters.
inline void wait_while(std::atomic<int>& word, int old) {
  while (word.load() == old) syscall(SYS_futex, &word, FUTEX_WAIT, old, nullptr, nullptr, 0);
}
inline void wake_all(std::atomic<int>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace torture
