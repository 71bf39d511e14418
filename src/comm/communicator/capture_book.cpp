#include "comm/communicator/capture_book.h"

#include <utility>

#include "comm/communicator/communicator.h"

namespace trestle {

CaptureBook::CaptureBook(Communicator& communicator)
    : name_(communicator.membership().own_name() + " of communicator " + communicator.membership().name()),
      communicator_(&communicator) {}

uint64_t CaptureBook::add(CapturedCall call) {
  const MutexLock lock(mutex_);
  calls_.emplace(next_, std::move(call));
  return next_++;
}

void CaptureBook::remove(uint64_t id) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(id);
  if (found == calls_.end()) return;
  if (communicator_ != nullptr) communicator_->calls().forget_capture(found->second.call, found->second.number);
  calls_.erase(found);
}

Operation* CaptureBook::commit(uint64_t id, uint64_t replay, Stream& stream) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(id);
  if (found == calls_.end() || communicator_ == nullptr || !communicator_->check_open().ok()) return nullptr;
  const CapturedCall& captured = found->second;
  return communicator_->calls().commit(captured.call, captured.prepared, stream,
                                       replay_number(captured.number, replay));
}

void CaptureBook::committed() {
  const MutexLock lock(mutex_);
  if (communicator_ != nullptr) communicator_->calls().committed();
}

void CaptureBook::fail(uint64_t id, uint64_t replay, const Error& error) {
  const MutexLock lock(mutex_);
  const auto found = calls_.find(id);
  if (found == calls_.end() || communicator_ == nullptr) return;
  const CapturedCall& captured = found->second;
  const char* const kind = captured.call.request.peer < 0 ? "operation" : "message";
  const std::string call = numbered(kind, replay_number(captured.number, replay));
  communicator_->engine().fail(
      {error.code, name_ + ": " + error.message + "; " + call + " (" + to_string(*captured.prepared.prepared) + ")"});
}

std::string CaptureBook::why_closed() {
  const MutexLock lock(mutex_);
  if (communicator_ == nullptr) return name_ + ": the communicator has ended";
  const Status open = communicator_->check_open();
  return open.ok() ? "" : name_ + ": " + open.error().message;
}

void CaptureBook::close() {
  const MutexLock lock(mutex_);
  communicator_ = nullptr;
}

void CaptureBook::clear() {
  const MutexLock lock(mutex_);
  communicator_ = nullptr;
  calls_.clear();
}

}  // namespace trestle
