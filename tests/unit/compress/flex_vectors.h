// Worked cases of FLEX, computed independently of this code. Test support.
#pragma once

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

}  // namespace trestle
