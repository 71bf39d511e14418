// MessageEnd: tells when what was put on a stream is complete, and how it ended.
//
// Used by the executor's thread. The library tells it on a thread of its own.
#pragma once

#include <memory>
#include <optional>

#include "gradient/executor/bell.h"
#include "gradient/executor/core_calls.h"

namespace trestle {

class MessageEnd {
 public:
  // The bell rings at each end. Error: there is no event.
  static Result<MessageEnd> make(trestleComm_t comm, std::shared_ptr<Bell> bell);
  // Behind everything that is on the stream. Not again before poll() has told its end.
  Status mark(trestleStream_t stream);
  // How it ended, once. The memory of the message is in use until then, whatever happens.
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
