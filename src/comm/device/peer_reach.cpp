#include "comm/device/peer_reach.h"

#include <array>
#include <functional>

#include "base/hash.h"

namespace trestle {

namespace {

using Words = std::array<uint64_t, PeerProbe::kWords>;

// Other words for each pair of devices and each way of reading.
std::unique_ptr<Words> pattern(const DeviceInfo& reader, const DeviceInfo& owner, uint64_t way) {
  auto words = std::make_unique<Words>();
  const auto seed = (static_cast<uint64_t>(reader.index) << 32 | static_cast<uint64_t>(owner.index)) ^ way << 48;
  for (size_t i = 0; i < words->size(); ++i) (*words)[i] = splitmix64_mix(seed + i * 0x9e3779b97f4a7c15u);
  return words;
}

std::string name_of(const DeviceInfo& info) {
  return "device " + std::to_string(info.index) + " (" + info.name + ", " + info.pci + ")";
}

// "": it has brought what was written.
Result<std::string> verify(const PeerEnd& reader, const PeerEnd& owner, uint64_t way, const std::string& by,
                           const std::function<Result<bool>()>& read) {
  const auto words = pattern(reader.device->info(), owner.device->info(), way);
  if (!TRY(owner.probe->write(*words))) return name_of(owner.device->info()) + " is busy";
  if (!TRY(read())) return by + " has not ended";
  return reader.probe->has_read(*words) ? std::string() : by + " read other bytes than were written";
}

Result<std::string> prove(const PeerEnd& reader, const PeerEnd& owner) {
  const std::string copied =
      TRY(verify(reader, owner, 1, "a copy", [&] { return reader.probe->read_by_copy(*owner.probe); }));
  if (!copied.empty()) return copied;
  return verify(reader, owner, 2, "a kernel",
                [&] { return reader.probe->read_by_kernel(*owner.probe, *reader.kernels); });
}

}  // namespace

Result<PeerAnswer> reach_and_verify(const PeerEnd& reader, const PeerEnd& owner) {
  const auto refused = [&](bool promised, const std::string& why) {
    return PeerAnswer{false, promised,
                      name_of(reader.device->info()) + " does not read memory of " + name_of(owner.device->info()) +
                          " where it lies: " + why};
  };
  if (reader.device == owner.device) return PeerAnswer{true, true, ""};
  if (!TRY(reader.device->can_reach(*owner.device))) return refused(false, "the driver knows of no path");
  // A device can have access to a limited number of others.
  if (const Status let = reader.device->reach(*owner.device); !let.ok()) return refused(true, let.error().message);
  const std::string why = TRY(prove(reader, owner));
  return why.empty() ? PeerAnswer{true, true, ""} : refused(true, why);
}

}  // namespace trestle
