#include "comm/mesh_poller.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "comm/communicator.h"

namespace trestle {

void MeshPoller::leave(int linger_ms) {
  {
    const MutexLock lock(mutex_);
    communicator_ = nullptr;
  }
  mesh_->close(linger_ms);
}

bool MeshPoller::inquire(const Overdue& overdue) {
  if (overdue.awaited < 0 || overdue.awaited == rank_) return false;  // a message to itself: its sentence says it all
  post(inquiry_.begin(overdue, monotonic_clock().now_ns()));
  return true;
}

void MeshPoller::post(const Inquiry::Letter& letter) {
  mesh_->send_letter(letter.to, encode(letter.question));
}

void MeshPoller::poll(int64_t now_ns) {
  mesh_->poll(now_ns);
  const auto verdict = inquiry_.take_verdict(now_ns);
  const MutexLock lock(mutex_);
  if (communicator_ == nullptr) return;
  if (verdict) communicator_->engine().end_inquiry(verdict->operation, {Code::kTimeout, verdict->sentence});
  communicator_->wake_gatherers();
}

int64_t MeshPoller::next_due_ns() const {
  return std::min(mesh_->next_due_ns(), inquiry_.due_ns());
}

void MeshPoller::on_error(const Error& error, int32_t) {
  const MutexLock lock(mutex_);
  if (communicator_ != nullptr) communicator_->remote_failure(error);
}

void MeshPoller::on_abort(int32_t rank) {
  const MutexLock lock(mutex_);
  if (communicator_ == nullptr) return;
  communicator_->remote_failure({Code::kAborted, "the communicator was aborted by " + communicator_->names_[rank]});
}

void MeshPoller::on_bye(int32_t rank) {
  LOG(kTrace, kBootstrap, "rank %d said goodbye", rank);
}

void MeshPoller::on_letter(int32_t from, const std::string& text) {
  if (CallCheck::is_letter(text)) {
    const MutexLock lock(mutex_);
    if (communicator_ != nullptr) communicator_->hear_call(from, text);
  } else if (const auto question = decode_question(text, ranks_)) {
    const MutexLock lock(mutex_);
    if (communicator_ != nullptr) mesh_->send_letter(from, encode(communicator_->answer(*question)));
  } else if (const auto answer = decode_answer(text, ranks_)) {
    if (const auto next = inquiry_.answered(from, *answer, monotonic_clock().now_ns())) post(*next);
  }
}

}  // namespace trestle
