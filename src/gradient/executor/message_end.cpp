#include "gradient/executor/message_end.h"

namespace trestle {

Result<MessageEnd> MessageEnd::make(trestleComm_t comm, std::shared_ptr<Bell> bell) {
  MessageEnd end;
  end.comm_ = comm;
  TRY(core_status(trestleEventCreate(end.event_.out()), comm));
  end.notice_ = std::make_unique<Notice>();
  end.notice_->comm = comm;
  end.notice_->bell = std::move(bell);
  return end;
}

void MessageEnd::tell(void* context, trestleResult_t result) {
  Notice& notice = *static_cast<Notice*>(context);
  const std::shared_ptr<Bell> bell = notice.bell;  // the notice may be gone as soon as its result is there
  // Asked here, because the program may end the failed communicator soon.
  if (result != trestleSuccess) notice.sentence = trestleGetLastError(notice.comm);
  notice.result.store(result, std::memory_order_release);
  bell->ring();
}

Status MessageEnd::mark(trestleStream_t stream) {
  TRY(core_status(trestleEventRecord(event_.get(), stream), comm_));
  notice_->result.store(kPending, std::memory_order_relaxed);
  return core_status(trestleEventNotify(event_.get(), tell, notice_.get()), comm_);
}

std::optional<Status> MessageEnd::poll() {
  const int result = notice_->result.load(std::memory_order_acquire);
  if (result == kPending) return std::nullopt;
  if (result == trestleSuccess) return Status();
  return core_failure(static_cast<trestleResult_t>(result), std::exchange(notice_->sentence, {}));
}

}  // namespace trestle
