#include "gradient/policy/split_free.h"

#include <algorithm>
#include <limits>

#include "gradient/blocks.h"
#include "gradient/copies.h"
#include "gradient/policy/optimal.h"

namespace trestle {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

// Computes F[.][g] for growing g (split_free.h), and notes from which i each value came.
class GatherSearch {
 public:
  GatherSearch(const GradientBlocks& blocks, const MessageCost& cost)
      : blocks_(blocks), cost_(cost), start_(blocks.first_is_empty() ? 1 : 0) {
    row_.assign(blocks.size() + 1, kNever);
    row_[start_] = blocks.forward_upto_s[start_];
  }

  std::vector<TensorGroup> run() {
    const size_t end = blocks_.size();
    const double forward_s = blocks_.forward_upto_s[end];
    const double last_s = forward_s - blocks_.forward_upto_s[end - 1];
    double least = kNever;
    size_t groups = 0;
    for (size_t g = 1; g <= end - start_; ++g) {
      if (last_all_gather_s(g, end) + last_s >= least || least <= forward_s) break;
      advance(g);
      if (row_[end] >= least) continue;
      least = row_[end];
      groups = g;
    }
    return backtrack(groups);
  }

 private:
  double last_all_gather_s(size_t g, size_t j) const {
    return static_cast<double>(g) * cost_.startup_s + cost_.per_byte_s * static_cast<double>(blocks_.bytes_upto[j]);
  }

  void advance(size_t g) {
    const std::vector<double>& forward = blocks_.forward_upto_s;
    std::vector<double> next(row_.size(), kNever);
    std::vector<uint32_t> from(row_.size(), 0);
    for (size_t j = start_ + g; j < row_.size(); ++j) {
      const double arrived = last_all_gather_s(g, j);
      for (size_t i = j; i-- > start_;) {
        const double group_s = forward[j] - forward[i];
        if (arrived + group_s >= next[j]) break;  // a group of more tensors only ends later
        const double end = std::max(row_[i], arrived) + group_s;
        if (end >= next[j]) continue;
        next[j] = end;
        from[j] = static_cast<uint32_t>(i);
      }
    }
    row_ = std::move(next);
    from_.push_back(std::move(from));
  }

  std::vector<TensorGroup> backtrack(size_t groups) const {
    std::vector<TensorGroup> found;
    size_t end = blocks_.size();
    for (size_t g = groups; g > 0; --g) {
      const size_t begin = from_[g - 1][end];
      found.push_back(blocks_.group(begin, end));
      end = begin;
    }
    if (end > 0) found.push_back(blocks_.group(0, end));
    std::reverse(found.begin(), found.end());
    return found;
  }

  const GradientBlocks& blocks_;
  const MessageCost cost_;
  const size_t start_;       // a block of no bytes at the beginning waits for nothing
  std::vector<double> row_;  // F[j][g] of the present g
  std::vector<std::vector<uint32_t>> from_;
};

}  // namespace

std::vector<TensorGroup> optimal_gather_groups(const GradientWorkload& workload, const MessageCost& all_gather) {
  const GradientBlocks blocks = blocks_of(workload);
  return GatherSearch(blocks, all_gather).run();
}

GradientPlan plan_split_free(const GradientWorkload& workload, const GradientLink& link) {
  GradientPlan plan;
  plan.shape = StepShape::kSplit;
  // Every message is copied once, also that of one tensor.
  const auto copied = [&link](const MessageCost& cost) { return with_copies(cost, link.copy_per_byte_s, 1); };
  plan.groups = plan_optimal(workload, copied(link.reduce_scatter)).groups;
  plan.gather_groups = optimal_gather_groups(workload, copied(link.all_gather));
  return plan;
}

}  // namespace trestle
