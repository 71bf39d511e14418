#include "torture/lane.h"

#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "torture/fault.h"

namespace torture {
namespace {

constexpr size_t kArenaBytes = size_t{16} << 20;

}  // namespace

Lane::Lane(const JobPlan& plan, int rank, int thread, Board& board, trestleComm_t world)
    : plan_(plan),
      program_(make_program(plan, thread)),
      rank_(rank),
      thread_(thread),
      board_(board),
      lane_(board.lane[rank][thread]),
      comms_(program_.comms.size()),
      failed_(program_.comms.size()),
      streams_(static_cast<size_t>(plan.streams)),
      events_(kEvents),
      marks_(kEvents),
      awaited_(static_cast<size_t>(plan.streams) + 1) {
  comms_[0] = world;
  for (int m = 0; m < kMemories; ++m) {
    arenas_[static_cast<size_t>(m)] = std::make_unique<Arena>(static_cast<Memory>(m), kArenaBytes);
  }
}

Lane::~Lane() = default;

void Lane::wrong(const std::string& what) {
  const std::string where =
      index_ < 0 ? "while the communicator was made"
                 : "action " + std::to_string(index_) + ", " + to_string(program_.actions[static_cast<size_t>(index_)]);
  std::snprintf(lane_.wrong, sizeof lane_.wrong, "%s: %s", where.c_str(), what.c_str());
  lane_.state = static_cast<int>(LaneState::kFailed);
  std::fflush(nullptr);
  _exit(3);
}

void Lane::require(trestleResult_t result, const char* what) {
  if (result == trestleSuccess) return;
  wrong(std::string(what) + ": " + trestleGetErrorString(result) + ": " + trestleGetLastError(nullptr));
}

bool Lane::good(trestleResult_t result, const char* what) {
  if (result == trestleSuccess) return true;
  if (!fails_others(plan_.fault.kind)) {
    for (size_t c = 0; c < comms_.size(); ++c) {
      trestleResult_t state = trestleSuccess;
      if (comms_[c] == nullptr || trestleCommGetAsyncError(comms_[c], &state) != trestleSuccess) continue;
      if (state == trestleSuccess || state == trestleInProgress) continue;
      wrong(std::string(what) + ": comm " + std::to_string(c) + " failed: " + trestleGetErrorString(state) + ": " +
            trestleGetLastError(comms_[c]));
    }
    require(result, what);
  }
  note_failures(result, what);
  return false;
}

void Lane::record_failure(int comm, trestleResult_t result, const std::string& sentence) {
  if (comm >= 0) failed_[static_cast<size_t>(comm)] = true;
  const int at = lane_.failures.load();
  if (at >= kMostFailures) return;
  Failure& failure = lane_.failure[at];
  failure.comm = comm;
  failure.result = result;
  failure.action = index_;
  std::snprintf(failure.sentence, sizeof failure.sentence, "%s", sentence.c_str());
  lane_.failures.store(at + 1);
}

bool Lane::ask_failed(int comm) {
  const auto c = static_cast<size_t>(comm);
  if (failed_[c] || comms_[c] == nullptr) return failed_[c];
  trestleResult_t state = trestleSuccess;
  if (trestleCommGetAsyncError(comms_[c], &state) != trestleSuccess) wrong("CommGetAsyncError failed");
  if (state == trestleSuccess || state == trestleInProgress) return false;
  record_failure(comm, state, trestleGetLastError(comms_[c]));
  return true;
}

// Every later call gives the same code and sentence.
void Lane::expect_sticky(int comm) {
  const trestleComm_t handle = comms_[static_cast<size_t>(comm)];
  if (handle == nullptr) return;
  trestleResult_t state = trestleSuccess;
  if (trestleCommGetAsyncError(handle, &state) != trestleSuccess) wrong("CommGetAsyncError failed");
  const std::string sentence = trestleGetLastError(handle);
  float x = 1;
  const trestleResult_t again = trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, handle, nullptr);
  if (again == state && sentence == trestleGetLastError(handle)) return;
  wrong("a failure is not sticky: " + std::string(trestleGetErrorString(state)) + ": " + sentence + " | then " +
        trestleGetErrorString(again) + ": " + trestleGetLastError(handle));
}

