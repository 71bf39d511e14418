// ProgressLock: gives one thread at a time the right to drive a rank's engine. Threads that drive only try it: one that
// does not get it has other things to do. Its holders never wait for anything, with one exception.
//
// The exception is work that may take any time: a user's reduction function, transports that linger when they close,
// and a work queue that ends its last work. While it runs, the holder lends the lock (Loan). The engine stands still,
// and other threads may look at it and change it (PatientLock), one after the other, but none can drive it. So this
// rank can always answer questions about itself.
//
// Owned by the Engine; any thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/thread_annotations.h"

namespace trestle {

class TRESTLE_CAPABILITY("progress lock") ProgressLock {
 public:
  bool try_lock() TRESTLE_TRY_ACQUIRE(true) {
    State free = State::kFree;
    return state_.compare_exchange_strong(free, State::kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() TRESTLE_RELEASE() { state_.store(State::kFree, std::memory_order_release); }
  // Only reads, so it never takes the cache line from the holder.
  bool looks_held() const { return state_.load(std::memory_order_relaxed) != State::kFree; }
  // Whether a PatientLock would get it as soon as other borrowers are done.
  bool looks_lent() const {
    const State state = state_.load(std::memory_order_relaxed);
    return state == State::kLent || state == State::kBorrowed;
  }

  // Made by the holder, which touches nothing that the lock guards until the Loan ends.
  class Loan {
   public:
    explicit Loan(ProgressLock& lock) : lock_(lock) { lock_.state_.store(State::kLent, std::memory_order_release); }
    ~Loan() {
      for (State lent = State::kLent; !lock_.pass(lent, State::kHeld); lent = State::kLent) ::sched_yield();
    }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;

   private:
    ProgressLock& lock_;
  };

 private:
  friend class PatientLock;
  enum class State : uint8_t { kFree, kHeld, kLent, kBorrowed };
  bool pass(State& from, State to) {
    return state_.compare_exchange_strong(from, to, std::memory_order_acquire, std::memory_order_relaxed);
  }

  std::atomic<State> state_{State::kFree};
};

// Holds the lock for as long as it lives, or borrows it. For callers that must get it: the wait is short, because
// holders never wait for anything. The thread must not drive the engine, since it may have only borrowed the lock.
class TRESTLE_SCOPED_CAPABILITY PatientLock {
 public:
  explicit PatientLock(ProgressLock& lock) TRESTLE_ACQUIRE(lock) TRESTLE_NO_THREAD_SAFETY_ANALYSIS : lock_(lock) {
    while (!lock.try_lock()) {
      ProgressLock::State lent = ProgressLock::State::kLent;
      borrowed_ = lock.pass(lent, ProgressLock::State::kBorrowed);
      if (borrowed_) return;
      ::sched_yield();
    }
  }
  ~PatientLock() TRESTLE_RELEASE() TRESTLE_NO_THREAD_SAFETY_ANALYSIS {
    if (borrowed_) {
      lock_.state_.store(ProgressLock::State::kLent, std::memory_order_release);
    } else {
      lock_.unlock();
    }
  }
  PatientLock(const PatientLock&) = delete;
  PatientLock& operator=(const PatientLock&) = delete;

 private:
  ProgressLock& lock_;
  bool borrowed_ = false;
};

}  // namespace trestle
