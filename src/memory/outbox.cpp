#include "memory/outbox.h"

#include "base/check.h"

namespace trestle {

Outbox::Outbox(const Region& whole) : whole_(whole), units_(whole.bytes / kUnitBytes) {
  CHECK(whole.is_shared(), "an outbox that no peer can read");
}

// The first gap that is wide enough. Rooms are few and large, so most of the units are skipped.
std::byte* Outbox::take(uint64_t bytes) {
  const uint64_t wanted = (bytes + kUnitBytes - 1) / kUnitBytes;
  uint64_t begin = 0;
  for (uint64_t unit = 0; unit < units_.size();) {
    if (units_[unit] != 0) {
      unit += units_[unit];
      begin = unit;
      continue;
    }
    if (++unit - begin < wanted) continue;
    units_[begin] = static_cast<uint32_t>(wanted);
    return whole_.base + begin * kUnitBytes;
  }
  return nullptr;
}

uint64_t Outbox::free_bytes() const {
  uint64_t lent = 0;
  for (const uint32_t units : units_) lent += units;
  return (units_.size() - lent) * kUnitBytes;
}

void Outbox::give_back(const std::byte* room) {
  const auto offset = static_cast<uint64_t>(room - whole_.base);
  CHECK(offset % kUnitBytes == 0 && offset < whole_.bytes && units_[offset / kUnitBytes] != 0,
        "room is given back that an outbox has not lent");
  units_[offset / kUnitBytes] = 0;
}

}  // namespace trestle