// Finds the communicators that failed with a call. A communicator without a failure lets the others continue. So the
// program ends only when the communicator of all ranks has failed, which happens wherever the rank to blame is missed.
void Lane::note_failures(trestleResult_t result, const char* what) {
  const std::string sentence = trestleGetLastError(nullptr);
  const int about = index_ < 0 ? 0 : program_.actions[static_cast<size_t>(index_)].comm;
  over_ = true;
  bool any = false;
  for (size_t c = 0; c < comms_.size(); ++c) any = ask_failed(static_cast<int>(c)) || any;
  if (comms_[0] == nullptr) return record_failure(0, result, sentence);
  if (!any) return record_failure(kNoComm - about, result, std::string(what) + ": " + sentence);
  const bool noticed = plan_.fault.kind == FaultKind::kKill || plan_.fault.kind == FaultKind::kExit ||
                       plan_.fault.kind == FaultKind::kAbort;
  while (noticed && !ask_failed(0)) sched_yield();
}

trestleConfig_t Lane::config() {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.timeoutMs = plan_.deadline_ms;
  if (!plan_.blocking) config.blocking = 0;
  if (!plan_.layout.dims.empty()) config.dims = plan_.layout.dims.c_str();
  if (!plan_.layout.transport.empty()) config.transport = plan_.layout.transport.c_str();
  return config;
}

bool Lane::poll_until_made(trestleComm_t comm, const char* what) {
  trestleResult_t state = trestleInProgress;
  while (state == trestleInProgress) {
    if (trestleCommGetAsyncError(comm, &state) != trestleSuccess) wrong("CommGetAsyncError failed");
    if (state == trestleInProgress) sched_yield();
  }
  return good(state, what);
}

// In a flood: waits for three more rounds of strangers.
void Lane::await_strangers() {
  if (plan_.fault.kind != FaultKind::kFlood) return;
  const int before = board_.floods.load();
  for (int now = before; now < before + 3; now = board_.floods.load()) wait_while(board_.floods, now);
}

void Lane::join() {
  trestleUniqueId id{};
  if (plan_.rendezvous == Rendezvous::kId) {
    if (rank_ == 0) {
      require(trestleGetUniqueId(&board_.id[thread_]), "GetUniqueId");
      int not_yet = 0;  // kNoId: this process was stopped, and the others do not wait any more
      board_.id_made[thread_].compare_exchange_strong(not_yet, 1);
      wake_all(board_.id_made[thread_]);
    }
    wait_while(board_.id_made[thread_], 0);
    over_ = board_.id_made[thread_] == kNoId;
    if (over_) return;
    id = board_.id[thread_];
  }
  const std::string host = plan_.layout.hosts.empty() ? "" : plan_.layout.hosts.substr(static_cast<size_t>(rank_), 1);
  trestleConfig_t config = this->config();
  config.hostId = host.c_str();
  strike(-1);
  if (rank_ != 0) await_strangers();
  const trestleResult_t result = trestleCommInitRankConfig(&comms_[0], plan_.ranks, id, rank_, &config);
  if (result == trestleInProgress && !plan_.blocking) {
    poll_until_made(comms_[0], "CommInitRank");
  } else {
    good(result, "CommInitRank");
  }
}

// Executes the victim's fault at its action. False: the lane has ended. Of several threads the first one does it.
bool Lane::strike(int index) {
  const Fault& fault = plan_.fault;
  if (thread_ != 0 || rank_ != fault.victim || index != fault_action(fault, program_)) return true;
  switch (fault.kind) {
    case FaultKind::kKill:
    case FaultKind::kFreeze:
    case FaultKind::kBlink:
      strike_later(fault, board_, index);
      return true;
    case FaultKind::kExit:
      mark_struck(board_, index);
      lane_.state = static_cast<int>(LaneState::kDone);
      if (fault.variant) _exit(0);
      exit(0);
    case FaultKind::kIdle:
      mark_struck(board_, index);
      for (;;) pause();
    case FaultKind::kAbort:
      mark_struck(board_, index);
      leave(Way::kAbort);
      over_ = true;
      return false;
    default:
      return true;
  }
}

