#include "perf/train_step/gradients.h"

#include <cstdio>
#include <cstring>

namespace trestle::perf {
namespace {

constexpr size_t kGap = 16;  // elements between tensors that lie apart: a cache line

// Sums over up to 2^15 ranks stay below 2^24, so they are exact.
float value(size_t element, uint64_t variant, int rank) {
  return static_cast<float>(element % 191 + static_cast<size_t>(rank % 61) + 256 * variant);
}

}  // namespace

StepGradients::StepGradients(const GradientWorkload& workload, bool apart, bool verified, int rank) {
  size_t end = 0;
  for (const GradientTensor& tensor : workload.tensors) {
    offsets_.push_back(end);
    counts_.push_back(tensor.bytes / sizeof(float));
    end += counts_.back() + (apart ? kGap : 0);
  }
  memory_.resize(end + 1);  // a tensor of no elements also has a place
  if (!verified) return;
  for (uint64_t variant = 0; variant < kVariants; ++variant) {
    contributed_[variant].resize(memory_.size());
    expected_[variant].resize(memory_.size());
    for (size_t i = 0; i < memory_.size(); ++i) contributed_[variant][i] = value(i, variant, rank);
  }
}

double StepGradients::bytes_needed(const GradientWorkload& workload, bool verified) {
  const double gaps = static_cast<double>(kGap * sizeof(float) * workload.tensors.size());
  return (static_cast<double>(workload.bytes()) + gaps) * (verified ? 1 + 2 * kVariants : 1);
}

void StepGradients::fill(uint32_t tensor, uint64_t step) {
  const float* const from = &contributed_[step % kVariants][offsets_[tensor]];
  std::memcpy(this->tensor(tensor), from, counts_[tensor] * sizeof(float));
}

uint64_t StepGradients::compare(uint32_t tensor, uint64_t step) {
  const float* const got = this->tensor(tensor);
  const float* const expected = &expected_[step % kVariants][offsets_[tensor]];
  if (std::memcmp(got, expected, counts_[tensor] * sizeof(float)) == 0) return 0;
  uint64_t wrong = 0;
  for (size_t i = 0; i < counts_[tensor]; ++i) {
    if (std::memcmp(got + i, expected + i, sizeof(float)) == 0) continue;
    if (!first_) first_ = Wrong{tensor, i, got[i], expected[i]};
    ++wrong;
  }
  return wrong;
}

std::string wrong_text(const StepGradients::Wrong& wrong, const GradientWorkload& workload) {
  char values[96];
  std::snprintf(values, sizeof values, ", element %zu: %.9g instead of %.9g", wrong.element,
                static_cast<double>(wrong.got), static_cast<double>(wrong.expected));
  const std::string& name = workload.tensors[wrong.tensor].name;
  return "tensor " + std::to_string(wrong.tensor) + (name.empty() ? "" : " (" + name + ")") + values;
}

}  // namespace trestle::perf
