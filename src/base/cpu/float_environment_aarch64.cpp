#include "base/cpu/float_environment.h"

namespace trestle {

namespace {

uint64_t control() {
  uint64_t fpcr = 0;
  asm volatile("mrs %0, fpcr" : "=r"(fpcr));
  return fpcr;
}

uint64_t flags() {
  uint64_t fpsr = 0;
  asm volatile("mrs %0, fpsr" : "=r"(fpsr));
  return fpsr;
}

void set_control(uint64_t fpcr) {
  asm volatile("msr fpcr, %0" : : "r"(fpcr) : "memory");
}

}  // namespace

// FPCR is 0 by default: to nearest, no flushing, no traps. Both registers have 32 bits. A write is much slower than a
// read.
FloatEnvironment::FloatEnvironment() noexcept {
  found_[0] = static_cast<uint32_t>(control());
  found_[1] = static_cast<uint32_t>(flags());
  if (found_[0] != 0) set_control(0);
}

FloatEnvironment::~FloatEnvironment() {
  if (control() != found_[0]) set_control(found_[0]);
  if (flags() != found_[1]) asm volatile("msr fpsr, %0" : : "r"(static_cast<uint64_t>(found_[1])) : "memory");
}

}  // namespace trestle
