#include "support/allocations.h"

#include <cstdlib>
#include <new>

namespace allocations {
namespace {

thread_local int count = 0;
thread_local Refusal present;

bool refuses() {
  ++count;
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

}  // namespace allocations

void* operator new(std::size_t size) {
  if (allocations::refuses()) throw std::bad_alloc();
  if (void* memory = std::malloc(size != 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
