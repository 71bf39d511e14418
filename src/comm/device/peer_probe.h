// PeerProbe: what a device needs to prove that it uses another device's memory, or memory of another process: a
// stream, some memory of its own, and pinned memory.
//
// Made once per device and kept to the end of the process, because the driver may let a thread that frees memory wait
// for streams that are held until a call ends. One thread at a time. Slow to make and to destroy; nothing else
// allocates.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "device/device.h"
#include "device/kernels.h"

namespace trestle {

inline constexpr uint64_t kProbeWords = 8192;
using ProbeWords = std::array<uint64_t, kProbeWords>;

// Other words for each seed.
std::unique_ptr<ProbeWords> probe_words(uint64_t seed);

class PeerProbe {
 public:
  static constexpr uint64_t kWords = kProbeWords;
  static constexpr uint64_t kBytes = kWords * sizeof(uint64_t);

  static Result<std::unique_ptr<PeerProbe>> create(Device& device);
  PeerProbe(const PeerProbe&) = delete;
  PeerProbe& operator=(const PeerProbe&) = delete;
  ~PeerProbe();

  // Memory of this device, kBytes.
  std::byte* memory() const { return memory_; }
  // Whether earlier attempts have ended. Otherwise none begins.
  Result<bool> is_free() { return device_.is_idle(stream_); }
  // Each waits for a limited time; false: the device has not done it, and may never do it.
  // Writes the words to memory of this device.
  Result<bool> write(std::byte* to, std::span<const uint64_t, kWords> words);
  // By a kernel of this device, also to memory of another one.
  Result<bool> write_by_kernel(std::byte* to, std::span<const uint64_t, kWords> words, DeviceKernels& kernels);
  // Reads kBytes, by the driver's copy or by a kernel of this device.
  Result<bool> read_by_copy(const std::byte* from);
  Result<bool> read_by_kernel(const std::byte* from, DeviceKernels& kernels);
  // Whether the last read has brought these.
  bool has_read(std::span<const uint64_t, kWords> words) const;

 private:
  explicit PeerProbe(Device& device) : device_(device) {}
  Status prepare();
  Result<bool> finishes();
  template <class Submit>
  Result<bool> run(Submit&& submit);

  Device& device_;
  StreamHandle* stream_ = nullptr;
  bool has_stream_ = false;
  std::byte* memory_ = nullptr;
  std::byte* pinned_ = nullptr;
};

}  // namespace trestle
