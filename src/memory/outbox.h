// Outbox: memory of a rank's device that ranks of other processes have opened, so that their devices read it where it
// lies (memory/peer_paths.h). A message is copied into it within the device, and its room is free again when the
// receiver has read it. An outbox of pinned host memory is for messages between devices that do not read each other, and
// for the parts of others that go through the host; no processor reads it either.
//
// Lent to one communicator at a time (comm/device/outbox_memory.h), whose engine uses it under the progress lock.
// Nothing here allocates after the constructor, and nothing touches the memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/region.h"

namespace trestle {

class Outbox {
 public:
  // Rooms are multiples of this.
  static constexpr uint64_t kUnitBytes = uint64_t{64} << 10;

  // whole: shared. Whoever owns it keeps it as long as a peer may read it.
  explicit Outbox(const Region& whole);
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  // Room for `bytes` > 0 in one piece; nullptr: there is none at present.
  std::byte* take(uint64_t bytes);
  // room: as take() gave it.
  void give_back(const std::byte* room);
  uint64_t free_bytes() const;
  // All of it. Pieces of a message point to it (transport/transport.h), so it stays where it is.
  const Region& region() const { return whole_; }

 private:
  const Region whole_;
  std::vector<uint32_t> units_;  // by unit: of the room that begins there; 0: none begins there
};

}  // namespace trestle
