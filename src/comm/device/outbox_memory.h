// Outboxes (memory/outbox.h) of this process, and what it has opened of other processes.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "base/result.h"
#include "device/device.h"
#include "memory/outbox.h"
#include "memory/segment.h"

namespace trestle {

// Where an outbox lies: in memory of the device, or in host memory that devices read as well.
enum class OutboxPlace : uint8_t { kDevice, kHost };

// What other processes need to open an outbox. Plain bytes when it travels.
struct OutboxAddress {
  MemoryTicket ticket;  // host memory: this process and its descriptor
  uint64_t id = 0;      // Region::share
  uint64_t bytes = 0;
  uint64_t probe = 0;  // where the rank has written what its peers are to read (comm/device/peer_probe.h)
};
std::string encode(const OutboxAddress& address);
// kRemoteError: it is no such address.
Result<OutboxAddress> decode_outbox_address(const std::string& text);

// OutboxStore: the outboxes of a device in one place. Other processes open them, and CUDA leaves open what happens to a
// reader when such memory is freed. So they stay to the end of the process, and are lent to one communicator after the
// other. Rooms that a failed communicator has not given back stay lent for ever: a peer may still read there.
//
// Owned by its opened device, which is never destroyed. Any thread.
class OutboxStore {
 public:
  // Of host memory less is under way.
  static constexpr uint64_t bytes_of(OutboxPlace place) {
    return uint64_t{place == OutboxPlace::kDevice ? 64U : 32U} << 20;
  }

  OutboxStore(Device& device, OutboxPlace place) : device_(device), place_(place) {}
  // An outbox that nobody has, and of which most is free. It goes back when the last pointer to it ends. Slow. Errors:
  // the driver's; without memory, or where memory cannot be shared.
  Result<std::shared_ptr<Outbox>> lend();
  // Of one that is lent. Without `probe`.
  OutboxAddress address_of(const Outbox& outbox);

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
  const OutboxPlace place_;
  Mutex mutex_;  // never held while the driver is called
  std::list<Kept> kept_ TRESTLE_GUARDED_BY(mutex_);
};

// The outbox of a rank in another process, as a device of this process reads it. Immutable; any thread.
class OpenedOutbox {
 public:
  // Slow. Errors: the driver's, such as that of devices without a path to each other; kRemoteError: the memory is
  // shorter than the peer says. The device outlives the result.
  static Result<std::unique_ptr<OpenedOutbox>> open(Device& device, OutboxPlace place, const OutboxAddress& address);
  OpenedOutbox(const OpenedOutbox&) = delete;
  OpenedOutbox& operator=(const OpenedOutbox&) = delete;
  // Slow.
  ~OpenedOutbox();
  const Region& region() const { return region_; }

 private:
  OpenedOutbox(Device& device, const Region& region, Segment segment)
      : device_(device), region_(region), segment_(std::move(segment)) {}
  static Result<std::unique_ptr<OpenedOutbox>> open_on_host(Device& device, const OutboxAddress& address);

  Device& device_;
  const Region region_;
  const Segment segment_;  // of host memory
};

}  // namespace trestle
