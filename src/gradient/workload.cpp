#include "gradient/workload.h"

namespace trestle {

double GradientWorkload::forward_s() const {
  double sum = 0;
  for (const GradientTensor& tensor : tensors) sum += tensor.forward_s;
  return sum;
}

double GradientWorkload::backward_s() const {
  double sum = 0;
  for (const GradientTensor& tensor : tensors) sum += tensor.backward_s;
  return sum;
}

uint64_t GradientWorkload::bytes() const {
  uint64_t sum = 0;
  for (const GradientTensor& tensor : tensors) sum += tensor.bytes;
  return sum;
}

std::vector<double> GradientWorkload::ready_s() const {
  std::vector<double> ready(tensors.size());
  double now = forward_s();
  for (size_t i = tensors.size(); i-- > 0;) ready[i] = now += tensors[i].backward_s;
  return ready;
}

}  // namespace trestle
