#include "machine/layout.h"

namespace trestle {

Result<MachineLayout> read_layout(const KernelFiles& files) {
  if (files == KernelFiles{}) {
    auto layout = layout_from_hwloc();
    if (layout.ok()) return layout;
  }
  return layout_from_files(files);
}

}  // namespace trestle
