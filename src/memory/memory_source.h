// MemorySource: gives memory of one kind, such as memory of a device, or host memory that a device may read and write.
//
// Owned by the engine, whose claims come from it (memory/claims.h). Any thread; never one that holds the progress lock
// or that drives. allocate() is called by threads that issue calls, and may wait for work of the device, and so for
// operations that were issued before. free() is called when the engine ends.
#pragma once

#include <cstddef>
#include <cstdint>

namespace trestle {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  // At least `bytes` > 0 bytes, aligned to 64. nullptr: there are none.
  virtual std::byte* allocate(uint64_t bytes) = 0;
  virtual void free(std::byte* memory) = 0;
};

}  // namespace trestle
