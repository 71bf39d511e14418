// PeerProbe: what a device needs to prove that it reads another device's memory: a stream, some memory of its own, and
// pinned memory.
//
// Made once per device and kept to the end of the process, because the driver may let a thread that frees memory wait
// for streams that are held until a call ends. One thread at a time. Slow to make and to destroy; nothing else
// allocates.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "device/device.h"
#include "device/kernels.h"

namespace trestle {

class PeerProbe {
 public:
  static constexpr uint64_t kWords = 8192;

  static Result<std::unique_ptr<PeerProbe>> create(Device& device);
  PeerProbe(const PeerProbe&) = delete;
  PeerProbe& operator=(const PeerProbe&) = delete;
  ~PeerProbe();

  // Each waits for a limited time; false: the device has not done it, and may never do it.
  // Writes the words into this device's memory.
  Result<bool> write(std::span<const uint64_t, kWords> words);
  // Reads the owner's memory, by the driver's copy or by a kernel of this device.
  Result<bool> read_by_copy(const PeerProbe& owner);
  Result<bool> read_by_kernel(const PeerProbe& owner, DeviceKernels& kernels);
  // Whether the last read has brought these.
  bool has_read(std::span<const uint64_t, kWords> words) const;

 private:
  static constexpr uint64_t kBytes = kWords * sizeof(uint64_t);

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
