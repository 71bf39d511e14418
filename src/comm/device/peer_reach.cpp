#include "comm/device/peer_reach.h"

namespace trestle {

namespace {

// Other words for each pair of devices, and for each way.
std::unique_ptr<ProbeWords> pattern(const DeviceInfo& reader, const DeviceInfo& owner, bool writes) {
  return probe_words(static_cast<uint64_t>(reader.index) << 32 | static_cast<uint64_t>(owner.index) << 1 |
                     static_cast<uint64_t>(writes));
}

std::string name_of(const DeviceInfo& info) {
  return "device " + std::to_string(info.index) + " (" + info.name + ", " + info.pci + ")";
}

// "": it has brought the words.
Result<std::string> compare(bool ended, const PeerEnd& reader, const ProbeWords& words, const std::string& by) {
  if (!ended) return by + " has not ended";
  return reader.probe->has_read(words) ? std::string() : by + " read other bytes than were written";
}

}  // namespace

// What was read before is gone when the next read begins.
Result<std::string> reads_words(const PeerEnd& reader, const std::byte* from, const ProbeWords& words) {
  const std::string copied = TRY(compare(TRY(reader.probe->read_by_copy(from)), reader, words, "a copy"));
  if (!copied.empty()) return copied;
  return compare(TRY(reader.probe->read_by_kernel(from, *reader.kernels)), reader, words, "a kernel");
}

namespace {

Result<std::string> prove(const PeerEnd& reader, const PeerEnd& owner) {
  const auto words = pattern(reader.device->info(), owner.device->info(), false);
  if (!TRY(owner.probe->write(owner.probe->memory(), *words))) return name_of(owner.device->info()) + " is busy";
  return reads_words(reader, owner.probe->memory(), *words);
}

Result<std::string> prove_writes(const PeerEnd& writer, const PeerEnd& owner) {
  const auto words = pattern(writer.device->info(), owner.device->info(), true);
  if (!TRY(writer.probe->write_by_kernel(owner.probe->memory(), *words, *writer.kernels)))
    return std::string("a kernel that writes there has not ended");
  if (!TRY(owner.probe->read_by_copy(owner.probe->memory()))) return name_of(owner.device->info()) + " is busy";
  return owner.probe->has_read(*words) ? std::string() : "a kernel that writes there has left other bytes";
}

}  // namespace

Result<PeerAnswer> reach_and_verify(const PeerEnd& reader, const PeerEnd& owner) {
  const auto refused = [&](bool promised, const std::string& why) {
    return PeerAnswer{false, promised,
                      name_of(reader.device->info()) + " does not use memory of " + name_of(owner.device->info()) +
                          " where it lies: " + why};
  };
  if (reader.device == owner.device) return PeerAnswer{true, true, ""};
  if (!TRY(reader.device->can_reach(*owner.device))) return refused(false, "the driver knows of no path");
  // A device can have access to a limited number of others.
  if (const Status let = reader.device->reach(*owner.device); !let.ok()) return refused(true, let.error().message);
  std::string why = TRY(prove(reader, owner));
  if (why.empty()) why = TRY(prove_writes(reader, owner));
  return why.empty() ? PeerAnswer{true, true, ""} : refused(true, why);
}

}  // namespace trestle
