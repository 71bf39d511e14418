// DeviceMemory, PinnedMemory: the sources of memory of one device, over src/device. The device outlives them. Threads:
// memory/memory_source.h.
//
// The driver may let a caller that frees memory wait for all work of the device, and so for a stream that is held until
// a collective of this very engine ends. So what is freed is kept for the next request, and goes to the driver when the
// source ends.
#pragma once

#include <list>

#include "base/mutex.h"
#include "device/device.h"
#include "memory/memory_source.h"

namespace trestle {

class KeptMemory : public MemorySource {
 public:
  std::byte* allocate(uint64_t bytes) override;
  void free(std::byte* memory) override;

 protected:
  virtual Result<std::byte*> get(uint64_t bytes) = 0;
  virtual Status give_back(std::byte* memory) = 0;
  // For the destructors of derived classes: give_back() is theirs, so the base class cannot call it in its own.
  void end();

 private:
  struct Block {
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
    bool given = false;  // else it waits for a request that it fits
  };

  std::byte* take_kept(uint64_t bytes);

  Mutex mutex_;  // never held while the driver is called for more memory
  std::list<Block> blocks_ TRESTLE_GUARDED_BY(mutex_);
};

class DeviceMemory final : public KeptMemory {
 public:
  explicit DeviceMemory(Device& device) : device_(device) {}
  ~DeviceMemory() override { end(); }

 private:
  Result<std::byte*> get(uint64_t bytes) override { return device_.allocate(bytes); }
  Status give_back(std::byte* memory) override { return device_.free(memory); }
  Device& device_;
};

// Host memory that the device reads and writes at full speed, at the same addresses.
class PinnedMemory final : public KeptMemory {
 public:
  explicit PinnedMemory(Device& device) : device_(device) {}
  ~PinnedMemory() override { end(); }

 private:
  Result<std::byte*> get(uint64_t bytes) override { return device_.allocate_pinned(bytes); }
  Status give_back(std::byte* memory) override { return device_.free_pinned(memory); }
  Device& device_;
};

}  // namespace trestle
