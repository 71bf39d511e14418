// Bells: how a rank that has nothing to do until a peer writes into the memory that they share sleeps, and is woken.
//
// Every rank has a place in that memory: whom it awaits while it sleeps, and the name of its bell, a socket for
// datagrams. A rank that has written looks at one word that is 0 while nobody sleeps; it costs no fence (base/
// heavy_fence.h) and, as long as nobody goes to sleep, no cache miss. Only a rank that finds a sleeper makes a system
// call. A futex would be woken a little faster, but a waiter sleeps on the descriptors of its other transports and of
// its engine at the same time.
//
// The datagrams carry nothing: a stranger that sends some costs a look at the memory. Owned by the board, which also
// lays out the memory. prepare_sleep() and finish_sleep() are the owner's under its progress lock, as is wrote().
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/cpu/heavy_fence.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class Bells {
 public:
  // In `attention`: the system of a rank has no heavy fences, so every writer executes a fence of its own.
  static constexpr uint32_t kFences = 1u << 31;
  // In the memory that all ranks share; zeros at first.
  struct Shared {
    alignas(128) std::atomic<uint32_t> attention;  // sleepers, and kFences
  };
  struct Place {
    std::atomic<uint64_t> name;     // of the bell, its bytes, the first in the lowest; 0: not told yet
    std::atomic<uint32_t> awaited;  // awaited rank + 1, kAnything, or 0: awake
    uint32_t unused;
  };
  // To be awaited besides a rank: anything that any rank writes.
  static constexpr int32_t kAnything = -1;

  // Makes the own bell and tells its name. `places`: one per rank. The memory must outlive this object.
  static Result<Bells> open(Shared& shared, Place* places, int32_t rank, int32_t ranks);
  Bells() = default;  // rings nobody

  // Readable after a peer has rung.
  int event_fd() const { return socket_.get(); }
  // From now on this rank is rung when `awaited`, a rank or kAnything, has written. What was written before is for the
  // caller to look at once more, after this call and before it sleeps.
  void prepare_sleep(int32_t awaited);
  // Takes it back and forgets what has rung. Idempotent.
  void finish_sleep();

  // This rank has written what those that await it, or anything, wait for.
  void wrote() {
    light_fence();
    if (shared_ != nullptr && shared_->attention.load(std::memory_order_relaxed) != 0) ring(false);
  }
  // It has written what only those look at that await anything.
  void wrote_aside() {
    light_fence();
    if (shared_ != nullptr && shared_->attention.load(std::memory_order_relaxed) != 0) ring(true);
  }

 private:
  static constexpr uint32_t kAwaitsAnything = UINT32_MAX;
  void ring(bool only_for_anything);

  Shared* shared_ = nullptr;
  Place* places_ = nullptr;
  uint32_t rank_ = 0;
  uint32_t ranks_ = 0;
  bool sleeps_ = false;
  UniqueFd socket_;
};

}  // namespace trestle
