// Memory of other processes that devices of this process read and write where it lies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "device/device.h"
#include "memory/region.h"
#include "memory/segment.h"

namespace trestle {

// Where the memory is: in a device, or in the host where devices read it as well.
enum class SharedPlace : uint8_t { kDevice, kHost };

// What other processes need to open such memory. Plain bytes when it travels.
struct MemoryAddress {
  MemoryTicket ticket;  // host memory: of the segment (ticket_of())
  uint64_t id = 0;      // Region::share; not 0
  uint64_t bytes = 0;
  uint64_t probe = 0;  // where the rank has written what its peers are to read (comm/device/peer_probe.h)
};
std::string encode(const MemoryAddress& address);
// kRemoteError: it is no such address.
Result<MemoryAddress> decode_memory_address(const std::string& text);

// Memory of a device that other processes may open: whole blocks of 2 MiB. Once one has opened it, it cannot be freed any
// more: CUDA leaves open what happens to a reader then. Slow. Errors: the driver's; the device has no memory, or cannot
// share it.
struct SharedMemory {
  std::byte* memory = nullptr;
  MemoryTicket ticket;
};
Result<SharedMemory> allocate_shared(Device& device, uint64_t bytes);

// The ticket of a segment of this process, which keeps its descriptor.
MemoryTicket ticket_of(const Segment& segment);
// Maps a segment of another process by its ticket, without a descriptor. Errors: there is no such process or
// descriptor, or this process may not look at it; kRemoteError: it is no segment of so many bytes.
Result<Segment> open_segment(const MemoryTicket& ticket, uint64_t bytes);

// Memory of another process, as a device of this process reads it. Immutable; any thread.
class OpenedMemory {
 public:
  // Slow. Errors: the driver's, such as that of devices without a path to each other; kRemoteError: the memory is
  // shorter than the peer says. The device outlives the result.
  static Result<std::unique_ptr<OpenedMemory>> open(Device& device, SharedPlace place, const MemoryAddress& address);
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  // Slow.
  ~OpenedMemory();
  const Region& region() const { return region_; }

 private:
  OpenedMemory(Device& device, const Region& region, Segment segment)
      : device_(device), region_(region), segment_(std::move(segment)) {}
  static Result<std::unique_ptr<OpenedMemory>> open_on_host(Device& device, const MemoryAddress& address);

  Device& device_;
  const Region region_;
  const Segment segment_;  // of host memory
};

}  // namespace trestle
