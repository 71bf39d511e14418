#include "comm/device/outbox_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "comm/device/opened_devices.h"
#include "control_mesh/byte_text.h"
#include "memory/mem_alloc.h"

namespace trestle {

namespace {

// The handle of an outbox in host memory.
struct HostTicket {
  int32_t process = 0;
  int32_t descriptor = -1;
};
static_assert(sizeof(HostTicket) <= sizeof(MemoryTicket::handle));

}  // namespace

std::string encode(const OutboxAddress& address) {
  const auto* const handle = reinterpret_cast<const char*>(address.ticket.handle.data());
  return ByteWriter()
      .integer(address.id)
      .integer(address.bytes)
      .integer(address.probe)
      .integer(address.ticket.offset)
      .raw({handle, address.ticket.handle.size()})
      .take();
}

Result<OutboxAddress> decode_outbox_address(const std::string& text) {
  OutboxAddress address;
  ByteReader reader(text);
  address.id = reader.integer<uint64_t>();
  address.bytes = reader.integer<uint64_t>();
  address.probe = reader.integer<uint64_t>();
  address.ticket.offset = reader.integer<uint64_t>();
  const std::string_view handle = reader.raw(address.ticket.handle.size());
  if (!reader.at_end() || address.id == 0) return Error{Code::kRemoteError, "it sent no address of an outbox"};
  std::memcpy(address.ticket.handle.data(), handle.data(), handle.size());
  return address;
}

// One of which much stays lent is left alone.
OutboxStore::Kept* OutboxStore::take_free() {
  const MutexLock lock(mutex_);
  for (Kept& kept : kept_) {
    if (kept.lent || kept.outbox->free_bytes() < bytes_of(place_) / 2) continue;
    kept.lent = true;
    return &kept;
  }
  return nullptr;
}

Result<Region> OutboxStore::make_on_device(Kept& kept) {
  const uint64_t bytes = bytes_of(place_);
  std::byte* const memory = TRY(device_.allocate(bytes));
  Result<MemoryTicket> ticket = device_.share(memory);
  if (!ticket.ok()) {
    TRY(device_.free(memory));
    return std::move(ticket).error();
  }
  kept.ticket = ticket.value();
  return Region{memory, bytes, {mem_new_id(), 0}, device_.info().index};
}

Result<Region> OutboxStore::make_on_host(Kept& kept) {
  const uint64_t bytes = bytes_of(place_);
  kept.segment = TRY(Segment::create("trestle-outbox", bytes, false));
  TRY(device_.pin(kept.segment.data(), bytes));
  const HostTicket ticket{::getpid(), kept.segment.fd()};
  std::memcpy(kept.ticket.handle.data(), &ticket, sizeof ticket);
  return Region{kept.segment.data(), bytes, {mem_new_id(), 0}, kHostMemory};
}

Result<OutboxStore::Kept*> OutboxStore::make() {
  std::list<Kept> made(1);
  Kept& kept = made.front();
  const Region region = TRY(place_ == OutboxPlace::kDevice ? make_on_device(kept) : make_on_host(kept));
  kept.outbox = std::make_unique<Outbox>(region);
  kept.lent = true;
  const MutexLock lock(mutex_);
  kept_.splice(kept_.end(), made);
  return &kept;
}

void OutboxStore::take_back(Kept& kept) {
  const MutexLock lock(mutex_);
  kept.lent = false;
}

Result<std::shared_ptr<Outbox>> OutboxStore::lend() {
  Kept* kept = take_free();
  if (kept == nullptr) kept = TRY(make());
  return std::shared_ptr<Outbox>(kept->outbox.get(), [this, kept](Outbox*) { take_back(*kept); });
}

OutboxAddress OutboxStore::address_of(const Outbox& outbox) {
  const MutexLock lock(mutex_);
  for (const Kept& kept : kept_) {
    if (kept.outbox.get() == &outbox) return {kept.ticket, outbox.region().share.id, outbox.region().bytes, 0};
  }
  CHECK(false, "an outbox of another device");
  return {};
}

Result<std::unique_ptr<OpenedOutbox>> OpenedOutbox::open(Device& device, OutboxPlace place,
                                                         const OutboxAddress& address) {
  if (place == OutboxPlace::kHost) return open_on_host(device, address);
  std::byte* const opened = TRY(device.open(address.ticket));
  std::unique_ptr<OpenedOutbox> outbox(
      new OpenedOutbox(device, {opened, address.bytes, {address.id, 0}, device.info().index}, {}));
  const PointerInfo info = TRY(OpenedDevices::process().look_at(opened));
  const auto before = static_cast<uint64_t>(opened - info.base);
  if (info.kind != PointerKind::kDevice || before > info.bytes || address.bytes > info.bytes - before)
    return Error{Code::kRemoteError, "its memory is shorter than it says"};
  return outbox;
}

// Other memory than the peer's, as where process numbers mean other processes in each of two containers, is found out
// by what is read there.
Result<std::unique_ptr<OpenedOutbox>> OpenedOutbox::open_on_host(Device& device, const OutboxAddress& address) {
  HostTicket ticket;
  std::memcpy(&ticket, address.ticket.handle.data(), sizeof ticket);
  const std::string path = "/proc/" + std::to_string(ticket.process) + "/fd/" + std::to_string(ticket.descriptor);
  UniqueFd fd = UniqueFd::open([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK); });
  if (!fd) return Error{Code::kSystemError, path + ": " + std::strerror(errno)};
  Segment segment = TRY(Segment::adopt(std::move(fd), address.bytes, true));
  segment.close_fd();
  TRY(device.pin(segment.data(), address.bytes));
  const Region region{segment.data(), address.bytes, {address.id, 0}, kHostMemory};
  return std::unique_ptr<OpenedOutbox>(new OpenedOutbox(device, region, std::move(segment)));
}

// A device that fails here has failed its users already.
OpenedOutbox::~OpenedOutbox() {
  [[maybe_unused]] const Status closed = segment_ ? device_.unpin(region_.base) : device_.close(region_.base);
}

}  // namespace trestle
