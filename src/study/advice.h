// Advice for network designers, for an all-reduce in the paper's model: whether the bandwidths of neighbouring
// dimensions fit, how much bandwidth the baseline wastes, how much of it better schedules recover, and where one more
// Gb/s helps most (Themis, arXiv 2110.04478, section 6.3). Pure, any thread; equal requests give equal advice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// Compares the bandwidth of the outer of two neighbouring dimensions with the bytes that the baseline sends over it.
enum class Provision : uint8_t { kJustEnough, kOver, kUnder };
const char* to_string(Provision provision);

// Dimensions K = inner and K + 1, of sizes P and bandwidths BW.
struct PairAdvice {
  uint8_t inner = 0;
  // The paper's rule. BW_K = P_K * BW_K+1: just enough; less: over-provisioned; more: under-provisioned.
  Provision paper = Provision::kJustEnough;
  double paper_ratio = 0;  // BW_K / (P_K * BW_K+1)
  // The rule by the baseline's bytes: r = [f_K+1 / (P_K * BW_K+1)] / [f_K / BW_K]. f is half of the fraction of its
  // data that an all-reduce sends: (P - 1) / P, or 1 / 2 if switches reduce (sched/model/cost.h). r = 1: both links are
  // busy equally long, just enough. r < 1: K + 1 idles, it is over-provisioned. r > 1: K idles, K + 1 is
  // under-provisioned. Compared exactly.
  Provision exact = Provision::kJustEnough;
  double r = 0;
  double just_enough_gbps = 0;  // BW_K+1 for which r would be 1
};

struct LinkAdvice {
  double utilization = 0;  // 0 to 1
  double wasted_gbps = 0;  // bandwidth * (1 - utilization)
};

struct PolicyAdvice {
  // As in TRESTLE_SCHED. Links choose the smallest chunk first if the policy leaves the order open.
  std::string policy;
  double time_ns = 0;
  double utilization = 0;         // bytes sent / (time * sum of the bandwidths)
  double over_ideal = 0;          // time / time with all links always busy
  double recovered = 0;           // part of the baseline's time above the ideal that is saved, 0 to 1
  std::vector<LinkAdvice> links;  // per dimension
};

// The gain from one more Gb/s on one dimension.
struct MarginalAdvice {
  uint8_t dimension = 0;
  double baseline_saved_ns = 0;  // of the baseline's predicted time; negative: it became longer
  // Of the best policy's predicted time: the better of planning again and of not using the additional bandwidth.
  double best_saved_ns = 0;
  // Of the fluid bound (sched/policy/fluid_bound.h): the gain of a schedule that fills every link.
  // best_saved_ns differs from this only because the search is not exhaustive.
  double bound_saved_ns = 0;
};

struct Advice {
  Topology topology;  // dimensions of size 1 dropped
  uint64_t bytes = 0;
  uint32_t chunks = 0;
  double ideal_time_ns = 0;            // with all links always busy
  double fluid_bound_ns = 0;           // no schedule is faster
  std::vector<PairAdvice> pairs;       // dimensions - 1
  std::vector<PolicyAdvice> policies;  // all policies, the baseline first
  size_t best = 0;                     // the fastest policy; the first of equal ones
  std::vector<MarginalAdvice> marginal;
  size_t helps_baseline = 0;  // the entry of `marginal` that saves most; the innermost of equal ones
  size_t helps_best = 0;
  // By the fluid bound one more Gb/s saves the same on every dimension, within 2 %.
  bool alike = false;
};

struct AdviceRequest {
  Topology topology;                   // every dimension with its bandwidth
  uint64_t bytes = uint64_t{1} << 28;  // resident per rank before the all-reduce
  uint32_t chunks = 64;
};

// One entry per pair of neighbouring dimensions. Every dimension has a bandwidth.
std::vector<PairAdvice> advise_pairs(const Topology& topology);

// Errors as those of run_paper (study/paper.h).
Result<Advice> advise(const AdviceRequest& request);

}  // namespace trestle
