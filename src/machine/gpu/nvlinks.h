// Which pairs of GPUs NVLinks join. Internal to src/machine/gpu. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "machine/gpu/gpu.h"
#include "machine/gpu/nvml_gpus.h"

namespace trestle {

// `gpus`: by PCI address. GPUs that the reading lacks have no links. If the two ends of a pair report different numbers
// of links, the greater number counts: a lost end reports none.
std::vector<GpuLink> links_between(const std::vector<Gpu>& gpus, const NvmlReading& reading);

// Of two GPUs by PCI address. nullopt: the reading lacks one of them, or does not know whether links join them.
std::optional<GpuLink> link_between(const NvmlReading& reading, const std::string& a, const std::string& b);

}  // namespace trestle
