#include "comm/device/peer_probe.h"

#include <sched.h>

#include <cstring>

#include "base/clock.h"
#include "base/hash.h"

namespace trestle {

namespace {

// A copy of 64 KiB takes microseconds. A path that is broken may never answer.
constexpr int64_t kLimitNs = 2'000'000'000;

}  // namespace

std::unique_ptr<ProbeWords> probe_words(uint64_t seed) {
  auto words = std::make_unique<ProbeWords>();
  for (size_t i = 0; i < words->size(); ++i) (*words)[i] = splitmix64_mix(seed + i * 0x9e3779b97f4a7c15u);
  return words;
}

Result<std::unique_ptr<PeerProbe>> PeerProbe::create(Device& device) {
  std::unique_ptr<PeerProbe> probe(new PeerProbe(device));
  TRY(probe->prepare());
  return probe;
}

Status PeerProbe::prepare() {
  // Streams of low priority may share a queue of the driver with one of the program's that is held.
  stream_ = TRY(device_.make_stream(true));
  has_stream_ = true;
  memory_ = TRY(device_.allocate(kBytes));
  pinned_ = TRY(device_.allocate_pinned(kBytes));
  return {};
}

// A device that fails here has failed its users already.
PeerProbe::~PeerProbe() {
  [[maybe_unused]] Status ended;
  if (has_stream_) ended = device_.destroy_stream(stream_);
  if (memory_ != nullptr) ended = device_.free(memory_);
  if (pinned_ != nullptr) ended = device_.free_pinned(pinned_);
}

Result<bool> PeerProbe::finishes() {
  const int64_t give_up_ns = monotonic_clock().now_ns() + kLimitNs;
  while (!TRY(device_.is_idle(stream_))) {
    if (monotonic_clock().now_ns() > give_up_ns) return false;
    ::sched_yield();
  }
  return true;
}

// What an earlier attempt left on the stream would come first.
template <class Submit>
Result<bool> PeerProbe::run(Submit&& submit) {
  if (!TRY(device_.is_idle(stream_))) return false;
  TRY(submit());
  return finishes();
}

Result<bool> PeerProbe::write(std::byte* to, std::span<const uint64_t, kWords> words) {
  return run([&] {
    std::memcpy(pinned_, words.data(), kBytes);
    return device_.copy(to, pinned_, kBytes, stream_);
  });
}

Result<bool> PeerProbe::write_by_kernel(std::byte* to, std::span<const uint64_t, kWords> words,
                                        DeviceKernels& kernels) {
  return run([&] {
    std::memcpy(pinned_, words.data(), kBytes);
    const CopyRun run{to, pinned_, kBytes};
    return kernels.copy_runs(std::span(&run, 1), stream_);
  });
}

Result<bool> PeerProbe::read_by_copy(const std::byte* from) {
  return run([&] {
    std::memset(pinned_, 0, kBytes);
    return device_.copy(pinned_, from, kBytes, stream_);
  });
}

Result<bool> PeerProbe::read_by_kernel(const std::byte* from, DeviceKernels& kernels) {
  return run([&] {
    std::memset(pinned_, 0, kBytes);
    const CopyRun run{pinned_, from, kBytes};
    return kernels.copy_runs(std::span(&run, 1), stream_);
  });
}

bool PeerProbe::has_read(std::span<const uint64_t, kWords> words) const {
  return std::memcmp(pinned_, words.data(), kBytes) == 0;
}

}  // namespace trestle
