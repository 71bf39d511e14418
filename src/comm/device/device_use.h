// DeviceUse: what the communicators of a process that use one device share.
//
// A driver may let a thread that frees, closes or unpins memory wait for all work of the device. A stream that is held
// until a collective of another communicator ends is part of that work. Meanwhile the driver may let no other thread
// submit what that collective needs, so both would wait for ever. So nothing goes back to the driver while any
// communicator uses the device: memory that one has done with is kept for others. The last one gives all of it back.
//
// Each communicator has a pointer to it; the device outlives it. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/device/process_memory.h"
#include "device/device.h"

namespace trestle {

class DeviceUse {
 public:
  explicit DeviceUse(Device& device) : device_(device) {}
  DeviceUse(const DeviceUse&) = delete;
  DeviceUse& operator=(const DeviceUse&) = delete;
  ~DeviceUse();  // slow

  struct Block {
    std::byte* memory = nullptr;
    uint64_t bytes = 0;
  };
  using Blocks = std::list<Block>;
  // One of at least `bytes` > 0 bytes of memory of the device, or pinned: kept, or from the driver. Slow. Errors: the
  // driver's.
  Result<Blocks> take(SharedPlace place, uint64_t bytes);
  // Takes no memory.
  void keep(SharedPlace place, Blocks&& blocks);

  // As OpenedMemory::open(). Memory by a ticket is opened once, however many communicators use it. Memory by a
  // descriptor is closed with the last pointer to it: while it is open, its owner cannot free it, and CUDA does not say
  // that unmapping waits for work (perf/device/stream_hold looks whether it does).
  Result<std::shared_ptr<const OpenedMemory>> open(SharedPlace place, const MemoryAddress& address,
                                                   const UniqueFd& descriptor);

 private:
  bool take_kept(SharedPlace place, uint64_t bytes, bool of_any_length, Blocks& taken);
  Blocks& kept(SharedPlace place) TRESTLE_REQUIRES(mutex_) {
    return place == SharedPlace::kDevice ? kept_ : kept_pinned_;
  }

  Device& device_;
  Mutex mutex_;  // never held while the driver is called
  Blocks kept_ TRESTLE_GUARDED_BY(mutex_);
  Blocks kept_pinned_ TRESTLE_GUARDED_BY(mutex_);
  std::map<uint64_t, std::shared_ptr<const OpenedMemory>> opened_
      TRESTLE_GUARDED_BY(mutex_);  // by MemoryAddress::nonce
};

// The shortest block that is long enough; end(): none. of_any_length: also one that is much too long.
DeviceUse::Blocks::iterator best_fit(DeviceUse::Blocks& blocks, uint64_t bytes, bool of_any_length = false);

}  // namespace trestle
