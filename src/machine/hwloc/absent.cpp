// Built if hwloc was not found.
#include "machine/layout.h"

namespace trestle {

Result<MachineLayout> layout_from_hwloc() {
  return Error{Code::kInvalidUsage, "built without hwloc"};
}

}  // namespace trestle
