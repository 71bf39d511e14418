#include "memory/region.h"

#include "memory/mem_alloc.h"
#include "memory/registrations.h"

namespace trestle {

// The library writes only to buffers that the caller passed as writable.
Region look_at(const void* base, uint64_t bytes, const MemRegistrations* registrations) {
  Region region = private_region(const_cast<void*>(base), bytes);
  if (bytes == 0) return region;
  region.share = mem_find(base, bytes);
  if (!region.is_shared() && registrations != nullptr) region.share = registrations->find(base, bytes);
  return region;
}

}  // namespace trestle
