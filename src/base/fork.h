// What fork() means for this code: a process and its forked child share nothing but the memory of the past.
//
// The generation of a process counts the forks between it and the process that loaded the library. Handles, descriptors
// and process-wide objects remember the generation that they were made in, and a forked child does not use inherited
// ones. So nothing is repaired after a fork: inherited objects stay as they are, half changed if a thread of the parent
// was changing them, and their destructors never run in the child.
//
// Only processes that have called watch_forks() count; the library does when it is loaded. Programs that link its parts
// (the command, unit tests) may fork freely.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>
#include <utility>

namespace trestle {

namespace fork_internal {
extern std::atomic<uint32_t> generation;
}  // namespace fork_internal

// One relaxed load. Any thread.
inline uint32_t process_generation() {
  return fork_internal::generation.load(std::memory_order_relaxed);
}

// From now on fork() begins a generation, and closes in the child all descriptors that a UniqueFd owns. vfork(),
// posix_spawn(), _Fork() and clone() do neither: their children must exec or _exit. False: out of memory.
bool watch_forks();

// While one exists, fork() on another thread waits for its end, at most a second. So a child sees the enclosed work
// either done or not begun. For a few system calls that do not block; never nested. Any thread.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

// An object of which each process has one, made at its first use and never destroyed. A forked child makes its own. Any
// thread. For static storage: it needs no constructor to run.
template <class T>
class PerProcess {
 public:
  constexpr PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;

  T& get() {
    return get([] { return T(); });
  }
  // Calls make() once per process, while other threads wait. make() must not get() the same object.
  template <class F>
  T& get(F&& make) {
    One* one = current_one();
    return one != nullptr ? one->value : make_one(std::forward<F>(make));
  }
  // nullptr: this process has not made one.
  T* current() {
    One* one = current_one();
    return one != nullptr ? &one->value : nullptr;
  }
  // The object that this process has inherited, in whatever state; nullptr: none. Only for access that needs no lock.
  T* inherited() {
    for (One* one = newest_.load(std::memory_order_acquire); one != nullptr; one = one->older) {
      if (one->generation != process_generation()) return &one->value;
    }
    return nullptr;
  }

 private:
  struct One {
    template <class F>
    One(uint32_t of, One* before, F&& make) : generation(of), older(before), value(make()) {}
    const uint32_t generation;
    One* const older;  // made by the process that forked this one
    T value;
  };

  // Records which process is making an object: one that a thread of the parent has begun does not count in the child.
  class Turn {
   public:
    explicit Turn(std::atomic<uint64_t>& maker) : maker_(maker) {
      const uint64_t mine = uint64_t{process_generation()} + 1;
      uint64_t found = maker_.load(std::memory_order_acquire);
      while (found == mine || !maker_.compare_exchange_weak(found, mine, std::memory_order_acq_rel)) {
        if (found == mine) ::sched_yield();
        found = maker_.load(std::memory_order_acquire);
      }
    }
    ~Turn() { maker_.store(0, std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::atomic<uint64_t>& maker_;
  };

  One* current_one() const {
    One* one = newest_.load(std::memory_order_acquire);
    return one != nullptr && one->generation == process_generation() ? one : nullptr;
  }
  template <class F>
  T& make_one(F&& make) {
    const Turn turn(maker_);
    One* one = current_one();  // another thread may have been first
    if (one == nullptr) {
      one = new One(process_generation(), newest_.load(std::memory_order_acquire), std::forward<F>(make));
      newest_.store(one, std::memory_order_release);
    }
    return one->value;
  }

  std::atomic<One*> newest_{nullptr};
  std::atomic<uint64_t> maker_{0};  // the maker's generation + 1; 0: nothing is being made
};

}  // namespace trestle
