// PeerPaths: the ranks whose device memory this rank's device reads where it lies.
//
// Two ranks of a process whose devices reach each other, or that use the same device, have a peer path. A message of
// one to the other needs no bounce buffer at the receiver: the transport hands out the sender's memory as a view, and
// the receiver's device reads it there. At the sender it needs none either, if the receiver's device can read the
// buffer (PrepareRequest::open_to_devices); else the receiver reads the sender's bounce buffer.
//
// Ranks of two processes may have a path as well (kOtherProcess). A device reads only what its process has opened:
// the sender's outbox (memory/outbox.h), and no buffers of callers. So a message is copied within the sender's device,
// and the receiver's device reads the copy. While the outbox is full, messages go as if there were no path. So both
// ends have their bounce buffers, too.
//
// If devices of two processes of a host do not read each other, they may still read an outbox in host memory of the
// other rank (kHostOutbox). Then a message is copied out of one device and into the other, and no processor copies it.
//
// A path is always one of both directions, so both ends of a message know of it. A value; any thread may read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace trestle {

enum class PeerPath : uint8_t {
  kNone,
  kSameDevice,    // both ranks use one device, which reads all of its memory
  kOtherDevice,   // which reads memory that is open to other devices
  kOtherProcess,  // whose device reads this rank's outbox
  kHostOutbox,    // whose device reads this rank's outbox of host memory
};

// Whether devices read memory of devices over it.
constexpr bool joins_devices(PeerPath path) {
  return path != PeerPath::kNone && path != PeerPath::kHostOutbox;
}

// Whether every message over it is a view for its receiver.
constexpr bool gives_views(PeerPath path) {
  return path == PeerPath::kSameDevice || path == PeerPath::kOtherDevice;
}

// Which messages are divided between a path and host memory: segments of so many bytes, of steps with so many of them.
// The copy to the host comes before the message, so with fewer under way both paths would wait for it. Parts through the
// host are multiples of a unit, and at most a quarter: the other wire is PCIe, beside NVLink.
inline constexpr uint64_t kLeastDividedBytes = uint64_t{1} << 20;
inline constexpr uint64_t kLeastDividedSegments = 4;
inline constexpr uint64_t kDividedUnitBytes = uint64_t{64} << 10;
constexpr uint64_t most_through_host(uint64_t bytes) {
  return bytes / 4 / kDividedUnitBytes * kDividedUnitBytes;
}

class PeerPaths {
 public:
  PeerPaths() = default;
  // For every rank of the communicator, this one included.
  explicit PeerPaths(std::vector<PeerPath> by_rank) : by_rank_(std::move(by_rank)), divided_(by_rank_.size()) {}

  // Messages to this rank, which has a path, may go through host memory at the same time (engine/work/host_shares.h).
  // Only the sender decides.
  void divide(int32_t rank, bool divided = true) { divided_.at(static_cast<size_t>(rank)) = divided; }
  bool divides(int32_t rank) const {
    return static_cast<size_t>(rank) < divided_.size() && divided_[static_cast<size_t>(rank)];
  }

  // How many ranks.
  int divided() const { return static_cast<int>(std::count(divided_.begin(), divided_.end(), true)); }

  // A path that was found later.
  void lead(int32_t rank, PeerPath path) { by_rank_.at(static_cast<size_t>(rank)) = path; }
  PeerPath to(int32_t rank) const {
    return static_cast<size_t>(rank) < by_rank_.size() ? by_rank_[static_cast<size_t>(rank)] : PeerPath::kNone;
  }

 private:
  std::vector<PeerPath> by_rank_;
  std::vector<bool> divided_;
};

}  // namespace trestle
