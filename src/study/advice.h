// Advice for designers of networks: whether the bandwidths of neighbouring dimensions fit each other, what the baseline
// wastes, what better schedules recover, and where one more Gb/s helps most (Themis, arXiv 2110.04478, section 6.3).
// In the paper's model, for an all-reduce. Pure, any thread; equal requests give equal advice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// How the bandwidth of the outer one of two neighbouring dimensions fits what the baseline sends over it.
enum class Provision : uint8_t { kJustEnough, kOver, kUnder };
const char* to_string(Provision provision);

// Dimensions K = inner and K + 1, of sizes P and bandwidths BW.
struct PairAdvice {
  uint8_t inner = 0;
  // The paper's rule: BW_K = P_K * BW_K+1 is just enough, less over-provisioned, more under-provisioned.
  Provision paper = Provision::kJustEnough;
  double paper_ratio = 0;  // BW_K / (P_K * BW_K+1)
  // By the bytes of the baseline: r = [f_K+1 / (P_K * BW_K+1)] / [f_K / BW_K], with f = (P - 1) / P, and 1 / 2 where
  // switches reduce (sched/model/cost.h: half of what an all-reduce sends). 1: both links are busy equally long, just
  // enough; less: K + 1 idles, over-provisioned; more: K idles, K + 1 is under-provisioned. Compared exactly.
  Provision exact = Provision::kJustEnough;
  double r = 0;
  double just_enough_gbps = 0;  // BW_K+1 with which r would be 1
};

struct LinkAdvice {
  double utilization = 0;  // 0 to 1
  double wasted_gbps = 0;  // bandwidth * (1 - utilization)
};

struct PolicyAdvice {
  std::string policy;  // as in TRESTLE_SCHED; links choose smallest chunk first where the policy leaves it open
  double time_ns = 0;
  double utilization = 0;         // bytes sent / (time * sum of the bandwidths)
  double over_ideal = 0;          // time / time with every link busy always
  double recovered = 0;           // of the baseline's time above the ideal, the part that is saved, 0 to 1
  std::vector<LinkAdvice> links;  // per dimension
};

// One more Gb/s on one dimension.
struct MarginalAdvice {
  uint8_t dimension = 0;
  double baseline_saved_ns = 0;  // of the baseline's predicted time; negative where it became longer
  // Of the best policy's: the faster of planning again and of leaving the faster link unused.
  double best_saved_ns = 0;
  // Of the fluid bound (sched/model/fluid_bound.h): what it is worth to whoever fills every link. best_saved_ns is this
  // but for what a search happens to find.
  double bound_saved_ns = 0;
};

struct Advice {
  Topology topology;  // dimensions of size 1 dropped
  uint64_t bytes = 0;
  uint32_t chunks = 0;
  double ideal_time_ns = 0;            // every link busy always
  double fluid_bound_ns = 0;           // no schedule is faster
  std::vector<PairAdvice> pairs;       // dimensions - 1
  std::vector<PolicyAdvice> policies;  // all, the baseline first
  size_t best = 0;                     // the fastest of them, of equal ones the first
  std::vector<MarginalAdvice> marginal;
  size_t helps_baseline = 0;  // the entry of marginal that saves most; of equal ones the innermost
  size_t helps_best = 0;
  bool alike = false;  // to who fills every link one more Gb/s is worth the same everywhere, within 2 %
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
