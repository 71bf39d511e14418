#include "gradient/copies.h"

namespace trestle {

MessageCopies::MessageCopies(const GradientWorkload& workload)
    : first_with_bytes_(workload.tensors.size()),
      apart_upto_(workload.tensors.size()),
      anywhere_upto_(workload.tensors.size()) {
  const auto count = static_cast<uint32_t>(workload.tensors.size());
  uint32_t apart = 0, anywhere = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const GradientTensor& tensor = workload.tensors[i];
    if (tensor.bytes > 0 && tensor.place != TensorPlace::kBehind) ++apart;
    if (tensor.bytes > 0 && tensor.place == TensorPlace::kAnywhere) ++anywhere;
    apart_upto_[i] = apart;
    anywhere_upto_[i] = anywhere;
  }
  uint32_t next = count;
  for (uint32_t i = count; i-- > 0;) first_with_bytes_[i] = next = workload.tensors[i].bytes > 0 ? i : next;
}

bool MessageCopies::together(const TensorGroup& group) const {
  const uint32_t first = first_with_bytes_[group.first];
  if (first > group.last) return true;  // no bytes
  const uint32_t before = first == 0 ? 0 : anywhere_upto_[first - 1];
  return apart_upto_[group.last] == apart_upto_[first] && anywhere_upto_[group.last] == before;
}

uint32_t MessageCopies::of(MessageKind kind, const TensorGroup& group, bool sharded) const {
  if (sharded) return 1;
  if (together(group)) return 0;
  return kind == MessageKind::kAllReduce ? 2 : 1;
}

bool shards_tensors(const GradientPlan& plan) {
  return plan.shape == StepShape::kSplit && plan.groups != plan.gather_groups;
}

}  // namespace trestle
