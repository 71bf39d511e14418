// Memory of other processes that devices of this process read and write where it lies.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "base/unique_fd.h"
#include "device/device.h"
#include "memory/region.h"
#include "memory/segment.h"

namespace trestle {

// Where the memory is: in a device, or in the host where devices read it as well.
enum class SharedPlace : uint8_t { kDevice, kHost };

// How other processes open memory of a device: by a ticket, which is plain bytes, or by a descriptor, which is passed
// to them (comm/setup/descriptor_post.h).
enum class SharedBy : uint8_t { kTicket, kDescriptor };

// What other processes need to open such memory. Plain bytes when it travels.
struct MemoryAddress {
  SharedBy by = SharedBy::kTicket;
  MemoryTicket ticket;  // host memory: of the segment (ticket_of()); kDescriptor: none
  uint64_t id = 0;      // Region::share; not 0
  uint64_t nonce = 0;   // of this memory: no other memory of any process has it
  uint64_t bytes = 0;
  uint64_t probe = 0;  // where the rank has written what its peers are to read (comm/device/peer_probe.h)
};
std::string encode(const MemoryAddress& address);
// kRemoteError: it is no such address.
Result<MemoryAddress> decode_memory_address(const std::string& text);

// Memory of a device that other processes may open: whole blocks of 2 MiB. Slow. Errors: the driver's; the device has
// no memory, or cannot share it.
struct SharedMemory {
  std::byte* memory = nullptr;
  uint64_t bytes = 0;
  SharedBy by = SharedBy::kTicket;
  MemoryTicket ticket;
  UniqueFd descriptor;
};
// by: kDescriptor: or by a ticket, where the driver refuses it.
Result<SharedMemory> allocate_shared(Device& device, uint64_t bytes, SharedBy by);
// Memory by a ticket must not have been opened: CUDA leaves open what happens to a reader then. Memory by a descriptor
// may be freed at any time: those who have opened it keep it. Slow.
Status free_shared(Device& device, SharedMemory&& shared);

// For MemoryAddress.
uint64_t fresh_nonce();

// The ticket of a segment of this process, which keeps its descriptor.
MemoryTicket ticket_of(const Segment& segment);
// Maps a segment of another process by its ticket, without a descriptor. Errors: there is no such process or
// descriptor, or this process may not look at it; kRemoteError: it is no segment of so many bytes.
Result<Segment> open_segment(const MemoryTicket& ticket, uint64_t bytes);

// Memory of another process, as a device of this process reads it. Immutable; any thread.
class OpenedMemory {
 public:
  // descriptor: as it was passed, of memory by a descriptor; else none. Slow. Errors: the driver's, such as that of
  // devices without a path to each other; kRemoteError: the memory is shorter than the peer says, or no descriptor has
  // come. The device outlives the result.
  static Result<std::unique_ptr<OpenedMemory>> open(Device& device, SharedPlace place, const MemoryAddress& address,
                                                    const UniqueFd& descriptor);
  OpenedMemory(const OpenedMemory&) = delete;
  OpenedMemory& operator=(const OpenedMemory&) = delete;
  // Slow.
  ~OpenedMemory();
  const Region& region() const { return region_; }

 private:
  OpenedMemory(Device& device, const Region& region, SharedBy by, Segment segment)
      : device_(device), region_(region), by_(by), segment_(std::move(segment)) {}
  static Result<std::unique_ptr<OpenedMemory>> open_on_host(Device& device, const MemoryAddress& address);
  static Result<std::unique_ptr<OpenedMemory>> open_described(Device& device, const MemoryAddress& address,
                                                              const UniqueFd& descriptor);

  Device& device_;
  const Region region_;
  const SharedBy by_;
  const Segment segment_;  // of host memory
};

}  // namespace trestle
