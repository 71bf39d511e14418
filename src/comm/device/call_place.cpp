#include "comm/device/call_place.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string>

#include "comm/device/opened_devices.h"

namespace trestle {

namespace {

enum class Kind : uint8_t { kNone, kOrdinary, kEither, kDevice };

struct Looked {
  Kind kind = Kind::kNone;
  bool open_to_devices = true;
};

Error refused(const UsedBuffer& buffer, const std::string& why) {
  return {Code::kInvalidArgument, std::string("the ") + buffer.name + " buffer " + why};
}

// The kernel reads the first and the last byte, so an address that is not mapped gives an error and not a signal.
bool is_there(const UsedBuffer& buffer) {
  const auto* const begin = static_cast<const std::byte*>(buffer.begin);
  std::byte ends[2];
  const iovec into{ends, sizeof ends};
  const iovec from[] = {{const_cast<std::byte*>(begin), 1}, {const_cast<std::byte*>(begin + buffer.bytes - 1), 1}};
  const ssize_t read = ::process_vm_readv(::getpid(), &into, 1, from, 2, 0);
  // A system that does not let a process read itself answers with another error.
  return read == static_cast<ssize_t>(sizeof ends) || (read < 0 && errno != EFAULT);
}

Result<Looked> look_at_device_memory(int device, const UsedBuffer& buffer, const PointerInfo& info) {
  if (info.device != device) {
    return refused(buffer, "is memory of device " + std::to_string(info.device) +
                               ", but the communicator's device is " + std::to_string(device));
  }
  const auto offset = static_cast<uint64_t>(static_cast<const std::byte*>(buffer.begin) - info.base);
  if (offset <= info.bytes && buffer.bytes <= info.bytes - offset) return Looked{Kind::kDevice, info.open_to_devices};
  return refused(buffer, "needs " + std::to_string(buffer.bytes) + " bytes, but its memory of device " +
                             std::to_string(device) + " ends after " + std::to_string(info.bytes - offset));
}

Result<Looked> look_at_buffer(int device, const UsedBuffer& buffer) {
  if (buffer.begin == nullptr || buffer.bytes == 0) return Looked{};
  const PointerInfo info = TRY(OpenedDevices::process().look_at(buffer.begin));
  switch (info.kind) {
    case PointerKind::kDevice:
      return look_at_device_memory(device, buffer, info);
    case PointerKind::kPinnedHost:
    case PointerKind::kManaged:
      return Looked{Kind::kEither, info.open_to_devices};
    case PointerKind::kHost:
      break;
  }
  if (is_there(buffer)) return Looked{Kind::kOrdinary, false};
  return refused(buffer, "is neither memory of a device nor mapped in this process: was it freed?");
}

}  // namespace

Result<CallPlace> place_of(int device, const UsedBuffer& send, const UsedBuffer& recv) {
  const Looked at_sent = TRY(look_at_buffer(device, send));
  const Looked at_received = TRY(look_at_buffer(device, recv));
  const Kind sent = at_sent.kind;
  const Kind received = at_received.kind;
  if (sent != Kind::kDevice && received != Kind::kDevice) return CallPlace{};
  if (sent != Kind::kOrdinary && received != Kind::kOrdinary)
    return CallPlace{MemoryPlace::kDevice, at_sent.open_to_devices && at_received.open_to_devices};
  const UsedBuffer& on_device = sent == Kind::kDevice ? send : recv;
  const UsedBuffer& on_host = sent == Kind::kDevice ? recv : send;
  return refused(on_device, "is memory of device " + std::to_string(device) + ", but the " + on_host.name +
                                " buffer is ordinary host memory: both must be of the device, or pinned or managed");
}

}  // namespace trestle
