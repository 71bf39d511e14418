// Waiting: calls are verified when a wait says that they are complete.
#include <sched.h>

#include <algorithm>

#include "torture/lane.h"

namespace torture {

// Compares the bytes of all buffers that the calls may need, with guard zones, with the free space of one arena,
// because all of them may be placed in the same arena.
bool Lane::make_room(const std::vector<Call>& calls) {
  size_t needed = 0;
  for (const Call& call : calls) {
    if (is_mine(call)) needed += 2 * (largest_bytes(call, program_.size_of(call.comm)) + 1024);
  }
  bool fits = true;
  for (const auto& arena : arenas_) fits = fits && arena->room() >= needed;
  return fits || settle_all();
}

bool Lane::settle(const std::function<bool(const Pending&)>& is_done) {
  for (Pending& pending : pending_) {
    if (!is_done(pending)) continue;
    verify(*pending.execution);
    const trestleComm_t comm = comms_[static_cast<size_t>(pending.comm)];
    if (comm != nullptr && !good(pending.execution->drop_operator(comm), "RedOpDestroy")) return false;
  }
  std::erase_if(pending_, is_done);
  if (!pending_.empty()) return true;
  for (auto& arena : arenas_) arena->reset();
  return true;
}

// A stream has passed its calls up to `turn`. So the calls that the last of them waited for are complete too.
bool Lane::settle_stream(int stream, uint64_t turn) {
  std::vector<Mark> done = {{stream, turn}};
  auto& awaited = awaited_[static_cast<size_t>(stream)];
  const uint64_t last = [&] {
    uint64_t most = 0;
    for (const Pending& pending : pending_) {
      if (pending.stream == stream && pending.turn <= turn) most = std::max(most, pending.turn);
    }
    return most;
  }();
  for (const Awaited& one : awaited) {
    if (one.from < last) done.push_back(one.mark);
  }
  return settle([&](const Pending& pending) {
    return std::any_of(done.begin(), done.end(), [&](const Mark& mark) {
      return pending.stream != 0 && pending.stream == mark.stream && pending.turn <= mark.turn;
    });
  });
}

bool Lane::settle_comm(int comm) {
  const trestleComm_t handle = comms_[static_cast<size_t>(comm)];
  if (handle == nullptr) return true;
  if (!good(trestleCommSynchronize(handle), "CommSynchronize")) return false;
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  if (!good(trestleCommGetStats(handle, &stats), "CommGetStats")) return false;
  if (stats.total.started != stats.total.completed) {
    wrong("after CommSynchronize " + std::to_string(stats.total.completed) + " of " +
          std::to_string(stats.total.started) + " operations are complete");
  }
  return settle([&](const Pending& pending) { return pending.comm == comm; });
}

bool Lane::settle_all() {
  for (size_t c = 0; c < comms_.size(); ++c) {
    if (!settle_comm(static_cast<int>(c))) return false;
  }
  return true;
}

bool Lane::do_record(const Action& action) {
  const auto e = static_cast<size_t>(action.number);
  if (action.act == Act::kRecord) {
    marks_[e] = {action.stream, turn_};
    return good(trestleEventRecord(events_[e], handle_of(action.stream)), "EventRecord");
  }
  if (marks_[e].stream != 0) awaited_[static_cast<size_t>(action.stream)].push_back({marks_[e], turn_});
  return good(trestleStreamWaitEvent(handle_of(action.stream), events_[e]), "StreamWaitEvent");
}

bool Lane::do_sync_event(const Action& action) {
  const auto e = static_cast<size_t>(action.number);
  trestleResult_t result = trestleInProgress;
  if (!action.variant) result = trestleEventSynchronize(events_[e]);
  while (result == trestleInProgress) {
    result = trestleEventQuery(events_[e]);
    if (result == trestleInProgress) sched_yield();
  }
  if (!good(result, action.variant ? "EventQuery" : "EventSynchronize")) return false;
  return marks_[e].stream == 0 || settle_stream(marks_[e].stream, marks_[e].turn);
}

bool Lane::do_sync_stream(const Action& action) {
  const trestleStream_t stream = handle_of(action.stream);
  trestleResult_t result = trestleInProgress;
  if (!action.variant) result = trestleStreamSynchronize(stream);
  while (result == trestleInProgress) {
    result = trestleStreamQuery(stream);
    if (result == trestleInProgress) sched_yield();
  }
  if (!good(result, action.variant ? "StreamQuery" : "StreamSynchronize")) return false;
  return settle_stream(action.stream, turn_);
}

// A barrier is complete when every rank's stream has reached it.
bool Lane::do_barrier(const Action& action) {
  const Call& call = action.calls[0];
  std::atomic<int>& came = board_.came[thread_][index_];
  came.fetch_add(1);
  if (!make_room(action.calls) || !enqueue(call)) return false;
  const int stream = stream_of(call);
  if (stream == 0 || action.variant) {
    if (!settle_comm(call.comm)) return false;
  } else if (!good(trestleStreamSynchronize(handle_of(stream)), "StreamSynchronize") || !settle_stream(stream, turn_)) {
    return false;
  }
  const int all = program_.size_of(call.comm);
  if (came.load() != all)
    wrong("a barrier was complete when " + std::to_string(came.load()) + " of " + std::to_string(all) + " had come");
  return true;
}

// Makes wrong calls on one rank. They are refused with a sentence and have no other effect.
bool Lane::do_refused(const Action& action) {
  const int rank = program_.rank_in(action.comm, rank_);
  if (rank < 0) return true;
  const trestleComm_t comm = comms_[static_cast<size_t>(action.comm)];
  float x[4] = {1, 2, 3, 4};
  trestleResult_t result = trestleSuccess;
  switch ((rank + index_) % 7) {
    case 0:
      result = trestleAllReduce(x, x, 4, static_cast<trestleDataType_t>(99), trestleSum, comm, nullptr);
      break;
    case 1:
      result = trestleBroadcast(x, x, 4, trestleFloat32, program_.size_of(action.comm), comm, nullptr);
      break;
    case 2:
      result = trestleReduce(x, x, 4, trestleFloat32, static_cast<trestleRedOp_t>(0x12345678), 0, comm, nullptr);
      break;
    case 3:
      result = trestleAllReduce(nullptr, x, 4, trestleFloat32, trestleSum, comm, nullptr);
      break;
    case 4:
      result = trestleSend(x, 4, trestleFloat32, -1, comm, nullptr);
      break;
    case 5:
      result = trestleGroupEnd();
      break;
    default:
      result = trestleAllReduce(x, x, 4, trestleFloat32, trestleSum, nullptr, nullptr);
  }
  if (result != trestleInvalidArgument && result != trestleInvalidUsage) {
    return result != trestleSuccess ? good(result, "a wrong call") : (wrong("a wrong call was not refused"), false);
  }
  if (trestleGetLastError(nullptr)[0] == '\0') wrong("a wrong call was refused without a sentence");
  trestleResult_t state = trestleSuccess;
  return good(trestleCommGetAsyncError(comm, &state), "CommGetAsyncError") &&
         good(state, "CommGetAsyncError after a wrong call");
}

bool Lane::do_questions(const Action& action) {
  const int rank = program_.rank_in(action.comm, rank_);
  const trestleComm_t comm = comms_[static_cast<size_t>(action.comm)];
  if (rank < 0 || comm == nullptr) return true;
  int count = -1;
  int me = -1;
  if (!good(trestleCommCount(comm, &count), "CommCount") || !good(trestleCommUserRank(comm, &me), "CommUserRank"))
    return false;
  if (count != program_.size_of(action.comm) || me != rank) wrong("CommCount or CommUserRank is wrong");
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  uint64_t bytes = 0;
  double us = -1;
  if (!good(trestleCommGetStats(comm, &stats), "CommGetStats")) return false;
  if (stats.total.started < stats.total.completed + stats.total.failed)
    wrong("more operations are complete than were started");
  if (!good(trestleCommMemStats(comm, trestleMemTotal, &bytes), "CommMemStats")) return false;
  if (!good(trestlePredictTime(comm, trestleCollAllReduce, 1000, trestleFloat32, &us), "PredictTime")) return false;
  if (!(us >= 0)) wrong("PredictTime says less than nothing");
  trestleResult_t state = trestleSuccess;
  return good(trestleCommGetAsyncError(comm, &state), "CommGetAsyncError") && good(state, "CommGetAsyncError");
}

}  // namespace torture
