// Worked cases of FLEX, computed independently of this code. Test support.
#pragma once

#include <array>
#include <vector>

#include "compress/choice.h"

namespace trestle {

struct ChoiceVector {
  SparseExchange exchange;
  double all_gather_s = 0;
  double ring_s = 0;
  double tree_s = 0;
  SparseCollective chosen = SparseCollective::kRing;
};

inline const std::vector<ChoiceVector>& choice_vectors() {
  static const std::vector<ChoiceVector> vectors = {
      {{46758048.0, 0.1, 8, 0.001, 8e-10}, 0.05536901376, 0.03476805824, 0.042665794560000005, SparseCollective::kRing},
      {{46758048.0, 0.001, 8, 0.001, 8e-10},
       0.0035236901376000003,
       0.0171776805824,
       0.009336657945600001,
       SparseCollective::kAllGather},
      {{102228128.0, 0.01, 8, 0.001, 1.6e-09},
       0.025899100672,
       0.024769337728000003,
       0.023720850432,
       SparseCollective::kTree},
      {{100000000.0, 0.01, 2, 0.0001, 1e-09}, 0.0021, 0.0023, 0.0033, SparseCollective::kAllGather},
  };
  return vectors;
}

// AR-Topk under STAR: two workers, two steps, six elements, c = 1/3, weights that follow the mean at a rate of 0.1.
struct ArTopkVectorStep {
  std::vector<std::vector<float>> gradients;  // per worker
  uint32_t root;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  std::vector<std::vector<float>> residuals;  // per worker, after the step
  std::vector<double> norms;                  // of each worker's own top k
  double gain_mean;
  double gain_root;
  std::array<double, 6> weights;
};

inline const std::vector<ArTopkVectorStep>& ar_topk_vector() {
  static const std::vector<ArTopkVectorStep> steps = {
      {{{1, -5, 2, 0, 3, 0.5}, {0, 1, 4, -1, 0, 2}},
       1,
       {2, 5},
       {3.0, 1.25},
       {{1.0, -5.0, 0.0, 0.0, 3.0, 0.0}, {0.0, 1.0, 0.0, -1.0, 0.0, 0.0}},
       {34.0, 20.0},
       0.5086855819339896,
       0.9090909090909091,
       {0.0, 0.0, -0.30000000000000004, 0.0, 0.0, -0.125}},
      {{{1, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 1, 0}},
       0,
       {1, 4},
       {-2.0, 2.0},
       {{2.0, 0.0, 0.0, 0.0, 0.0, 0.0}, {0.0, 0.0, 0.0, -1.0, 0.0, 0.0}},
       {34.0, 2.0},
       0.7807017543859649,
       0.8947368421052632,
       {0.0, 0.2, -0.30000000000000004, 0.0, -0.2, -0.125}},
  };
  return steps;
}

}  // namespace trestle
