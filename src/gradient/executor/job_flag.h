// JobFlag: whether the executor's thread is at a job, for the thread that ends the executor after a failure.
//
// A job that has seen the failure ends at once, and one that has not may wait for messages that never come: only that
// one needs an end of its links. A job enters before it looks for a failure (StepBoard::failed_), so it sees it, or the
// ending thread sees the job. While the job has not found out, the ending thread waits for that, which takes the job
// one look at the board.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace trestle {

class JobFlag {
 public:
  // ---- the executor's thread: enter(), then begin() if there is no failure, then leave().
  void enter() { state_.store(State::kEntered, std::memory_order_seq_cst); }
  void begin() { state_.store(State::kAtWork, std::memory_order_release); }
  void leave() { state_.store(State::kNone, std::memory_order_release); }

  // ---- the ending thread, once the failure is stored: whether a job runs that has not seen it.
  bool is_at_work() const {
    State state = state_.load(std::memory_order_seq_cst);
    for (; state == State::kEntered; state = state_.load(std::memory_order_acquire)) ::sched_yield();
    return state == State::kAtWork;
  }

 private:
  enum class State : uint8_t { kNone, kEntered, kAtWork };
  std::atomic<State> state_{State::kNone};
};

}  // namespace trestle
