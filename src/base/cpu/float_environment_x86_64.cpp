#include "base/cpu/float_environment.h"

namespace trestle {

namespace {

constexpr uint32_t kFlags = 0x3f;
constexpr uint32_t kDefault = 0x1f80;  // MXCSR: all exceptions masked, to nearest, no flushing
constexpr uint32_t kDefaultX87 = 0x37f;

void load_x87(uint32_t word) {
  const auto control = static_cast<uint16_t>(word);
  asm volatile("fldcw %0" : : "m"(control));
}

}  // namespace

// Storing MXCSR takes a cycle or two, loading it 25 ns: so it is loaded only where it differs. x87 computes nothing
// here, but printf asks it how to round. fesetround() sets both, so x87 is left alone where MXCSR is as it should be.
FloatEnvironment::FloatEnvironment() noexcept {
  uint16_t x87 = 0;
  asm volatile("fnstcw %0" : "=m"(x87));
  found_[1] = x87;
  found_[0] = __builtin_ia32_stmxcsr();
  if ((found_[0] & ~kFlags) == kDefault) return;
  __builtin_ia32_ldmxcsr(kDefault);
  load_x87(kDefaultX87);
}

FloatEnvironment::~FloatEnvironment() {
  const uint32_t now = __builtin_ia32_stmxcsr();
  if (now == found_[0]) return;
  __builtin_ia32_ldmxcsr(found_[0]);
  if ((now & ~kFlags) != (found_[0] & ~kFlags)) load_x87(found_[1]);
}

}  // namespace trestle
