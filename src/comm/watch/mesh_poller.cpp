#include "comm/watch/mesh_poller.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "comm/membership/membership.h"
#include "comm/watch/call_watch.h"
#include "comm/watch/process_exit.h"

namespace trestle {

void MeshPoller::start(CallWatch& watch) {
  {
    const MutexLock lock(mutex_);
    watch_ = &watch;
  }
  mesh_->on_arrival([] { Progress::process().due_earlier(); });
  mesh_->start(this);
}

void MeshPoller::leave(int linger_ms, bool by_exit) {
  {
    const MutexLock lock(mutex_);
    watch_ = nullptr;
  }
  mesh_->close(linger_ms, by_exit);
}

bool MeshPoller::inquire(const Overdue& overdue) {
  // A message to itself: its error message needs no inquiry.
  if (overdue.awaited < 0 || overdue.awaited == rank_) return false;
  const int64_t now_ns = monotonic_clock().now_ns();
  Inquiry& inquiry = overdue.operation.kind == CallKind::kOperation ? operations_ : calls_;
  const auto letter = inquiry.begin_if_none(overdue, now_ns);
  if (!letter) return false;
  mesh_->send_letter(overdue.awaited, encode(letter->question));
  // So that a missing answer is noticed in time.
  Progress::process().due_earlier();
  return true;
}

// The chain may lead back to this rank, when it is in a call of another communicator.
void MeshPoller::go_on(Inquiry& inquiry, int32_t from, const Answer& answer) {
  auto next = inquiry.answered(from, answer, monotonic_clock().now_ns());
  while (next && next->to == rank_) {
    const auto own = answer_to(next->question);
    if (!own) return;
    next = inquiry.answered(rank_, *own, monotonic_clock().now_ns());
  }
  if (next) mesh_->send_letter(next->to, encode(next->question));
}

// nullopt when this rank has left.
std::optional<Answer> MeshPoller::answer_to(const Question& question) {
  const MutexLock lock(mutex_);
  if (watch_ == nullptr) return std::nullopt;
  if (!question.other_comm) return watch_->answer(question);
  const std::shared_ptr<LivingCommunicator> there = living_communicator(*question.other_comm);
  Answer answer;
  answer.state = Answer::State::kDone;  // this rank has left that communicator
  if (there != nullptr && question.whose < there->membership().ranks()) answer = there->watch().answer(question);
  answer.id = question.id;
  if (!answer.other_comm) answer.other_comm = question.other_comm;
  return answer;
}

void MeshPoller::poll(int64_t now_ns) {
  mesh_->poll(now_ns);
  take_verdict(operations_, now_ns);
  take_verdict(calls_, now_ns);
  const MutexLock lock(mutex_);
  if (watch_ == nullptr) return;
  watch_->tell_failure();
  watch_->wake_mesh_waiters();
}

void MeshPoller::take_verdict(Inquiry& inquiry, int64_t now_ns) {
  auto verdict = inquiry.take_verdict(now_ns);
  if (!verdict) return;
  // A living kernel has acknowledged the question.
  verdict->host_answers = mesh_->host_answers(verdict->silent, verdict->silent_ns);
  const MutexLock lock(mutex_);
  if (watch_ != nullptr) watch_->end_inquiry(*verdict);
}

int64_t MeshPoller::next_due_ns() const {
  return std::min({mesh_->next_due_ns(), operations_.due_ns(), calls_.due_ns()});
}

void MeshPoller::on_error(const Error& error, int32_t) {
  const MutexLock lock(mutex_);
  if (watch_ != nullptr) watch_->remote_failure(error);
}

void MeshPoller::on_abort(int32_t rank) {
  const MutexLock lock(mutex_);
  if (watch_ != nullptr) watch_->remote_abort(rank);
}

void MeshPoller::on_bye(int32_t rank, bool by_exit) {
  LOG(kTrace, kBootstrap, "rank %d said goodbye", rank);
  const MutexLock lock(mutex_);
  if (watch_ != nullptr) watch_->peer_left(rank, by_exit);
}

void MeshPoller::on_letter(int32_t from, const std::string& text) {
  if (const auto question = decode_question(text, ranks_)) {
    if (const auto own = answer_to(*question)) mesh_->send_letter(from, encode(*own));
  } else if (const auto answer = decode_answer(text, ranks_)) {
    for (Inquiry* inquiry : {&operations_, &calls_}) go_on(*inquiry, from, *answer);
  } else {
    const MutexLock lock(mutex_);
    if (watch_ != nullptr) watch_->take_letter(from, text);
  }
}

}  // namespace trestle
