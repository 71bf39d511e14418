#include "base/cpu/cpu_pause.h"

namespace trestle {

// `yield` does nothing on most cores; `isb` takes about as long as x86's `pause`.
void cpu_pause() {
  asm volatile("isb" ::: "memory");
}

}  // namespace trestle
