// The memory behind trestleMemAlloc: segments that peers on the same host can map, and the registry that tells whether
// a buffer lies in one.
//
// One registry per process, because an allocation belongs to no communicator. Any thread. The registry never forgets an
// allocation by itself: mem_free does. A forked child shares the memory with its parent, as ordinary memory: its own
// registry is empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "transport/shm/mem_index.h"

namespace trestle {

// At least `bytes` zeroed bytes, aligned to pages (to 2 MiB from 2 MiB on, in huge pages where the system has them).
// kInvalidArgument for 0 bytes; kSystemError with the size and the memory limit where there is not enough.
Result<void*> mem_alloc(size_t bytes);

// Exactly what mem_alloc returned, and once: anything else is kInvalidArgument, and nothing happens. Null is fine. What
// was allocated before a fork is kInvalidUsage in the child.
// The caller has made sure that no operation uses the memory any more; peers drop their mappings at their next
// progress.
Status mem_free(void* pointer);

// Where [pointer, pointer + bytes) lies, if it lies in one allocation. Takes no lock: for the path of every message.
MemPlace mem_find(const void* pointer, size_t bytes);

// kInvalidArgument when it is gone.
Result<MemShare> mem_share(uint64_t id);

// A number that no allocation has, and never will: for other memory that peers may map.
uint64_t mem_new_id();
// Whether any of [pointer, pointer + bytes) is in an allocation.
bool mem_overlaps(const void* pointer, size_t bytes);

// Of all allocations that there are now, as rounded up.
uint64_t mem_bytes();

// Counts calls of mem_free that freed something. When it has moved, ask mem_alive for what is cached.
uint64_t mem_frees();
bool mem_alive(uint64_t id);

}  // namespace trestle
