#include "gradient/policy/topk.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gradient/policy/split_free.h"

namespace trestle {
namespace {

constexpr double kFloatBytes = 4;
constexpr SparseCollective kSparseCollectives[] = {SparseCollective::kRing, SparseCollective::kTree,
                                                   SparseCollective::kAllGather};

SparseExchange exchange_of(const NetworkModel& network, double bytes, double ratio) {
  return {bytes, ratio, network.workers, network.startup_s, network.per_byte_s};
}

double time_of(const MessageCost& cost, double bytes) {
  return cost.startup_s + cost.per_byte_s * bytes;
}

// Whether an exchange of everything hides behind the passes.
class Passes {
 public:
  Passes(const GradientWorkload& workload, const NetworkModel& network)
      : network_(network),
        bytes_(static_cast<double>(workload.bytes())),
        backward_s_(workload.backward_s()),
        forward_s_(workload.forward_s()) {}

  bool hide(double ratio) const {
    const SparseHalves halves = sparse_halves(network_, sparse_collective(network_, bytes_, ratio), ratio);
    return time_of(halves.backward, bytes_) <= backward_s_ && time_of(halves.forward, bytes_) <= forward_s_;
  }

  // The largest ratio that hides is at one of these. With one collective, times grow with the ratio. So the largest
  // ratio is 1, or fills a pass, or is at or just below a ratio at which the rules change to another collective.
  std::vector<double> candidates() const {
    std::vector<double> ratios = {1};
    for (const SparseCollective collective : kSparseCollectives) {
      const SparseHalves unit = sparse_halves(network_, collective, 1);
      ratios.push_back(room(backward_s_, unit.backward));
      ratios.push_back(room(forward_s_, unit.forward));
      for (const SparseCollective other : kSparseCollectives) ratios.push_back(tie(collective, other));
    }
    return ratios;
  }

  double least() const { return kFloatBytes / bytes_; }  // one element

 private:
  double room(double pass_s, const MessageCost& unit) const {
    return (pass_s - unit.startup_s) / (unit.per_byte_s * bytes_);
  }
  // The ratio at which both collectives take equally long.
  double tie(SparseCollective a, SparseCollective b) const {
    const SparseHalves one = sparse_halves(network_, a, 1), two = sparse_halves(network_, b, 1);
    const double startups =
        one.backward.startup_s + one.forward.startup_s - two.backward.startup_s - two.forward.startup_s;
    const double per_byte =
        two.backward.per_byte_s + two.forward.per_byte_s - one.backward.per_byte_s - one.forward.per_byte_s;
    return startups / (per_byte * bytes_);
  }

  const NetworkModel& network_;
  const double bytes_;
  const double backward_s_;
  const double forward_s_;
};

Result<double> ratio_of(const StepPlanRequest& request) {
  if (request.arguments.ratio > 0) return request.arguments.ratio;
  if (const std::optional<double> hidden = hidden_ratio(request.workload, *request.network)) return *hidden;
  return invalid_argument("no ratio's exchange is hidden behind the passes: name one");
}

}  // namespace

SparseHalves sparse_halves(const NetworkModel& network, SparseCollective collective, double ratio) {
  const double n = network.workers;
  const double lg = std::log2(n);
  const double alpha = network.startup_s;
  const double sent = ratio * network.per_byte_s;
  switch (collective) {
    case SparseCollective::kRing:
      return {{alpha * (lg + n - 1), sent * (lg + (n - 1) / n)}, {alpha * (n - 1), sent * (n - 1) / n}};
    case SparseCollective::kTree:
      return {{2 * alpha * lg, 2 * sent * lg}, {alpha * lg, sent * lg}};
    case SparseCollective::kAllGather:
      return {{alpha * lg, 2 * sent * (n - 1)}, {}};
  }
  return {};
}

SparseCollective sparse_collective(const NetworkModel& network, double bytes, double ratio) {
  return chosen_by(sparse_rules(exchange_of(network, bytes, ratio)));
}

std::optional<double> hidden_ratio(const GradientWorkload& workload, const NetworkModel& network) {
  if (workload.bytes() == 0 || network.workers <= 1) return 1;
  const Passes passes(workload, network);
  std::optional<double> largest;
  for (const double candidate : passes.candidates()) {
    if (!std::isfinite(candidate)) continue;
    // Also a little below: the candidate is rounded, and where the rules change, the ratio just below may be the one.
    for (const double ratio : {candidate, candidate * (1 - 1e-12)}) {
      const bool possible = ratio <= 1 && ratio >= passes.least();
      if (possible && passes.hide(ratio)) largest = std::max(largest.value_or(0), ratio);
    }
  }
  return largest;
}

Result<PlannedStep> plan_topk(const StepPlanRequest& request) {
  if (!request.network)
    return invalid_argument(
        "needs the number of workers and what a message between two of them costs; the cost of an all-reduce "
        "alone does not tell");
  const double ratio = TRY(ratio_of(request));
  const auto bytes = static_cast<double>(request.workload.bytes());
  const SparseCollective collective = sparse_collective(*request.network, bytes, ratio);
  const SparseHalves halves = sparse_halves(*request.network, collective, ratio);
  const double selection_s = kSelectPerByte * bytes;
  const GradientLink link{{}, halves.backward, halves.forward};
  PlannedStep step;
  step.plan = plan_split_free(request.workload, link);
  step.time = time_step(step.plan, request.workload, link);
  step.time.iteration_s += selection_s;
  step.time.exposed_s += selection_s;
  if (collective == SparseCollective::kAllGather)
    std::erase_if(step.time.messages, [](const MessageTime& each) { return each.kind == MessageKind::kAllGather; });
  step.compressed = CompressedStep{ratio, to_string(collective), selection_s};
  return step;
}

NetworkModel as_ring(const MessageCost& all_reduce, uint32_t workers) {
  if (workers <= 1) return {};
  const double n = workers;
  return {all_reduce.startup_s / (2 * (n - 1)), all_reduce.per_byte_s * n / (2 * (n - 1)), 0, workers};
}

}  // namespace trestle
