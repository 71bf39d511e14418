#include "support/allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace allocations {
namespace {

thread_local int count = 0;
thread_local Refusal present;
thread_local bool is_exempt = false;
std::atomic<bool> refuses_others{false};

bool refuses(std::size_t size) {
  ++count;
  if (refuses_others.load(std::memory_order_relaxed) && !is_exempt) return true;
  if (size < present.least) return false;
  if (present.before < 0 || present.before-- != 0) return false;
  if (present.stays) present.before = 0;
  return present.failed = true;
}

}  // namespace

int made() {
  return count;
}
Refusal& refusal() {
  return present;
}
void refuse_other_threads() {
  is_exempt = true;
  refuses_others.store(true);
}

}  // namespace allocations

void* operator new(std::size_t size) {
  if (allocations::refuses(size)) throw std::bad_alloc();
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
