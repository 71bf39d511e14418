#include "machine/gpu/nvlink_pairs.h"

#include "base/fork.h"
#include "machine/gpu/nvlinks.h"

namespace trestle {

NvlinkPairs& NvlinkPairs::process() {
  static constinit PerProcess<NvlinkPairs> pairs;
  return pairs.get();
}

std::optional<GpuLink> NvlinkPairs::between(const std::string& a, const std::string& b) {
  const MutexLock lock(mutex_);
  if (!reading_) reading_ = read_nvml(library_);
  return link_between(*reading_, a, b);
}

}  // namespace trestle
