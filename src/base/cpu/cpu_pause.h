// Tells the processor that this thread spins, so that a sibling thread may run faster meanwhile. CMake chooses the file
// by processor. Some 10 to 50 ns; any thread.
#pragma once

namespace trestle {

void cpu_pause();

}  // namespace trestle
