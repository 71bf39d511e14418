// MemRegistrations: memory that the user mapped from memfds and that this communicator's peers may map, too.
//
// Shared by a communicator and its transports. Any thread; find() takes no lock. Each registration holds a descriptor
// of its own, so peers and this rank never lose the memory, whatever the user closes or unmaps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/counter.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "memory/mapping.h"
#include "memory/mem_index.h"

namespace trestle {

class MemRegistrations {
 public:
  // [begin, begin + bytes) must be one shared, writable mapping of a memfd, which this seals against shrinking. Returns
  // an id that is never reused in this process. kInvalidArgument or kInvalidUsage says what the memory is instead, and
  // what to do.
  Result<uint64_t> add(const void* begin, size_t bytes);
  // The caller makes sure that no operation uses the memory. kInvalidArgument: there is no such registration.
  Status remove(uint64_t id);
  void clear();

  MemPlace find(const void* pointer, size_t bytes) const { return index_.find(pointer, bytes); }
  bool alive(uint64_t id);
  Result<MemShare> share(uint64_t id);
  // The number of removals. When it has changed, check cached ids with alive().
  uint64_t removals() const { return removals_.load(std::memory_order_acquire); }
  uint64_t bytes() const { return meter_.now(); }

  // Call before an operation on [begin, begin + bytes). A registration there may have been unmapped without a
  // deregistration, so that other memory may lie at its addresses now. find() then no longer finds it. What peers have
  // mapped stays until it is removed. Returns how many were dropped.
  int drop_unmapped(const void* begin, size_t bytes);

 private:
  struct Registration {
    uint64_t id = 0;
    uintptr_t begin = 0;
    uintptr_t end = 0;
    uint64_t offset = 0;  // of `begin` in the memfd
    dev_t device = 0;
    ino_t inode = 0;
    UniqueFd fd;
    size_t file_bytes = 0;
    bool dropped = false;
  };
  Status check_free(uintptr_t begin, size_t bytes) TRESTLE_REQUIRES(mutex_);
  bool is_mapped(const Registration& registration) TRESTLE_REQUIRES(mutex_);
  template <class F>
  std::vector<MemIndex::Entry> entries_but(F&& gone) TRESTLE_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Registration> all_ TRESTLE_GUARDED_BY(mutex_);  // by address
  MappingReader mappings_ TRESTLE_GUARDED_BY(mutex_);
  MemIndex index_;  // replaced under the mutex, read without
  std::atomic<uint64_t> removals_{0};
  ByteMeter meter_;
};

}  // namespace trestle
