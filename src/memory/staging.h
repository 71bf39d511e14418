// StagingPool: ordinary host memory for partial results. Operations of one engine borrow from it while they run. For
// memory of a device and pinned memory, see memory/claims.h.
//
// Owned by the engine. Any thread. Allocating and freeing large blocks may take long, so neither happens under the
// progress lock: reserve() allocates ahead, when a call is issued, and take() and give_back() only note what is missing
// and what is no longer needed. The thread that drives sees to it in chores(), when it has released the lock. So an
// operation that finds every block lent begins a round later. It never waits for another operation, since two ranks
// may start the same two operations in opposite order.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counter.h"
#include "base/mutex.h"
#include "memory/region.h"

namespace trestle {

class StagingPool;

// A borrowed block, or none; goes back to its pool in the end. One thread at a time; must not outlive the pool.
class Staging {
 public:
  Staging() = default;
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&& other) noexcept;
  ~Staging() { give_back(); }
  void give_back();
  explicit operator bool() const { return pool_ != nullptr; }
  // Aligned to a cache line; its contents are whatever the last operation left.
  const Region& region() const { return region_; }

 private:
  friend class StagingPool;
  Staging(StagingPool& pool, const Region& region) : pool_(&pool), region_(region) {}
  StagingPool* pool_ = nullptr;
  Region region_;
};

class StagingPool {
 public:
  // Counts its blocks in `meter`, which outlives it.
  explicit StagingPool(ByteMeter& meter) : meter_(meter) {}
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;
  ~StagingPool();

  // For threads that do not hold the progress lock. Makes sure that there are `blocks` blocks of at least `bytes`, free
  // or lent. An operation that needs one is about to be queued, possibly behind the one that has it. False: there is no
  // memory for them.
  bool reserve(uint64_t bytes, size_t blocks = 1);
  // Lends the smallest free block of at least `bytes` > 0. If there is none, lends none, and chores() will make one:
  // take again after that. Neither this nor the end of a loan allocates or frees memory.
  Staging take(uint64_t bytes);
  // Whether chores() has something to do. Takes no lock.
  bool has_chores() const { return has_chores_.load(std::memory_order_acquire); }
  // For threads that do not hold the progress lock. Allocates what take() has missed, unless another thread does, and
  // frees what is no longer needed. kProvided: a block that take() has missed is there now.
  enum class Chores { kNothing, kProvided, kNoMemory };
  Chores chores();

 private:
  friend class Staging;
  struct Free {
    void operator()(std::byte* data) const;
  };
  using Memory = std::unique_ptr<std::byte, Free>;
  struct Block {
    Memory memory;
    uint64_t bytes = 0;
    bool lent = false;
    bool dropped = false;  // chores() frees it
  };
  class Making;
  static Memory allocate(uint64_t bytes);
  size_t count(uint64_t bytes);
  void add(Memory memory, uint64_t bytes) TRESTLE_REQUIRES(mutex_);
  Block* smallest_free(uint64_t bytes) TRESTLE_REQUIRES(mutex_);
  void give(const std::byte* data);
  void trim() TRESTLE_REQUIRES(mutex_);
  uint64_t begin_chores(bool& there);
  void free_dropped();

  ByteMeter& meter_;
  Mutex mutex_;
  std::vector<Block> blocks_ TRESTLE_GUARDED_BY(mutex_);
  size_t lent_ TRESTLE_GUARDED_BY(mutex_) = 0;
  size_t dropped_ TRESTLE_GUARDED_BY(mutex_) = 0;
  size_t most_lent_ TRESTLE_GUARDED_BY(mutex_) = 1;  // or missed, at the same time, so far: as many blocks are kept
  uint64_t missed_bytes_ TRESTLE_GUARDED_BY(mutex_) = 0;  // 0: nothing was missed
  bool making_ TRESTLE_GUARDED_BY(mutex_) = false;        // a thread allocates what was missed
  std::atomic<bool> has_chores_{false};
};

}  // namespace trestle
