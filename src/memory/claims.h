// ClaimPool: memory of a device, or pinned memory, for the operations of one engine.
//
// A driver may take long to give such memory, and may first wait for work of the device: also for a stream that is held
// until an operation of this very engine ends. So an operation has all that it needs, its claims, before it is
// queued, and nothing is allocated while it runs.
//
// Calls of one lane never run at the same time, so their claims share blocks: a program that issues a thousand calls
// ahead on one stream holds the memory of the call that needs most. Blocks that no claim has any more are kept for
// later claims until the pool ends. Sizes are rounded up, so that different operations can use the same blocks.
//
// Owned by the engine; its source and its meter outlive it, and it outlives its claims. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/counter.h"
#include "base/mutex.h"
#include "memory/memory_source.h"
#include "memory/region.h"

namespace trestle {

// Calls that run one after the other: those of one stream. Calls that a group puts on a stream together run at the same
// time, so each of these has a number of its own.
struct Lane {
  std::weak_ptr<const void> stream;
  size_t number = 0;
};

class ClaimPool;

// The blocks of one call. Only calls of its lane share them. A claim may end on any thread, also under the progress
// lock: its end allocates nothing and asks no driver.
class Claim {
 public:
  ~Claim();
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  size_t blocks() const { return blocks_.size(); }
  // Aligned to a cache line; its contents are whatever the last operation left. Stays where it is until the pool ends.
  const Region& block(size_t i) const { return *blocks_[i]; }

 private:
  friend class ClaimPool;
  explicit Claim(ClaimPool& pool) : pool_(pool) {}
  ClaimPool& pool_;
  std::vector<const Region*> blocks_;
};

class ClaimPool {
 public:
  // Counts its blocks in `meter`. device: where the memory is, as in Region.
  ClaimPool(ByteMeter& meter, MemorySource& source, int32_t device) : meter_(meter), source_(source), device_(device) {}
  ClaimPool(const ClaimPool&) = delete;
  ClaimPool& operator=(const ClaimPool&) = delete;
  ~ClaimPool();

  // `count` blocks of at least `bytes` > 0 each; nullptr: the source has no memory. For threads that do not hold the
  // progress lock, before the call's stream is held.
  std::shared_ptr<const Claim> claim(const Lane& lane, uint64_t bytes, size_t count = 1);

 private:
  friend class Claim;
  struct Free {
    MemorySource* source;
    void operator()(std::byte* memory) const { source->free(memory); }
  };
  struct Block {
    std::unique_ptr<std::byte, Free> memory;
    Region region;
    size_t claims = 0;  // that have it
    Lane lane;          // of these
  };

  void add_present(Claim& claim, const Lane& lane, uint64_t bytes, size_t count);
  Block* best_present(const Claim& claim, const Lane& lane, uint64_t bytes) TRESTLE_REQUIRES(mutex_);
  bool add_new(Claim& claim, const Lane& lane, uint64_t bytes);
  void end(const Claim& claim);

  ByteMeter& meter_;
  MemorySource& source_;
  const int32_t device_;
  Mutex mutex_;  // never held while the source is asked
  std::list<Block> blocks_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
