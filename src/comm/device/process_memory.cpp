#include "comm/device/process_memory.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "base/text/byte_text.h"
#include "comm/device/opened_devices.h"

namespace trestle {

namespace {

// The handle of a segment.
struct SegmentTicket {
  int32_t process = 0;
  int32_t descriptor = -1;
};
static_assert(sizeof(SegmentTicket) <= sizeof(MemoryTicket::handle));

}  // namespace

std::string encode(const MemoryAddress& address) {
  const auto* const handle = reinterpret_cast<const char*>(address.ticket.handle.data());
  return ByteWriter()
      .integer(static_cast<uint8_t>(address.by))
      .integer(address.id)
      .integer(address.nonce)
      .integer(address.bytes)
      .integer(address.probe)
      .integer(address.ticket.offset)
      .raw({handle, address.ticket.handle.size()})
      .take();
}

Result<MemoryAddress> decode_memory_address(const std::string& text) {
  MemoryAddress address;
  ByteReader reader(text);
  const auto by = reader.integer<uint8_t>();
  address.by = static_cast<SharedBy>(by);
  address.id = reader.integer<uint64_t>();
  address.nonce = reader.integer<uint64_t>();
  address.bytes = reader.integer<uint64_t>();
  address.probe = reader.integer<uint64_t>();
  address.ticket.offset = reader.integer<uint64_t>();
  const std::string_view handle = reader.raw(address.ticket.handle.size());
  const bool is_known = by <= static_cast<uint8_t>(SharedBy::kDescriptor);
  if (!reader.at_end() || !is_known || address.id == 0)
    return Error{Code::kRemoteError, "it sent no address of shared memory"};
  std::memcpy(address.ticket.handle.data(), handle.data(), handle.size());
  return address;
}

// CUDA shares by a ticket the whole block in which an allocation lies. Allocations of whole blocks have theirs for
// themselves (CUDA C++ Programming Guide, Interprocess Communication).
Result<SharedMemory> allocate_shared(Device& device, uint64_t bytes, SharedBy by) {
  static_assert(kDescribedBlockBytes == uint64_t{2} << 20);
  SharedMemory shared;
  shared.bytes = (bytes + kDescribedBlockBytes - 1) / kDescribedBlockBytes * kDescribedBlockBytes;
  if (by == SharedBy::kDescriptor) {
    Result<DescribedMemory> described = device.allocate_described(shared.bytes);
    if (described.ok()) {
      shared.memory = described.value().memory;
      shared.by = by;
      shared.descriptor = std::move(described.value().descriptor);
      return shared;
    }
    LOG(kInfo, kInit, "device %d shares no memory by descriptors: %s", device.info().index,
        described.error().message.c_str());
  }
  shared.memory = TRY(device.allocate(shared.bytes));
  Result<MemoryTicket> ticket = device.share(shared.memory);
  if (!ticket.ok()) {
    TRY(device.free(shared.memory));
    return std::move(ticket).error();
  }
  shared.ticket = ticket.value();
  return shared;
}

Status free_shared(Device& device, SharedMemory&& shared) {
  const SharedMemory freed = std::move(shared);
  if (freed.by == SharedBy::kDescriptor) return device.unmap_described(freed.memory, freed.bytes);
  return device.free(freed.memory);
}

uint64_t fresh_nonce() {
  uint64_t nonce = 0;
  CHECK(::getrandom(&nonce, sizeof nonce, 0) == sizeof nonce, "the kernel has no random bytes");
  return nonce;
}

MemoryTicket ticket_of(const Segment& segment) {
  MemoryTicket ticket;
  const SegmentTicket of_segment{::getpid(), segment.fd()};
  std::memcpy(ticket.handle.data(), &of_segment, sizeof of_segment);
  return ticket;
}

// Other memory than the peer's, as where process numbers mean other processes in each of two containers, is found out
// by what is read there.
Result<Segment> open_segment(const MemoryTicket& ticket, uint64_t bytes) {
  SegmentTicket of_segment;
  std::memcpy(&of_segment, ticket.handle.data(), sizeof of_segment);
  const std::string path =
      "/proc/" + std::to_string(of_segment.process) + "/fd/" + std::to_string(of_segment.descriptor);
  UniqueFd fd = UniqueFd::open([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); });
  if (!fd) return Error{Code::kSystemError, path + ": " + std::strerror(errno)};
  Segment segment = TRY(Segment::adopt(std::move(fd), bytes, true));
  segment.close_fd();
  return segment;
}

Result<std::unique_ptr<OpenedMemory>> OpenedMemory::open(Device& device, SharedPlace place,
                                                         const MemoryAddress& address, const UniqueFd& descriptor) {
  if (place == SharedPlace::kHost) return open_on_host(device, address);
  if (address.by == SharedBy::kDescriptor) return open_described(device, address, descriptor);
  std::byte* const opened = TRY(device.open(address.ticket));
  const Region region{opened, address.bytes, {address.id, 0}, device.info().index};
  std::unique_ptr<OpenedMemory> memory(new OpenedMemory(device, region, address.by, {}));
  const PointerInfo info = TRY(OpenedDevices::process().look_at(opened));
  const auto before = static_cast<uint64_t>(opened - info.base);
  if (info.kind != PointerKind::kDevice || before > info.bytes || address.bytes > info.bytes - before)
    return Error{Code::kRemoteError, "its memory is shorter than it says"};
  return memory;
}

Result<std::unique_ptr<OpenedMemory>> OpenedMemory::open_described(Device& device, const MemoryAddress& address,
                                                                   const UniqueFd& descriptor) {
  if (!descriptor) return Error{Code::kRemoteError, "no descriptor of its memory has come"};
  if (address.bytes == 0 || address.bytes % kDescribedBlockBytes != 0)
    return Error{Code::kRemoteError, "its memory is shorter than it says"};
  std::byte* const mapped = TRY(device.map_described(descriptor.get(), address.bytes));
  const Region region{mapped, address.bytes, {address.id, 0}, device.info().index};
  return std::unique_ptr<OpenedMemory>(new OpenedMemory(device, region, address.by, {}));
}

Result<std::unique_ptr<OpenedMemory>> OpenedMemory::open_on_host(Device& device, const MemoryAddress& address) {
  Segment segment = TRY(open_segment(address.ticket, address.bytes));
  TRY(device.pin(segment.data(), address.bytes));
  const Region region{segment.data(), address.bytes, {address.id, 0}, kHostMemory};
  return std::unique_ptr<OpenedMemory>(new OpenedMemory(device, region, address.by, std::move(segment)));
}

// A device that fails here has failed its users already.
OpenedMemory::~OpenedMemory() {
  [[maybe_unused]] Status closed;
  if (segment_) {
    closed = device_.unpin(region_.base);
  } else if (by_ == SharedBy::kDescriptor) {
    closed = device_.unmap_described(region_.base, region_.bytes);
  } else {
    closed = device_.close(region_.base);
  }
}

}  // namespace trestle
