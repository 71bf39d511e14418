// What a thread that spins tells its processor, so that a sibling may run faster meanwhile. CMake chooses the file by
// processor. Some 10 to 50 ns; any thread.
#pragma once

namespace trestle {

void cpu_pause();

}  // namespace trestle
