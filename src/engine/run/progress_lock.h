// ProgressLock: who drives a rank's engine at this moment. Only ever tried: a thread that does not get it has other
// things to do, and its holders never wait for anything, with one exception.
//
// The exception is what may take any time: a user's reduction function, and transports that linger at their end. For as
// long as one runs its caller lends the lock (Loan): the engine stands still, and others may look at it and change it
// (PatientLock), one after the other, but nobody can drive it. So what this rank has to tell about itself never waits.
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
  // Costs no write to its cache line.
  bool looks_held() const { return state_.load(std::memory_order_relaxed) != State::kFree; }
  // A PatientLock gets it as soon as other borrowers are done.
  bool looks_lent() const {
    const State state = state_.load(std::memory_order_relaxed);
    return state == State::kLent || state == State::kBorrowed;
  }

  // By the holder, who touches nothing that the lock guards until the Loan ends.
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

// Holds it for as long as it lives, or borrows it, for those who may not be put off: its holders never wait for
// anything. Who may have borrowed it must not drive the engine.
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
