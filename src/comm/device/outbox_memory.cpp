#include "comm/device/outbox_memory.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "comm/device/opened_devices.h"
#include "control_mesh/byte_text.h"
#include "memory/mem_alloc.h"

namespace trestle {

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
    if (kept.lent || kept.outbox->free_bytes() < kBytes / 2) continue;
    kept.lent = true;
    return &kept;
  }
  return nullptr;
}

Result<OutboxStore::Kept*> OutboxStore::make() {
  std::list<Kept> made(1);
  Kept& kept = made.front();
  std::byte* const memory = TRY(device_.allocate(kBytes));
  Result<MemoryTicket> ticket = device_.share(memory);
  if (!ticket.ok()) {
    TRY(device_.free(memory));
    return std::move(ticket).error();
  }
  kept.ticket = ticket.value();
  kept.outbox = std::make_unique<Outbox>(Region{memory, kBytes, {mem_new_id(), 0}, device_.info().index});
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
    if (kept.outbox.get() == &outbox) return {kept.ticket, outbox.region().share.id, kBytes, 0};
  }
  CHECK(false, "an outbox of another device");
  return {};
}

Result<std::unique_ptr<OpenedOutbox>> OpenedOutbox::open(Device& device, const OutboxAddress& address) {
  std::byte* const opened = TRY(device.open(address.ticket));
  std::unique_ptr<OpenedOutbox> outbox(
      new OpenedOutbox(device, {opened, address.bytes, {address.id, 0}, device.info().index}));
  const PointerInfo info = TRY(OpenedDevices::process().look_at(opened));
  const auto before = static_cast<uint64_t>(opened - info.base);
  if (info.kind != PointerKind::kDevice || before > info.bytes || address.bytes > info.bytes - before)
    return Error{Code::kRemoteError, "its memory is shorter than it says"};
  return outbox;
}

// A device that fails here has failed its users already.
OpenedOutbox::~OpenedOutbox() {
  [[maybe_unused]] const Status closed = device_.close(region_.base);
}

}  // namespace trestle
