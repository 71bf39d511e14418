// StagingPool: host memory for partial results. Operations of one engine borrow from it while they run.
//
// Owned by the engine. Any thread; reserve() is for threads that do not hold the progress lock. Allocating may take
// long, so it happens there whenever it can. An operation that finds every block lent allocates in take(): it must not
// wait for another operation, since two ranks may start the same two operations in opposite order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/counter.h"
#include "base/mutex.h"
#include "memory/region.h"

namespace trestle {

class StagingPool;

// A borrowed block; goes back to its pool in the end. One thread at a time; must not outlive the pool.
class Staging {
 public:
  Staging() = default;
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&& other) noexcept;
  ~Staging() { give_back(); }
  void give_back();
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

  // Makes sure that there is a block of at least `bytes`, free or lent. An operation that needs that much is about to
  // be queued, possibly behind the one that has it. std::bad_alloc: nothing changed.
  void reserve(uint64_t bytes);
  // Lends the smallest free block of at least `bytes` > 0. If there is none, allocates one. std::bad_alloc.
  Staging take(uint64_t bytes);

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
  };
  static Memory allocate(uint64_t bytes);
  bool has(uint64_t bytes);
  Block& add(Memory memory, uint64_t bytes) TRESTLE_REQUIRES(mutex_);
  Block* smallest_free(uint64_t bytes) TRESTLE_REQUIRES(mutex_);
  void give(const std::byte* data);
  Memory trim() TRESTLE_REQUIRES(mutex_);

  ByteMeter& meter_;
  Mutex mutex_;
  std::vector<Block> blocks_ TRESTLE_GUARDED_BY(mutex_);
  size_t lent_ TRESTLE_GUARDED_BY(mutex_) = 0;
  size_t most_lent_ TRESTLE_GUARDED_BY(mutex_) = 1;  // at the same time, so far: as many blocks are kept
};

}  // namespace trestle
