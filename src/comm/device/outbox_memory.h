// Outboxes (memory/outbox.h) of this process, which other processes open.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include "base/mutex.h"
#include "base/result.h"
#include "comm/device/process_memory.h"
#include "device/device.h"
#include "memory/outbox.h"
#include "memory/segment.h"

namespace trestle {

// OutboxStore: the outboxes of a device in one place. Other processes open them, and CUDA leaves open what happens to a
// reader when such memory is freed. So they stay to the end of the process, and are lent to one communicator after the
// other. Rooms that a failed communicator has not given back stay lent for ever: a peer may still read there.
//
// Owned by its opened device, which is never destroyed. Any thread.
class OutboxStore {
 public:
  // Of host memory less is under way.
  static constexpr uint64_t bytes_of(SharedPlace place) {
    return uint64_t{place == SharedPlace::kDevice ? 64U : 32U} << 20;
  }

  OutboxStore(Device& device, SharedPlace place) : device_(device), place_(place) {}
  // An outbox that nobody has, and of which most is free. It goes back when the last pointer to it ends. Slow. Errors:
  // the driver's; without memory, or where memory cannot be shared.
  Result<std::shared_ptr<Outbox>> lend();
  // Of one that is lent. Without `probe`.
  MemoryAddress address_of(const Outbox& outbox);

 private:
  struct Kept {
    std::unique_ptr<Outbox> outbox;
    MemoryTicket ticket;
    Segment segment;  // of host memory
    bool lent = false;
  };
  Kept* take_free();
  Result<Kept*> make();
  Result<Region> make_on_device(Kept& kept);
  Result<Region> make_on_host(Kept& kept);
  void take_back(Kept& kept);

  Device& device_;
  const SharedPlace place_;
  Mutex mutex_;  // never held while the driver is called
  std::list<Kept> kept_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
