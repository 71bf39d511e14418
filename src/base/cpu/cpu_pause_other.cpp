#include "base/cpu/cpu_pause.h"

#include <atomic>

namespace trestle {

void cpu_pause() {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

}  // namespace trestle
