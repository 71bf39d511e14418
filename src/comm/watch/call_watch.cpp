#include "comm/watch/call_watch.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/text/value_text.h"
#include "comm/calls/call_check.h"
#include "comm/calls/call_path.h"
#include "comm/membership/membership.h"
#include "comm/split/split_letters.h"
#include "comm/split/splits_in_progress.h"
#include "comm/watch/life_cycle.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/mesh_sequence.h"
#include "comm/watch/notices.h"
#include "comm/watch/process_exit.h"

namespace trestle {

CallWatch::CallWatch(const CommunicatorParts& parts)
    : membership_(parts.membership),
      engine_(parts.engine),
      mesh_(parts.mesh),
      calls_(parts.calls),
      splits_(parts.splits),
      notices_(parts.notices),
      life_(parts.life) {}

// ---- what other ranks tell and ask

void CallWatch::remote_failure(const Error& error) {
  std::string text = error.message;
  const std::string own = engine_.oldest_operation();
  if (!own.empty()) text += "; on " + membership_.own_name() + " " + own;
  engine_.fail({is_everybodys(error.code) ? error.code : Code::kRemoteError, std::move(text)});
}

void CallWatch::remote_abort(int32_t rank) {
  remote_failure({Code::kAborted, "the communicator was aborted by " + membership_.name_of(rank)});
}

void CallWatch::peer_left(int32_t rank, bool by_exit) {
  const char* const how = by_exit ? " exited without CommDestroy" : " has left the communicator";
  engine_.peer_left(rank, membership_.name_of(rank) + how);
}

void CallWatch::take_letter(int32_t from, const std::string& letter) {
  if (CallCheck::is_letter(letter)) {
    calls_.compare_call(from, letter);
  } else if (is_split_failure(letter)) {
    if (auto failure = decode_split_failure(letter)) splits_.set_failure(failure->number, std::move(failure->error));
  } else if (Notices::is_letter(letter)) {
    notices_.take(from, letter);
  }
}

void CallWatch::wake_mesh_waiters() {
  const bool waits = splits_.has_exchanges() || life_.finalizing || notices_.awaited();
  if (waits && engine_.sleepers() != 0) engine_.wake();
}

// ---- answers

Answer CallWatch::answer(const Question& question) {
  Answer answer = question.operation.kind == CallKind::kOperation ? answer_for_operation(question)
                                                                  : answer_for_mesh_call(question.operation);
  answer.id = question.id;
  if (answer.awaited >= 0 && !answer.other_comm) answer.awaited_name = membership_.name_of(answer.awaited);
  return answer;
}

Answer CallWatch::answer_for_operation(const Question& question) {
  const bool message = question.operation.peer >= 0;
  OperationKey key = question.operation;
  if (message) {
    key.peer = question.whose;
    key.sending = !question.operation.sending;
  }
  Answer answer;
  answer.calls = calls_.calls_made(key);
  const Standing standing = engine_.standing(key);
  using State = Standing::State;
  if (standing.state == State::kActive) {
    answer.state = Answer::State::kActive;
  } else if (standing.state == State::kQueued) {
    answer.state = Answer::State::kQueued;
  } else {
    const bool called = (key.number & ~kPointToPoint) < answer.calls;
    answer.state = called ? Answer::State::kDone : Answer::State::kNotCalled;
  }
  describe_own_wait(standing, answer);
  if (standing.stream != nullptr) describe_stream_head(*standing.stream, key, answer);
  if (answer.state == Answer::State::kNotCalled) describe_wait_in_other_comm(answer);
  return answer;
}

Answer CallWatch::answer_for_mesh_call(const OperationKey& key) {
  Answer answer;
  if (waits_in(key)) {
    answer.state = Answer::State::kActive;
    describe_mesh_call(key, answer);
    return answer;
  }
  const bool called = key.kind == CallKind::kSplit ? calls_.has_called_split(key.number) : life_.finalizing.load();
  answer.state = called || key.kind == CallKind::kCreation ? Answer::State::kDone : Answer::State::kNotCalled;
  describe_own_wait(engine_.standing(key), answer);
  if (answer.state == Answer::State::kNotCalled) describe_wait_in_other_comm(answer);
  return answer;
}

// An operation, else a call that waits over the mesh, else nothing.
void CallWatch::describe_own_wait(const Standing& standing, Answer& answer) {
  if (standing.in) {
    answer.in = standing.in;
    answer.awaited = standing.awaited;
    answer.description = standing.description;
  } else if (const auto call = open_mesh_call()) {
    describe_mesh_call(*call, answer);
  }
}

void CallWatch::describe_mesh_call(const OperationKey& key, Answer& answer) {
  answer.in = key;
  if (key.kind == CallKind::kFinalize) {
    answer.awaited = mesh_.mesh().awaited(kFinalizeBarrier, true);
    answer.description = "CommFinalize";
    return;
  }
  answer.description = "CommSplit";
  for (const uint64_t sequence : {sequence_of_split(key.number, 0), sequence_of_split(key.number, 1)}) {
    answer.awaited = mesh_.mesh().awaited(sequence, false);
    if (answer.awaited >= 0) return;
  }
  const std::optional<int32_t> awaited = splits_.awaited_while_joining(key.number);
  if (!awaited) return;
  answer.description += ", making the new communicator";
  if (*awaited >= 0) answer.awaited = *awaited;
}

// What the operation waits for on its stream: another one is at the head there.
void CallWatch::describe_stream_head(Stream& stream, const OperationKey& key, Answer& answer) {
  const Stream::Head head = stream.head();
  answer.device = head.outer_device;
  if (head.engine == nullptr || (head.engine.get() == &engine_ && head.operation == key)) return;
  const auto all = living_communicators();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return &one->engine() == head.engine.get(); });
  if (found != all.end()) describe_wait_in(**found, head.engine->standing(head.operation), answer);
}

