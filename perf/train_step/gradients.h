// The gradients of a rank: the memory that the scheduler works on. If they are verified, also what this rank
// contributes and what every step must bring back.
//
// Elements are whole numbers as floats, so their sums are exact in any order. Steps alternate between two sets of
// values, so that a result of the step before is wrong too. Owned and used by the thread that replays the rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gradient/workload.h"

namespace trestle::perf {

class StepGradients {
 public:
  static constexpr uint64_t kVariants = 2;

  struct Wrong {
    uint32_t tensor = 0;
    size_t element = 0;
    float got = 0, expected = 0;
  };

  // apart: no tensor lies beside another one. The workload must live longer.
  StepGradients(const GradientWorkload& workload, bool apart, bool verified, int rank);

  // Bytes of memory for these arguments.
  static double bytes_needed(const GradientWorkload& workload, bool verified);

  float* tensor(uint32_t tensor) { return &memory_[offsets_[tensor]]; }
  size_t count(uint32_t tensor) const { return counts_[tensor]; }

  // What the rank contributes to steps of a variant, and room for the sum over all ranks, which the owner makes by a
  // plain all-reduce. Both have `elements()` elements.
  const float* contributed(uint64_t variant) const { return contributed_[variant].data(); }
  float* expected(uint64_t variant) { return expected_[variant].data(); }
  size_t elements() const { return memory_.size(); }

  // Writes the rank's contribution. Steps count from 0.
  void fill(uint32_t tensor, uint64_t step);
  // Compares the tensor with what the step must bring. Returns the number of wrong elements; first() has the first one
  // ever found.
  uint64_t compare(uint32_t tensor, uint64_t step);
  const std::optional<Wrong>& first() const { return first_; }

 private:
  std::vector<size_t> offsets_, counts_;
  std::vector<float> memory_;
  std::vector<float> contributed_[kVariants], expected_[kVariants];
  std::optional<Wrong> first_;
};

// "tensor 3 (fc.weight), element 7: 12 instead of 13".
std::string wrong_text(const StepGradients::Wrong& wrong, const GradientWorkload& workload);

}  // namespace trestle::perf
