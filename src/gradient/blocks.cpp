#include "gradient/blocks.h"

namespace trestle {

GradientBlocks blocks_of(const GradientWorkload& workload) {
  const std::vector<double> ready = workload.ready_s();
  const double forward_s = workload.forward_s();
  GradientBlocks blocks;
  uint64_t bytes = 0;
  double now = 0;
  for (size_t i = 0; i < workload.tensors.size(); ++i) {
    const GradientTensor& tensor = workload.tensors[i];
    if (i == 0 || tensor.bytes > 0) {
      blocks.first.push_back(static_cast<uint32_t>(i));
      blocks.bytes_upto.push_back(bytes);
      blocks.forward_upto_s.push_back(now);
      blocks.ready_s.push_back(ready[i] - forward_s);
    }
    bytes += tensor.bytes;
    now += tensor.forward_s;
  }
  blocks.first.push_back(static_cast<uint32_t>(workload.tensors.size()));
  blocks.bytes_upto.push_back(bytes);
  blocks.forward_upto_s.push_back(now);
  return blocks;
}

}  // namespace trestle
