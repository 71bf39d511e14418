#include "comm/device/peer_reach.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/hash.h"

namespace trestle {

namespace {

constexpr uint64_t kProbeBytes = uint64_t{64} << 10;

// What a probe has of one device, until it ends. Nothing of it is under way then.
class ProbeEnd {
 public:
  explicit ProbeEnd(Device& device) : device_(device) {}
  ProbeEnd(const ProbeEnd&) = delete;
  ProbeEnd& operator=(const ProbeEnd&) = delete;
  // A device that fails here has failed its users already.
  ~ProbeEnd() {
    [[maybe_unused]] Status ended;
    if (has_stream_) ended = device_.synchronize(stream_);
    if (memory_ != nullptr) ended = device_.free(memory_);
    if (pinned_ != nullptr) ended = device_.free_pinned(pinned_);
    if (has_stream_) ended = device_.destroy_stream(stream_);
  }
  Status open() {
    stream_ = TRY(device_.make_stream(false));
    has_stream_ = true;
    memory_ = TRY(device_.allocate(kProbeBytes));
    pinned_ = TRY(device_.allocate_pinned(kProbeBytes));
    return {};
  }
  std::byte* memory() const { return memory_; }
  std::byte* pinned() const { return pinned_; }
  StreamHandle* stream() const { return stream_; }
  Status copy(std::byte* to, const std::byte* from) {
    TRY(device_.copy(to, from, kProbeBytes, stream_));
    return device_.synchronize(stream_);
  }

 private:
  Device& device_;
  StreamHandle* stream_ = nullptr;
  bool has_stream_ = false;
  std::byte* memory_ = nullptr;
  std::byte* pinned_ = nullptr;
};

std::vector<uint64_t> pattern(const DeviceInfo& reader, const DeviceInfo& owner, uint64_t salt) {
  std::vector<uint64_t> words(kProbeBytes / sizeof(uint64_t));
  const auto seed = (static_cast<uint64_t>(reader.index) << 32 | static_cast<uint64_t>(owner.index)) ^ salt << 48;
  for (size_t i = 0; i < words.size(); ++i) words[i] = splitmix64_mix(seed + i * 0x9e3779b97f4a7c15u);
  return words;
}

std::string name_of(const DeviceInfo& info) {
  return "device " + std::to_string(info.index) + " (" + info.name + ", " + info.pci + ")";
}

Error cannot(const DeviceInfo& reader, const DeviceInfo& owner, const std::string& why) {
  return {Code::kUnhandledDeviceError,
          name_of(reader) + " does not read memory of " + name_of(owner) + " where it lies: " + why};
}

// Puts a pattern into the owner's memory, lets `read` bring it into the reader's pinned memory, and compares.
template <class Read>
Status verify(ProbeEnd& reader, ProbeEnd& owner, const std::vector<uint64_t>& words, const char* by, Read&& read) {
  std::memcpy(owner.pinned(), words.data(), kProbeBytes);
  TRY(owner.copy(owner.memory(), owner.pinned()));
  std::memset(reader.pinned(), 0, kProbeBytes);
  TRY(read());
  if (std::memcmp(reader.pinned(), words.data(), kProbeBytes) == 0) return {};
  return Error{Code::kUnhandledDeviceError, std::string(by) + " read other bytes than were written"};
}

Status probe(OpenedDevice& reader, OpenedDevice& owner) {
  Device& device = reader.device();
  TRY(device.reach(owner.device()));
  const std::shared_ptr<DeviceKernels> kernels = TRY(reader.kernels());
  ProbeEnd to(device);
  ProbeEnd from(owner.device());
  TRY(to.open());
  TRY(from.open());
  const DeviceInfo& here = device.info();
  const DeviceInfo& there = owner.device().info();
  TRY(verify(to, from, pattern(here, there, 1), "a copy", [&] { return to.copy(to.pinned(), from.memory()); }));
  return verify(to, from, pattern(here, there, 2), "a kernel", [&]() -> Status {
    const CopyRun run{to.pinned(), from.memory(), kProbeBytes};
    TRY(kernels->copy_runs(std::span(&run, 1), to.stream()));
    return device.synchronize(to.stream());
  });
}

}  // namespace

Status reach_and_verify(OpenedDevice& reader, OpenedDevice& owner) {
  if (&reader == &owner) return {};
  const DeviceInfo& here = reader.device().info();
  const DeviceInfo& there = owner.device().info();
  const Result<bool> possible = reader.device().can_reach(owner.device());
  if (!possible.ok()) return cannot(here, there, possible.error().message);
  if (!possible.value()) return cannot(here, there, "the driver knows of no path");
  const Status probed = probe(reader, owner);
  return probed.ok() ? probed : cannot(here, there, probed.error().message);
}

}  // namespace trestle