void Lane::work() {
  if (comms_[0] == nullptr) join();
  await_strangers();
  if (!over_) {
    const size_t half = kArenaBytes / 2;
    for (int part = 0; part < 2; ++part) {
      void* handle = nullptr;
      uint8_t* const base = arenas_[static_cast<size_t>(Memory::kRegistered)]->base();
      if (good(trestleCommRegister(comms_[0], base + static_cast<size_t>(part) * half, half, &handle), "CommRegister"))
        registered_.push_back(handle);
    }
    for (trestleStream_t& stream : streams_) require(trestleStreamCreate(&stream), "StreamCreate");
    for (trestleEvent_t& event : events_) require(trestleEventCreate(&event), "EventCreate");
  }
  for (size_t i = 0; i < program_.actions.size() && !over_; ++i) {
    index_ = static_cast<int>(i);
    lane_.action = index_;
    if (!strike(index_)) return;
    if (!perform(program_.actions[i]) && !over_) wrong("an action failed, no communicator did");
  }
}

bool Lane::perform(const Action& action) {
  const bool calls = !action.calls.empty();
  if (calls && action.act != Act::kGroup && program_.rank_in(action.calls[0].comm, rank_) < 0) return true;
  switch (action.act) {
    case Act::kCall:
      return do_call(action.calls[0]);
    case Act::kGroup:
      return do_group(action);
    case Act::kPersistent:
      return do_persistent(action);
    case Act::kDecomposed:
      return do_decomposed(action);
    case Act::kChain:
      return do_chain(action);
    case Act::kRecord:
    case Act::kWaitEvent:
      return do_record(action);
    case Act::kSyncEvent:
      return do_sync_event(action);
    case Act::kSyncStream:
      return do_sync_stream(action);
    case Act::kSyncComm:
      return settle_comm(action.comm);
    case Act::kBarrier:
      return do_barrier(action);
    case Act::kSplit:
      return do_split(action);
    case Act::kDrop:
      return do_drop(action);
    case Act::kRefused:
      return do_refused(action);
    case Act::kQuestions:
      return do_questions(action);
    case Act::kEnd:
      return end();
  }
  return false;
}

void Lane::leave(Way way) {
  for (size_t i = comms_.size(); i-- > 0;) {
    trestleComm_t& comm = comms_[i];
    if (comm == nullptr) continue;
    const trestleResult_t result = way == Way::kAbort ? trestleCommAbort(comm) : trestleCommDestroy(comm);
    if (result != trestleSuccess && !over_)
      wrong("Destroy: " + std::string(trestleGetErrorString(result)) + ": " + trestleGetLastError(nullptr));
    comm = nullptr;
  }
  for (trestleEvent_t& event : events_) {
    if (event != nullptr) require(trestleEventDestroy(event), "EventDestroy");
    event = nullptr;
  }
  for (trestleStream_t& stream : streams_) {
    if (stream != nullptr) trestleStreamDestroy(stream);  // may repeat the failure of the stream's work
    stream = nullptr;
  }
}

void Lane::run() {
  lane_.action = -1;
  lane_.state = static_cast<int>(LaneState::kRuns);
  work();
  if (over_ && comms_[0] != nullptr && failed_[0]) expect_sticky(0);
  leave(over_ && mix(plan_.seed, static_cast<uint64_t>(rank_)) % 2 == 0 ? Way::kAbort : Way::kDestroy);
  pending_.clear();
  for (auto& arena : arenas_) arena.reset();
  lane_.state = static_cast<int>(LaneState::kDone);
}

}  // namespace torture
