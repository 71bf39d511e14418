// Bell: wakes a thread that waits for one of several things. Ringing a thread that is awake makes no system call. Any
// thread.
//
//   for (;;) { const uint32_t before = bell.count(); if (look()) break; bell.wait(before); }
#pragma once

#include <atomic>
#include <cstdint>

namespace trestle {

class Bell {
 public:
  uint32_t count() const { return count_.load(std::memory_order_seq_cst); }
  void ring() {
    count_.fetch_add(1, std::memory_order_seq_cst);
    count_.notify_all();
  }
  // Until it has rung since count() returned `before`.
  void wait(uint32_t before) const { count_.wait(before, std::memory_order_seq_cst); }

 private:
  std::atomic<uint32_t> count_{0};
};

}  // namespace trestle
