// DeviceMemory: a source of memory of one device, or of host memory that the device reads and writes at full speed, at
// the same addresses. Threads: memory/memory_source.h.
//
// What is freed is kept for the next request of the engine, and goes to others (DeviceUse) when the source ends.
#pragma once

#include <memory>
#include <utility>

#include "base/mutex.h"
#include "comm/device/device_use.h"
#include "memory/memory_source.h"

namespace trestle {

class DeviceMemory final : public MemorySource {
 public:
  DeviceMemory(std::shared_ptr<DeviceUse> use, SharedPlace place) : use_(std::move(use)), place_(place) {}
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  ~DeviceMemory() override;
  std::byte* allocate(uint64_t bytes) override;
  void free(std::byte* memory) override;

 private:
  const std::shared_ptr<DeviceUse> use_;
  const SharedPlace place_;
  Mutex mutex_;  // never held while the driver is called
  DeviceUse::Blocks given_ TRESTLE_GUARDED_BY(mutex_);
  DeviceUse::Blocks kept_ TRESTLE_GUARDED_BY(mutex_);  // they wait for requests that they fit
};

}  // namespace trestle
