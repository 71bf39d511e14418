// Which pairs of GPUs NVLinks join. Internal to src/machine/gpu. Pure; any thread.
#pragma once

#include <vector>

#include "machine/gpu/gpu.h"
#include "machine/gpu/nvml_gpus.h"

namespace trestle {

// `gpus`: by PCI address. Those that the reading does not have have no link. A pair whose ends tell different numbers
// has the greater one: an end that is lost tells none.
std::vector<GpuLink> links_between(const std::vector<Gpu>& gpus, const NvmlReading& reading);

}  // namespace trestle
