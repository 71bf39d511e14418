#include "base/cpu/cpu_pause.h"

namespace trestle {

void cpu_pause() {
  __builtin_ia32_pause();
}

}  // namespace trestle
