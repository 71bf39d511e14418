// Communicators of a lane: made by splits, destroyed, finalized.
#include <stdlib.h>

#include "torture/lane.h"

namespace torture {

bool Lane::finish_split(const Action& action, int made, trestleComm_t comm, trestleResult_t result) {
  const trestleComm_t parent = comms_[static_cast<size_t>(action.comm)];
  if (made >= 0) comms_[static_cast<size_t>(made)] = comm;
  if (result == trestleInProgress && !plan_.blocking) {
    if (made >= 0 && comm == nullptr) wrong("CommSplit is in progress without a handle");
    if (!poll_until_made(made >= 0 ? comm : parent, "CommSplit")) return false;
  } else if (!good(result, "CommSplit")) {
    return false;
  }
  if (made < 0) {
    if (comm != nullptr) wrong("CommSplit without a color has made a communicator");
    return true;
  }
  int count = -1;
  int me = -1;
  if (!good(trestleCommCount(comm, &count), "CommCount") || !good(trestleCommUserRank(comm, &me), "CommUserRank"))
    return false;
  if (count != program_.size_of(made) || me != program_.rank_in(made, rank_)) {
    wrong("a split gave rank " + std::to_string(me) + " of " + std::to_string(count) + " instead of " +
          std::to_string(program_.rank_in(made, rank_)) + " of " + std::to_string(program_.size_of(made)));
  }
  return true;
}

bool Lane::do_split(const Action& action) {
  const int me = program_.rank_in(action.comm, rank_);
  if (me < 0) return true;
  const trestleComm_t parent = comms_[static_cast<size_t>(action.comm)];
  const int color = action.colors[static_cast<size_t>(me)];
  const int key = action.keys[static_cast<size_t>(me)];
  const int made = color < 0 ? -1 : action.made[static_cast<size_t>(color)];
  trestleComm_t comm = nullptr;
  trestleResult_t result = trestleSuccess;
  if (!action.variant) {
    result = trestleCommSplit(parent, color, key, &comm, nullptr);
  } else {
    if (!good(trestleGroupStart(), "GroupStart")) return false;
    const trestleResult_t inside = trestleCommSplit(parent, color, key, &comm, nullptr);
    result = trestleGroupEnd();
    if (inside != trestleSuccess && result == trestleSuccess)
      wrong("GroupEnd succeeded after a CommSplit that did not");
  }
  return finish_split(action, made, comm, result);
}

bool Lane::finalize(trestleComm_t comm) {
  const trestleResult_t result = trestleCommFinalize(comm);
  if (result != trestleInProgress || plan_.blocking) return good(result, "CommFinalize");
  return poll_until_made(comm, "CommFinalize");
}

// Destroy waits for this rank's work but does not return failures. So pending calls are verified afterwards only if
// they cannot have failed; otherwise before.
bool Lane::do_drop(const Action& action) {
  trestleComm_t& comm = comms_[static_cast<size_t>(action.comm)];
  if (comm == nullptr) return true;
  if ((action.variant || fails_others(plan_.fault.kind)) && !settle_comm(action.comm)) return false;
  if (action.comm % 2 == 0 && !finalize(comm)) return false;
  if (!good(trestleCommDestroy(comm), "CommDestroy")) return false;
  comm = nullptr;
  return settle([&](const Pending& pending) { return pending.comm == action.comm; });
}

// Waits until all ranks' work is done and all ranks are here.
bool Lane::end() {
  if (!settle_all()) return false;
  const Call& call = program_.actions.back().calls[0];
  if (!enqueue(call) || !settle_all()) return false;
  for (void* handle : registered_) {
    if (!good(trestleCommDeregister(comms_[0], handle), "CommDeregister")) return false;
  }
  registered_.clear();
  if (plan_.finalize) {
    for (const trestleComm_t comm : comms_) {
      if (comm != nullptr && !finalize(comm)) return false;
    }
  }
  // A process that exits informs its peers.
  const bool leaves = (static_cast<uint64_t>(rank_) + plan_.seed) % 2 == 0;
  if (plan_.fault.kind == FaultKind::kLeave && leaves) {
    lane_.state = static_cast<int>(LaneState::kDone);
    exit(0);
  }
  return true;
}

}  // namespace torture
