// MessageEnd: tells when what was put on a stream is complete, and how it ended.
//
// Used by the executor's thread. The library reports the end on a thread of its own.
#pragma once

#include <memory>
#include <optional>

#include "gradient/executor/bell.h"
#include "gradient/executor/core_calls.h"

namespace trestle {

class MessageEnd {
 public:
  // The bell rings at each end. Error: no event can be made.
  static Result<MessageEnd> make(trestleComm_t comm, std::shared_ptr<Bell> bell);
  // Marks the end of everything that is on the stream now. Not again before poll() has returned the result.
  Status mark(trestleStream_t stream);
  // How everything up to the mark ended, once; nothing: it has not ended. Until then the message's memory is in use,
  // also after a failure.
  std::optional<Status> poll();

 private:
  static constexpr int kPending = -1;
  struct Notice {
    std::atomic<int> result{kPending};
    std::string sentence;  // of a failure; written before the result
    trestleComm_t comm = nullptr;
    std::shared_ptr<Bell> bell;
  };
  MessageEnd() = default;
  static void tell(void* notice, trestleResult_t result);

  trestleComm_t comm_ = nullptr;
  CoreEvent event_;
  std::unique_ptr<Notice> notice_;
};

}  // namespace trestle
