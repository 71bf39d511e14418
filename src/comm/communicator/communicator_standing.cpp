// What a communicator tells other ranks about its calls, and the inquiries about calls that wait over the control mesh.
#include <algorithm>

#include "base/clock.h"
#include "base/config/value_text.h"
#include "comm/communicator/communicator.h"
#include "comm/watch/mesh_poller.h"
#include "comm/watch/mesh_sequence.h"
#include "comm/watch/process_exit.h"

namespace trestle {

// Another rank waits for this one's part of a call, and asks about it.
Answer Communicator::answer(const Question& question) {
  Answer answer = question.operation.kind == CallKind::kOperation ? answer_for_operation(question)
                                                                  : answer_for_call(question.operation);
  answer.id = question.id;
  if (answer.awaited >= 0 && !answer.elsewhere) answer.awaited_name = membership_.name_of(answer.awaited);
  return answer;
}

std::shared_ptr<Communicator> Communicator::find(const Elsewhere& place) {
  const auto all = living_communicators();
  const auto found = std::find_if(all.begin(), all.end(), [&place](const auto& one) {
    return one->membership_.job() == place.communicator && one->membership_.rank() == place.rank;
  });
  return found == all.end() ? nullptr : *found;
}

Answer Communicator::answer_for_operation(const Question& question) {
  const bool message = question.operation.peer >= 0;
  OperationKey key = question.operation;
  Answer answer;
  if (message) {
    key.peer = question.whose;
    key.sending = !question.operation.sending;
  }
  answer.calls = calls_.calls_made(message ? key.peer : -1, key.sending);
  const Standing standing = engine_->standing(key);
  using State = Standing::State;
  if (standing.state == State::kActive) {
    answer.state = Answer::State::kActive;
  } else if (standing.state == State::kQueued) {
    answer.state = Answer::State::kQueued;
  } else {
    const bool called = (key.number & ~kPointToPoint) < answer.calls;
    answer.state = called ? Answer::State::kDone : Answer::State::kNotCalled;
  }
  tell_where(standing, answer);
  if (standing.stream != nullptr) tell_head(*standing.stream, key, answer);
  if (answer.state == Answer::State::kNotCalled) tell_wait_elsewhere(answer);
  return answer;
}

void Communicator::tell_wait_elsewhere(Answer& answer) {
  constexpr OperationKey kNone{~uint64_t{0}};  // matches no operation: so the oldest is reported
  if (engine_->has_waiters()) return;
  for (const auto& other : living_communicators()) {
    if (other->membership_.root() != membership_.root() || !other->engine_->is_waited_for()) continue;
    if (tell_of_other(*other, other->engine_->standing(kNone), answer)) return;
  }
  tell_failure_elsewhere(answer);
}

// A program mostly stops making calls once one has failed. A failure that is older than the calls that are awaited here
// explains nothing.
void Communicator::tell_failure_elsewhere(Answer& answer) {
  const int64_t timeout_ns = membership_.settings().config.timeout_ns;
  for (const auto& other : living_communicators()) {
    if (other->membership_.root() != membership_.root() || other.get() == this || !other->engine_->failed()) continue;
    const int64_t age_ns = monotonic_clock().now_ns() - other->engine_->failed_ns();
    const std::optional<Error> failure = other->failure();
    if (age_ns / 2 > timeout_ns || failure->code == Code::kAborted) continue;
    answer.failure = failure->message;
    return;
  }
}

void Communicator::tell_head(Stream& stream, const OperationKey& key, Answer& answer) {
  const Stream::Head head = stream.head();
  if (head.engine == nullptr || (head.engine == engine_ && head.operation == key)) return;
  const auto all = living_communicators();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one->engine_ == head.engine; });
  if (found != all.end()) tell_of_other(**found, head.engine->standing(head.operation), answer);
}

