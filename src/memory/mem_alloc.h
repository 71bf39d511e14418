// The memory behind trestleMemAlloc: segments that peers on the same host can map, and the registry that tells whether
// a buffer lies in one.
//
// One registry per process, because an allocation belongs to no communicator. Any thread. Only mem_free removes an
// allocation from the registry. A forked child shares the memory with its parent and uses it as ordinary memory: its
// own registry is empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "memory/mem_index.h"

namespace trestle {

// At least `bytes` zeroed bytes, aligned to pages. From 2 MiB on, aligned to 2 MiB and in huge pages where the system
// has them. kInvalidArgument for 0 bytes. kSystemError, with the size and the memory limit, if there is not enough.
Result<void*> mem_alloc(size_t bytes);

// Takes exactly a pointer that mem_alloc returned, once. Anything else is kInvalidArgument and has no effect. Null is
// fine. Memory allocated before a fork is kInvalidUsage in the child. The caller makes sure that no operation uses the
// memory any more. Peers drop their mappings at their next progress.
Status mem_free(void* pointer);

// Where [pointer, pointer + bytes) lies, if it lies in one allocation. Takes no lock: it is on the path of every
// call.
MemPlace mem_find(const void* pointer, size_t bytes);

// kInvalidArgument when the allocation is gone.
Result<MemShare> mem_share(uint64_t id);

// A number that no allocation has or will have: for other memory that peers may map.
uint64_t mem_new_id();
// Whether any of [pointer, pointer + bytes) is in an allocation.
bool mem_overlaps(const void* pointer, size_t bytes);

// Bytes of all present allocations, as rounded up.
uint64_t mem_bytes();

// The number of mem_free calls that freed something. When it has changed, check cached ids with mem_alive.
uint64_t mem_frees();
bool mem_alive(uint64_t id);

}  // namespace trestle
