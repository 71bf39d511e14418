// Whether a device uses another one's memory where it lies: reads it, and writes there (kernels/cuda/board.h). For the
// time when a communicator is made.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "comm/device/peer_probe.h"

namespace trestle {

// One device, as far as paths to it and from it are concerned.
struct PeerEnd {
  Device* device = nullptr;
  PeerProbe* probe = nullptr;
  std::shared_ptr<DeviceKernels> kernels;
};

struct PeerAnswer {
  bool reaches = false;
  bool promised = false;  // the driver says that it reaches
  std::string why;        // a sentence with both devices, if it does not
};

// Reads the words by the driver's copy and by a kernel of the device, and compares. "": it has brought them; else what
// it has done instead, as in "a copy has not ended".
Result<std::string> reads_words(const PeerEnd& reader, const std::byte* from, const ProbeWords& words);

// Lets `reader` use the memory of `owner`, and proves it: a pattern in the memory of `owner` is read by the driver's
// copy and by a kernel of `reader`, and compared. A machine may promise the path and then deliver other bytes, such as
// one whose IOMMU translates what PCIe devices send to each other, or never answer. Then a kernel of `reader` writes
// there, and `owner` looks. Takes a few seconds at the most.
// Frees and allocates nothing. Errors: the driver's, about something else than this path.
Result<PeerAnswer> reach_and_verify(const PeerEnd& reader, const PeerEnd& owner);

}  // namespace trestle
