// NvlinkPairs: which GPUs of this host NVLinks join, as NVML says. It also knows of GPUs that CUDA_VISIBLE_DEVICES
// hides from this process.
//
// Any thread. NVML is loaded and asked at the first question, which may take long where the driver is not awake yet.
// Its answer is kept, also that it failed: links that come up later are not seen.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "machine/gpu/gpu.h"
#include "machine/gpu/nvml_gpus.h"

namespace trestle {

class NvlinkPairs {
 public:
  explicit NvlinkPairs(std::string library = kNvmlLibrary) : library_(std::move(library)) {}
  explicit NvlinkPairs(NvmlReading reading) : reading_(std::move(reading)) {}
  // The one that asks NVML's library of the driver.
  static NvlinkPairs& process();
  // Two GPUs by PCI address ("0000:3b:00.0"). nullopt: NVML is missing, or does not know the links of both. No links:
  // `nvlinks` is 0.
  std::optional<GpuLink> between(const std::string& a, const std::string& b);

 private:
  const std::string library_;
  Mutex mutex_;
  std::optional<NvmlReading> reading_ TRESTLE_GUARDED_BY(mutex_);  // nullopt: not asked yet
};

}  // namespace trestle
