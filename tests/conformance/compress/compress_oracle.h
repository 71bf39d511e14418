// What a compressed all-reduce must give: all ranks' steps computed in one place, word by word as the specification
// has them. Each rank has one and runs it beside its own.
#pragma once

#include <gtest/gtest.h>
#include <trestle/compress.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace compressed {

using Floats = std::vector<float>;

// The gradient of a rank and step: integers, so that every sum is exact. Many are equal, and many are 0.
Floats gradient_of(int rank, uint64_t step, size_t count);

struct Case {
  int ranks = 1;
  size_t count = 0;
  double ratio = 1;
  int method = trestleTopKStar;  // not trestleTopKAuto
  int collective = trestleTopKAny;
  int op = trestleAvg;
  std::vector<size_t> layers{};
  uint64_t steps = 0;  // before the first one

  trestleTopKConfig_t config() const;  // points to the case's layers
};
std::ostream& operator<<(std::ostream& out, const Case& one);

// All methods, each with a collective that can carry it out.
struct Way {
  int method;
  int collective;
};
constexpr Way kWays[] = {{trestleTopKStar, trestleTopKRing},        {trestleTopKStar, trestleTopKTree},
                         {trestleTopKVar, trestleTopKRing},         {trestleTopKVar, trestleTopKTree},
                         {trestleTopKExact, trestleTopKAllGather},  {trestleTopKLayerwise, trestleTopKAllGather},
                         {trestleTopKMultiSampling, trestleTopKAny}};

class Oracle {
 public:
  explicit Oracle(const Case& one) : case_(one), residuals_(one.ranks, Floats(one.count)), step_(one.steps) {}

  // The next step with these gradients, one per rank.
  void step(const std::vector<Floats>& gradients);
  // The next step has failed: the residuals have the gradients, and all else is as it was.
  void fail(const std::vector<Floats>& gradients);
  const Floats& result() const { return result_; }
  const Floats& residual(int rank) const { return residuals_[static_cast<size_t>(rank)]; }
  int root() const { return root_; }                                         // -1: each rank sent its own
  double gain(int rank) const { return gains_[static_cast<size_t>(rank)]; }  // exact for integers
  size_t elements() const { return elements_; }

 private:
  std::vector<uint32_t> chosen(const Floats& whole) const;

  const Case case_;
  std::vector<Floats> residuals_;
  Floats result_;
  std::vector<double> gains_;
  uint64_t step_;
  int root_ = -1;
  size_t elements_ = 0;
};

// "" if equal; -0 is 0, and NaNs are equal.
std::string difference(const Floats& is, const Floats& should);
trestleTopK_t make(trestleComm_t comm, const Case& one);
trestleTopKStats_t stats_of(trestleTopK_t topk);

}  // namespace compressed
