// CallWatch: what a communicator learns over its control mesh, and what it answers there: failures of other ranks,
// ranks that leave, letters about calls, and inquiries about calls that are late.
//
// Owned by the communicator. Any thread. The control mesh's poller calls it on the watch thread, and holds a mutex of
// its own meanwhile. Its functions take the mutexes of the other parts one at a time. They may wait for the progress
// lock of an engine, or borrow it, but for nothing else; so callers must not hold that lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/overdue.h"
#include "base/result.h"
#include "base/wait_marks.h"
#include "comm/watch/communicator_parts.h"
#include "control_mesh/inquiry.h"
#include "engine/run/engine.h"

namespace trestle {

class LivingCommunicator;

// A call that waits for all ranks over the control mesh.
struct MeshWait {
  OperationKey key;
  uint64_t sequence = 0;
  int64_t deadline_ns = 0;
  int64_t timeout_ns = 0;
  bool asked = false;  // past the deadline: an inquiry was started
  WaitMarks marks{monotonic_clock().now_ns()};
};

class CallWatch {
 public:
  explicit CallWatch(const CommunicatorParts& parts);
  CallWatch(const CallWatch&) = delete;
  CallWatch& operator=(const CallWatch&) = delete;

  // ---- what other ranks tell and ask

  // Another rank failed: so does this communicator.
  void remote_failure(const Error& error);
  void remote_abort(int32_t rank);
  // That rank will send nothing more: calls that wait for it fail.
  void peer_left(int32_t rank, bool by_exit);
  // A letter about a call of another rank (TRESTLE_CHECK) or about a split that fails, or a notice. Others are ignored.
  void take_letter(int32_t from, const std::string& letter);
  // Engine::tell_failure(), on the watch thread.
  void tell_failure() { engine_.tell_failure(); }
  // Wakes threads that wait for the control mesh: they sleep at the engine, where no peer rings for them.
  void wake_mesh_waiters();

  // ---- inquiries

  // Another rank waits for this one's part of a call, and asks about it.
  Answer answer(const Question& question);
  // Past the deadline: starts the inquiry, once. The communicator fails with its result. At the marks before, the
  // result is only said.
  void look_at_wait(MeshWait& wait);
  // The result of an inquiry. Past the deadline the call fails with it. Nothing if the call has ended after all.
  void end_inquiry(const Inquiry::Verdict& verdict);
  // At the default level of the log: "rank 0 (host a, pid 12) has waited 10 s: ...".
  void say_wait(int64_t seconds, const std::string& why) const;
  std::string late_text(int64_t timeout_ns, const std::string& call) const;

  // "CommSplit", "operation 17 (allreduce ...)"; "": nothing is under way. Waits at most until `deadline_ns` of the
  // monotonic clock.
  std::string under_way(int64_t deadline_ns);

 private:
  Answer answer_for_operation(const Question& question);
  Answer answer_for_mesh_call(const OperationKey& key);
  // These fill in what this rank is in, and which rank it waits for there.
  void describe_own_wait(const Standing& standing, Answer& answer);
  void describe_mesh_call(const OperationKey& key, Answer& answer);
  void describe_stream_head(Stream& stream, const OperationKey& key, Answer& answer);
  void describe_wait_in_other_comm(Answer& answer);
  void describe_failure_of_other_comm(Answer& answer);
  bool describe_wait_in(const LivingCommunicator& other, const Standing& standing, Answer& answer) const;
  bool waits_in(const OperationKey& key);
  std::optional<OperationKey> open_mesh_call();

  const Membership& membership_;
  Engine& engine_;
  MeshPoller& mesh_;
  CallPath& calls_;
  SplitsInProgress& splits_;
  Notices& notices_;
  const LifeCycle& life_;
};

}  // namespace trestle
