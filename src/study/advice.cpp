#include "study/advice.h"

#include <algorithm>

#include "base/check.h"
#include "base/wide.h"
#include "sched/policy/policies.h"
#include "study/paper.h"

namespace trestle {
namespace {

// Half of the fraction of its data that an all-reduce sends on a dimension.
struct SentPart {
  uint64_t numerator = 0;
  uint64_t denominator = 1;
};

SentPart sent_part(const Dimension& dimension) {
  if (dimension.in_network_reduction) return {1, 2};
  const auto size = static_cast<uint64_t>(dimension.size);
  return {size - 1, size};
}

Provision verdict(Wide busy_outer, Wide busy_inner) {
  if (busy_outer == busy_inner) return Provision::kJustEnough;
  return busy_outer < busy_inner ? Provision::kOver : Provision::kUnder;
}

PairAdvice advise_pair(const Topology& topology, size_t inner) {
  const Dimension& in = topology.dimensions[inner];
  const Dimension& out = topology.dimensions[inner + 1];
  CHECK(in.size > 1 && out.size > 1 && in.bandwidth_mbps > 0 && out.bandwidth_mbps > 0,
        "advice on a dimension of size 1 or without bandwidth");
  const SentPart in_part = sent_part(in);
  const SentPart out_part = sent_part(out);
  const auto in_size = static_cast<uint64_t>(in.size);
  const Wide busy_outer = Wide{out_part.numerator} * in_part.denominator * in.bandwidth_mbps;
  const Wide busy_inner = Wide{in_part.numerator} * out_part.denominator * in_size * out.bandwidth_mbps;
  PairAdvice pair;
  pair.inner = static_cast<uint8_t>(inner);
  pair.exact = verdict(busy_outer, busy_inner);
  pair.r = static_cast<double>(busy_outer) / static_cast<double>(busy_inner);
  pair.just_enough_gbps = pair.r * static_cast<double>(out.bandwidth_mbps) / 1000;
  pair.paper = verdict(in.bandwidth_mbps, Wide{in_size} * out.bandwidth_mbps);
  pair.paper_ratio = static_cast<double>(in.bandwidth_mbps) / (static_cast<double>(in_size * out.bandwidth_mbps));
  return pair;
}

Result<PaperResult> predict(const AdviceRequest& request, const Topology& topology, const std::string& policy) {
  PaperCase paper_case;
  paper_case.topology = topology;
  paper_case.bytes = request.bytes;
  paper_case.chunks = request.chunks;
  paper_case.policy = policy;
  return run_paper(paper_case);
}

PolicyAdvice read_policy(const std::string& policy, const PaperResult& result) {
  PolicyAdvice advice;
  advice.policy = policy;
  advice.time_ns = result.time.ns();
  advice.utilization = result.utilization;
  advice.over_ideal = result.time.ns() / result.ideal_time_ns;
  advice.links.resize(result.topology.dimensions.size());
  for (const PaperLink& link : result.links) {
    const double gbps = static_cast<double>(result.topology.dimensions[link.dimension].bandwidth_mbps) / 1000;
    advice.links[link.dimension] = {link.utilization, gbps * (1 - link.utilization)};
  }
  return advice;
}

Status add_policies(const AdviceRequest& request, Advice& advice) {
  for (const Policy& policy : policies()) {
    const std::string name(policy.name);
    const PaperResult result = TRY(predict(request, request.topology, name));
    if (advice.policies.empty()) {
      CHECK(policy.plan == plan_baseline, "the baseline is not the first policy");
      advice.topology = result.topology;
      advice.ideal_time_ns = result.ideal_time_ns;
      advice.fluid_bound_ns = result.fluid_bound_ns;
    }
    advice.policies.push_back(read_policy(name, result));
  }
  const double lost_ns = advice.policies.front().time_ns - advice.ideal_time_ns;
  for (size_t p = 0; p < advice.policies.size(); ++p) {
    PolicyAdvice& each = advice.policies[p];
    if (lost_ns > 0) each.recovered = (advice.policies.front().time_ns - each.time_ns) / lost_ns;
    if (each.time_ns < advice.policies[advice.best].time_ns) advice.best = p;
  }
  return {};
}

Status add_marginal(const AdviceRequest& request, Advice& advice) {
  const PolicyAdvice& baseline = advice.policies.front();
  const PolicyAdvice& best = advice.policies[advice.best];
  double least_ns = advice.fluid_bound_ns;
  double most_ns = 0;
  for (size_t d = 0; d < advice.topology.dimensions.size(); ++d) {
    Topology faster = advice.topology;
    faster.dimensions[d].bandwidth_mbps += 1000;
    MarginalAdvice marginal;
    marginal.dimension = static_cast<uint8_t>(d);
    const PaperResult planned = TRY(predict(request, faster, baseline.policy));
    marginal.baseline_saved_ns = baseline.time_ns - planned.time.ns();
    const PaperResult replanned = TRY(predict(request, faster, best.policy));
    marginal.best_saved_ns = std::max(0.0, best.time_ns - replanned.time.ns());
    marginal.bound_saved_ns = advice.fluid_bound_ns - replanned.fluid_bound_ns;
    least_ns = std::min(least_ns, marginal.bound_saved_ns);
    most_ns = std::max(most_ns, marginal.bound_saved_ns);
    advice.marginal.push_back(marginal);
    if (marginal.baseline_saved_ns > advice.marginal[advice.helps_baseline].baseline_saved_ns)
      advice.helps_baseline = d;
    if (marginal.best_saved_ns > advice.marginal[advice.helps_best].best_saved_ns) advice.helps_best = d;
  }
  advice.alike = advice.marginal.size() > 1 && least_ns > 0.98 * most_ns;
  return {};
}

}  // namespace

const char* to_string(Provision provision) {
  switch (provision) {
    case Provision::kJustEnough:
      return "just enough";
    case Provision::kOver:
      return "over-provisioned";
    case Provision::kUnder:
      return "under-provisioned";
  }
  return "invalid";
}

std::vector<PairAdvice> advise_pairs(const Topology& topology) {
  std::vector<PairAdvice> pairs;
  for (size_t d = 0; d + 1 < topology.dimensions.size(); ++d) pairs.push_back(advise_pair(topology, d));
  return pairs;
}

Result<Advice> advise(const AdviceRequest& request) {
  Advice advice;
  advice.bytes = request.bytes;
  advice.chunks = request.chunks;
  TRY(add_policies(request, advice));
  advice.pairs = advise_pairs(advice.topology);
  TRY(add_marginal(request, advice));
  return advice;
}

}  // namespace trestle