// True if this rank awaits a rank in the other communicator.
bool Communicator::tell_of_other(const Communicator& other, const Standing& standing, Answer& answer) const {
  if (!standing.in || standing.awaited < 0) return false;
  answer.in = standing.in;
  answer.awaited = standing.awaited;
  answer.description = standing.description;
  answer.awaited_name = other.membership_.name_of(standing.awaited);
  if (&other != this) answer.elsewhere = Elsewhere{other.membership_.job(), other.membership_.rank()};
  return true;
}

// Fills in what this rank is in: an operation, else a call that waits over the mesh, else nothing.
void Communicator::tell_where(const Standing& standing, Answer& answer) {
  if (standing.in) {
    answer.in = standing.in;
    answer.awaited = standing.awaited;
    answer.description = standing.description;
  } else if (const auto call = open_call()) {
    tell_of(*call, answer);
  }
}

Answer Communicator::answer_for_call(const OperationKey& key) {
  Answer answer;
  if (waits_in(key)) {
    answer.state = Answer::State::kActive;
    tell_of(key, answer);
    return answer;
  }
  bool called = finalizing_;
  if (key.kind == CallKind::kSplit) called = calls_.has_called_split(key.number);
  answer.state = called || key.kind == CallKind::kCreation ? Answer::State::kDone : Answer::State::kNotCalled;
  tell_where(engine_->standing(key), answer);
  if (answer.state == Answer::State::kNotCalled) tell_wait_elsewhere(answer);
  return answer;
}

bool Communicator::waits_in(const OperationKey& key) {
  if (key.kind == CallKind::kSplit) {
    const MutexLock lock(splits_mutex_);
    return splits_.contains(key.number);
  }
  return key.kind == CallKind::kFinalize && mesh_->mesh().awaited(kFinalizeBarrier, true) >= 0;
}

std::optional<OperationKey> Communicator::open_call() {
  if (const OperationKey finalize{0, -1, false, CallKind::kFinalize}; waits_in(finalize)) return finalize;
  const MutexLock lock(splits_mutex_);
  if (splits_.empty()) return std::nullopt;
  return OperationKey{splits_.begin()->first, -1, false, CallKind::kSplit};
}

// Fills in what this rank waits for in that call.
void Communicator::tell_of(const OperationKey& key, Answer& answer) {
  answer.in = key;
  if (key.kind == CallKind::kFinalize) {
    answer.awaited = mesh_->mesh().awaited(kFinalizeBarrier, true);
    answer.description = "CommFinalize";
    return;
  }
  answer.description = "CommSplit";
  for (const uint64_t sequence : {sequence_of_split(key.number, 0), sequence_of_split(key.number, 1)}) {
    answer.awaited = mesh_->mesh().awaited(sequence, false);
    if (answer.awaited >= 0) return;
  }
  const MutexLock lock(splits_mutex_);
  const auto split = splits_.find(key.number);
  if (split == splits_.end() || split->second->members.empty()) return;
  answer.description += ", making the new communicator";
  const int32_t awaited = split->second->awaited;
  if (awaited >= 0) answer.awaited = split->second->members[static_cast<size_t>(awaited)];
}

std::string Communicator::late_text(int64_t timeout_ns, const std::string& call) const {
  return "deadline passed after " + duration_text(timeout_ns) + " on " + membership_.own_name() + ": " + call;
}

void Communicator::look_at_deadline(MeshWait& wait) {
  if (wait.asked || monotonic_clock().now_ns() <= wait.deadline_ns) return;
  const int32_t awaited = mesh_->mesh().awaited(wait.sequence, wait.key.kind == CallKind::kFinalize);
  if (awaited < 0) return;  // the call has just ended
  const char* const call = wait.key.kind == CallKind::kFinalize ? "CommFinalize" : "CommSplit";
  wait.asked = mesh_->inquire({wait.key, awaited, wait.timeout_ns,
                               late_text(wait.timeout_ns, call) + ", awaiting rank " + std::to_string(awaited)});
}

void Communicator::end_inquiry(const OperationKey& key, Error error) {
  if (key.kind == CallKind::kOperation) return engine_->end_inquiry(key, std::move(error));
  if (waits_in(key)) engine_->fail(std::move(error));
}

}  // namespace trestle