// What a thread of this rank waits for in another communicator, if that may be why a call was not made.
void CallWatch::describe_wait_in_other_comm(Answer& answer) {
  constexpr OperationKey kNone{~uint64_t{0}};  // matches no operation: so the oldest is reported
  if (engine_.is_waited_for()) return;
  for (const auto& other : living_communicators()) {
    if (!other->membership().is_kin(membership_) || !other->engine().is_waited_for()) continue;
    if (describe_wait_in(*other, other->engine().standing(kNone), answer)) return;
  }
  describe_failure_of_other_comm(answer);
}

// A program mostly stops making calls once one of its communicators has failed. A failure that is older than the calls
// that are awaited here explains nothing.
void CallWatch::describe_failure_of_other_comm(Answer& answer) {
  const int64_t timeout_ns = membership_.settings().config.timeout_ns;
  for (const auto& other : living_communicators()) {
    const bool related = other->membership().is_kin(membership_) && &other->membership() != &membership_;
    if (!related || !other->engine().failed()) continue;
    const int64_t age_ns = monotonic_clock().now_ns() - other->engine().failed_ns();
    const Failure failure = other->engine().failure();
    if ((timeout_ns > 0 && age_ns / 2 > timeout_ns) || failure->code == Code::kAborted) continue;
    answer.failure = failure->message;
    return;
  }
}

// True if this rank awaits a rank in the other communicator.
bool CallWatch::describe_wait_in(const LivingCommunicator& other, const Standing& standing, Answer& answer) const {
  if (!standing.in || standing.awaited < 0) return false;
  const Membership& there = other.membership();
  answer.in = standing.in;
  answer.awaited = standing.awaited;
  answer.description = standing.description;
  answer.awaited_name = there.name_of(standing.awaited);
  if (&there != &membership_) answer.other_comm = OtherCommRank{there.job(), there.rank()};
  return true;
}

bool CallWatch::waits_in(const OperationKey& key) {
  if (key.kind == CallKind::kSplit) return splits_.contains(key.number);
  return key.kind == CallKind::kFinalize && mesh_.mesh().awaited(kFinalizeBarrier, true) >= 0;
}

std::optional<OperationKey> CallWatch::open_mesh_call() {
  if (const OperationKey finalize{0, -1, false, CallKind::kFinalize}; waits_in(finalize)) return finalize;
  const std::optional<uint64_t> split = splits_.oldest();
  if (!split) return std::nullopt;
  return OperationKey{*split, -1, false, CallKind::kSplit};
}

// ---- calls that are late, or under way

std::string CallWatch::late_text(int64_t timeout_ns, const std::string& call) const {
  return "deadline passed after " + duration_text(timeout_ns) + " on " + membership_.own_name() + ": " + call;
}

void CallWatch::look_at_wait(MeshWait& wait) {
  const int64_t now_ns = monotonic_clock().now_ns();
  const bool late = now_ns > wait.deadline_ns;
  const int64_t waited_s = wait.marks.passed(now_ns);
  if (wait.asked || (!late && waited_s == 0)) return;
  const int32_t awaited = mesh_.mesh().awaited(wait.sequence, wait.key.kind == CallKind::kFinalize);
  if (awaited < 0) return;  // the call has just ended
  const std::string call = wait.key.kind == CallKind::kFinalize ? "CommFinalize" : "CommSplit";
  const std::string why = call + ", awaiting rank " + std::to_string(awaited);
  if (late)
    wait.asked = mesh_.inquire({wait.key, awaited, wait.timeout_ns, late_text(wait.timeout_ns, why)});
  else if (!mesh_.inquire({wait.key, awaited, wait.timeout_ns, why, waited_s}))
    say_wait(waited_s, why);
}

void CallWatch::end_inquiry(const Inquiry::Verdict& verdict) {
  const OperationKey& key = verdict.operation;
  const bool operation = key.kind == CallKind::kOperation;
  if (verdict.waited_s != 0) {
    const bool waits = operation ? engine_.standing(key).state == Standing::State::kActive : waits_in(key);
    if (waits) say_wait(verdict.waited_s, verdict.sentence());
    return;
  }
  Error error{Code::kTimeout, verdict.sentence()};
  if (operation) return engine_.end_inquiry(key, std::move(error));
  if (waits_in(key)) engine_.fail(std::move(error));
}

void CallWatch::say_wait(int64_t seconds, const std::string& why) const {
  LOG(kWarn, kColl, "%s has waited %d s: %s", membership_.own_name().c_str(), static_cast<int>(seconds), why.c_str());
}

std::string CallWatch::under_way(int64_t deadline_ns) {
  if (splits_.has_exchanges()) return "CommSplit";
  if (engine_.pending() != 0) return engine_.open_operation(deadline_ns);
  return life_.finalizing && !life_.finalized ? "CommFinalize" : "";
}

}  // namespace trestle
