#include "comm/device/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "comm/device/opened_devices.h"
#include "control_mesh/byte_text.h"

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
      .integer(address.id)
      .integer(address.bytes)
      .integer(address.probe)
      .integer(address.ticket.offset)
      .raw({handle, address.ticket.handle.size()})
      .take();
}

Result<MemoryAddress> decode_memory_address(const std::string& text) {
  MemoryAddress address;
  ByteReader reader(text);
  address.id = reader.integer<uint64_t>();
  address.bytes = reader.integer<uint64_t>();
  address.probe = reader.integer<uint64_t>();
  address.ticket.offset = reader.integer<uint64_t>();
  const std::string_view handle = reader.raw(address.ticket.handle.size());
  if (!reader.at_end() || address.id == 0) return Error{Code::kRemoteError, "it sent no address of shared memory"};
  std::memcpy(address.ticket.handle.data(), handle.data(), handle.size());
  return address;
}

// CUDA shares the whole block in which an allocation lies. Allocations of whole blocks have theirs for themselves (CUDA
// C++ Programming Guide, Interprocess Communication).
Result<SharedMemory> allocate_shared(Device& device, uint64_t bytes) {
  constexpr uint64_t kBlockBytes = uint64_t{2} << 20;
  std::byte* const memory = TRY(device.allocate((bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes));
  Result<MemoryTicket> ticket = device.share(memory);
  if (ticket.ok()) return SharedMemory{memory, ticket.value()};
  TRY(device.free(memory));
  return std::move(ticket).error();
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
                                                         const MemoryAddress& address) {
  if (place == SharedPlace::kHost) return open_on_host(device, address);
  std::byte* const opened = TRY(device.open(address.ticket));
  std::unique_ptr<OpenedMemory> memory(
      new OpenedMemory(device, {opened, address.bytes, {address.id, 0}, device.info().index}, {}));
  const PointerInfo info = TRY(OpenedDevices::process().look_at(opened));
  const auto before = static_cast<uint64_t>(opened - info.base);
  if (info.kind != PointerKind::kDevice || before > info.bytes || address.bytes > info.bytes - before)
    return Error{Code::kRemoteError, "its memory is shorter than it says"};
  return memory;
}

Result<std::unique_ptr<OpenedMemory>> OpenedMemory::open_on_host(Device& device, const MemoryAddress& address) {
  Segment segment = TRY(open_segment(address.ticket, address.bytes));
  TRY(device.pin(segment.data(), address.bytes));
  const Region region{segment.data(), address.bytes, {address.id, 0}, kHostMemory};
  return std::unique_ptr<OpenedMemory>(new OpenedMemory(device, region, std::move(segment)));
}

// A device that fails here has failed its users already.
OpenedMemory::~OpenedMemory() {
  [[maybe_unused]] const Status closed = segment_ ? device_.unpin(region_.base) : device_.close(region_.base);
}

}  // namespace trestle
