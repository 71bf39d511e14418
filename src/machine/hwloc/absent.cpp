// Built if hwloc was not found.
#include "machine/gpu/gpu_hints.h"
#include "machine/layout.h"

namespace trestle {

Result<MachineLayout> layout_from_hwloc() {
  return Error{Code::kInvalidUsage, "built without hwloc"};
}

std::vector<PciHint> hints_from_hwloc(const std::string&) {
  return {};
}

}  // namespace trestle
