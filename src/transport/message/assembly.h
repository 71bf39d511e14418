// Assembly: which parts of a message have come, when it comes in fragments. So no two fragments are ever written to the
// same byte, whatever the peer says.
//
// Owned by a PeerProtocol, used under the rank's progress lock. Offsets and lengths are in bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trestle {

class Assembly {
 public:
  // For a new message.
  void reset();

  // A fragment begins. False: some of it is outside of a message of `bytes`, has begun already, or is empty.
  bool claim(uint64_t at, uint64_t length, uint64_t bytes);
  // All of it has come.
  void arrived(uint64_t length) { arrived_ += length; }
  // It does not come after all, and may be claimed again.
  void give_up(uint64_t at, uint64_t length);
  uint64_t arrived_bytes() const { return arrived_; }

  std::byte* buffer = nullptr;  // of the whole message, for messages without pieces of their own; the owner's

 private:
  struct Range {
    uint64_t from;
    uint64_t to;
  };
  std::vector<Range> claimed_;  // ascending, neither touching nor overlapping
  uint64_t arrived_ = 0;
};

}  // namespace trestle
