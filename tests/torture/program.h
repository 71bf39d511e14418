// The program of one thread of every rank: a list of actions that all ranks derive from the seed in the same way. Each
// rank does its part of each action, in the order of the list, so no program can deadlock by itself.
#pragma once

#include <string>
#include <vector>

#include "torture/call.h"
#include "torture/job.h"

namespace torture {

enum class Act {
  kCall,        // calls[0]
  kGroup,       // all calls between GroupStart and GroupEnd
  kPersistent,  // calls[0] as a request that runs `number` times
  kDecomposed,  // calls[0], an all-reduce in two halves
  kChain,       // calls[1] sends the data that calls[0] received
  kRecord,      // event `number` on stream `stream`
  kWaitEvent,   // stream `stream` waits for event `number`
  kSyncEvent,   // event `number`: Synchronize, or Query until done
  kSyncStream,  // stream `stream`: Synchronize, or Query until done
  kSyncComm,    // communicator `comm`
  kBarrier,     // calls[0], and a check that all ranks had come
  kSplit,       // `comm` by colors and keys
  kDrop,        // destroys `comm`
  kRefused,     // a wrong call on one rank
  kQuestions,   // queries of a communicator
  kEnd          // a barrier of all ranks after all work
};

struct Action {
  Act act = Act::kCall;
  std::vector<Call> calls{};
  int comm = 0;
  int stream = 1;
  int number = 0;
  bool variant = false;
  std::vector<int> colors{}, keys{};  // of the ranks of `comm`
  std::vector<int> made{};            // the new communicators, by color
};

struct Program {
  std::vector<std::vector<int>> comms;  // ranks of each communicator: its rank r is rank comms[c][r] of the job
  std::vector<Action> actions;

  // -1: no member.
  int rank_in(int comm, int rank) const;
  int size_of(int comm) const { return static_cast<int>(comms[static_cast<size_t>(comm)].size()); }
};

inline constexpr int kEvents = 3;
inline constexpr int kMaxActions = 512;

Program make_program(const JobPlan& plan, int thread);
std::string to_string(const Action& action);

}  // namespace torture
