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

// OutboxStore: the outboxes of a device in one place. They are kept, and lent to one communicator after the other.
// Rooms that a failed communicator has not given back stay lent, because a peer may still read there. Memory of a
// device by a descriptor exists as long as a peer has it open, so an outbox there that has such rooms is freed.
// Elsewhere CUDA leaves open what happens to a reader of freed memory: an outbox with few such rooms is lent again, and
// one with many is left alone.
//
// Owned by its opened device, which is never destroyed. Any thread.
class OutboxStore {
 public:
  // 64 MiB of a device. 32 MiB in host memory, because fewer messages are under way there at once.
  static constexpr uint64_t bytes_of(SharedPlace place) {
    return uint64_t{place == SharedPlace::kDevice ? 64U : 32U} << 20;
  }

  struct Lent {
    std::shared_ptr<Outbox> outbox;  // the last pointer gives it back
    MemoryAddress address;           // without `probe`
    int descriptor = -1;             // by which peers open it, if so; the outbox has it
  };

  OutboxStore(Device& device, SharedPlace place) : device_(device), place_(place) {}
  // An outbox that nobody has, and of which most is free. by: as for allocate_shared(); kTicket for host memory. Slow.
  // Errors: the driver's; without memory, or where memory cannot be shared.
  Result<Lent> lend(SharedBy by);

 private:
  struct Kept {
    std::unique_ptr<Outbox> outbox;
    SharedMemory shared;  // on a device
    Segment segment;      // on the host
    uint64_t nonce = fresh_nonce();
    bool lent = false;
  };
  void free_damaged();
  Kept* take_free(SharedBy by);
  Result<Kept*> make(SharedBy by);
  Result<Region> make_on_device(Kept& kept, SharedBy by);
  Result<Region> make_on_host(Kept& kept);
  void take_back(Kept& kept);
  static MemoryAddress address_of(const Kept& kept);

  Device& device_;
  const SharedPlace place_;
  Mutex mutex_;  // never held while the driver is called
  std::list<Kept> kept_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
