// Region: a buffer that was looked at once, when the call that uses it was bound. After that, transports and kernels
// never find out from an address what a piece of it is.
//
// Value type. It owns nothing. The operation that the call is bound to has it; pieces (transport/transport.h) point to
// it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "memory/mem_index.h"

namespace trestle {

class MemRegistrations;

inline constexpr int32_t kHostMemory = -1;

struct Region {
  std::byte* base = nullptr;
  uint64_t bytes = 0;  // that the call reads or writes at most, from base on
  MemPlace share;      // of base, in memory that peers on the same host can map; id 0: in none
  // The number of the device whose memory this is: only its work queue may touch it. kHostMemory: host memory, also
  // pinned and managed memory. The buffers of one operation all lie on one device, or all in host memory.
  int32_t device = kHostMemory;

  bool is_shared() const { return share.id != 0; }
  bool on_device() const { return device != kHostMemory; }
  // The rest of it from byte `offset` on. Not of shared memory.
  Region from(uint64_t offset) const { return {base + offset, bytes - offset, {}, device}; }
  // The shared place of a part of it; a part beyond its bytes has none.
  MemPlace place_of(const std::byte* data, uint64_t part_bytes) const {
    const auto begin = static_cast<uint64_t>(data - base);
    if (!is_shared() || data < base || begin > bytes || part_bytes > bytes - begin) return {};
    return {share.id, share.offset + begin};
  }
};

// Memory that only this rank reaches: ordinary host memory, or memory of a device.
inline Region private_region(void* base, uint64_t bytes, int32_t device = kHostMemory) {
  return {static_cast<std::byte*>(base), bytes, {}, device};
}

// For host memory. Looks for [base, base + bytes) in what trestleMemAlloc has given out, then in the communicator's
// registrations (nullptr: it has none). It is shared if all of it lies in one of these. Any thread; takes no lock. The
// result holds until that memory is freed or deregistered.
Region look_at(const void* base, uint64_t bytes, const MemRegistrations* registrations);

}  // namespace trestle
