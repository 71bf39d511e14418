// MemorySource: gives memory of one kind, such as memory of a device, or host memory that a device may read and write.
//
// Owned by the engine, whose staging comes from it. Any thread; never one that holds the progress lock.
//
// Both functions may be called while operations are under way, and while streams of the user wait for these operations.
// So an implementation must not wait for work of the device that such a stream holds back. Where the driver's own
// functions may do that, it keeps a reserve, or has a place in which new memory appears without them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>

namespace trestle {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // At least `bytes` > 0 bytes, aligned to 64. std::bad_alloc: there are none.
  virtual std::byte* allocate(uint64_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
};

// For sources without memory: says it as operator new does.
[[noreturn]] inline void source_is_empty() {
  throw std::bad_alloc();
}

}  // namespace trestle
