// Built if hwloc was not found.
#include "cli/run/cores/cores.h"

namespace trestle {

Result<std::vector<Core>> usable_cores() {
  return cores_from_files("/sys/devices/system/cpu", usable_processors());
}

}  // namespace trestle
