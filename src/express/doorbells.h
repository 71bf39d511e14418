// Doorbells: how an idle rank sleeps until a peer writes into the memory that they share.
//
// Every rank has a place in that memory: which rank it awaits while it sleeps, and the name of its bell, a datagram
// socket. A rank that has written looks at one word that is 0 while no rank sleeps. That costs no fence
// (base/cpu/heavy_fence.h) and, as long as no rank goes to sleep, no cache miss. Only a rank that finds a sleeper makes
// a system call. A futex would wake a little faster, but a waiter also sleeps on the descriptors of its other
// transports and of its engine.
//
// The datagrams are empty: one from a stranger only costs a look at the memory. Owned by the board, which also lays out
// the memory. The owner calls prepare_sleep(), finish_sleep() and wrote() under its progress lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/cpu/heavy_fence.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace trestle {

class Doorbells {
 public:
  // In `attention`: the system of some rank has no heavy fences, so every writer executes a fence of its own.
  static constexpr uint32_t kFences = 1u << 31;
  // In the memory that all ranks share; zero at first.
  struct Shared {
    alignas(128) std::atomic<uint32_t> attention;  // number of sleepers, and kFences
  };
  struct Place {
    // The name of the bell: its bytes, the first in the lowest; 0: not published yet.
    std::atomic<uint64_t> name;
    std::atomic<uint32_t> awaited;  // awaited rank + 1, kAwaitsAnything, or 0: awake
    uint32_t unused;
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint64_t>::is_always_lock_free);
  // May be awaited instead of a rank: anything that any rank writes.
  static constexpr int32_t kAnything = -1;

  // Makes this rank's bell and publishes its name. `places`: one per rank. The memory must outlive this object.
  static Result<Doorbells> open(Shared& shared, Place* places, int32_t rank, int32_t ranks);
  Doorbells() = default;  // rings no rank

  // Readable after a peer has rung.
  int event_fd() const { return socket_.get(); }
  // From now on a write of `awaited` (a rank or kAnything) rings this rank. After this call and before it sleeps, the
  // caller must look once more for earlier writes.
  void prepare_sleep(int32_t awaited);
  // Undoes prepare_sleep() and drops rings that have arrived, also those for an earlier sleep. Must follow every sleep
  // on event_fd(), whether prepare_sleep() came before it or not.
  void finish_sleep();

  // This rank has written data for the ranks that await it, or anything.
  void wrote() {
    light_fence();
    if (shared_ != nullptr && shared_->attention.load(std::memory_order_relaxed) != 0) ring(false);
  }
  // This rank has written data that only ranks that await anything look at.
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
