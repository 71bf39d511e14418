#include "gradient/policy/split_shared.h"

#include <algorithm>
#include <limits>

#include "gradient/blocks.h"
#include "gradient/copies.h"
#include "gradient/policy/buffer_tuner.h"
#include "gradient/policy/by_sizes.h"
#include "gradient/policy/dear.h"
#include "gradient/policy/split_free.h"
#include "gradient/timeline.h"

namespace trestle {
namespace {

struct Label {
  double reduced_s = 0;  // R
  double forward_s = 0;  // F
  uint32_t from = 0;     // block at which the last group begins
  uint32_t before = 0;   // label of (from, g - 1)
};

using Labels = std::vector<Label>;

// Sorts the labels, and drops those that another one beats or equals in both times.
void keep_the_best(Labels& labels) {
  std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) {
    return a.reduced_s != b.reduced_s ? a.reduced_s < b.reduced_s
                                      : (a.forward_s != b.forward_s ? a.forward_s < b.forward_s : a.from < b.from);
  });
  size_t kept = 0;
  for (const Label& label : labels) {
    if (kept == 0 || label.forward_s < labels[kept - 1].forward_s) labels[kept++] = label;
  }
  labels.resize(kept);
}

void thin(Labels& labels) {
  const size_t count = labels.size();
  if (count <= kMostLabels) return;
  for (size_t i = 0; i < kMostLabels; ++i) labels[i] = labels[i * (count - 1) / (kMostLabels - 1)];
  labels.resize(kMostLabels);
}

// Drops the labels that one of `best` beats or equals in both times, and adds the others to `best`. Both lists are as
// keep_the_best leaves them.
void keep_what_is_new(Labels& labels, Labels& best) {
  std::erase_if(labels, [&best](const Label& label) {
    const auto later = [](double reduced_s, const Label& other) { return reduced_s < other.reduced_s; };
    const auto behind = std::upper_bound(best.begin(), best.end(), label.reduced_s, later);
    return behind != best.begin() && std::prev(behind)->forward_s <= label.forward_s;
  });
  best.insert(best.end(), labels.begin(), labels.end());
  keep_the_best(best);
}

class SharedSearch {
 public:
  SharedSearch(const GradientBlocks& blocks, const GradientLink& link, double to_beat_s)
      : blocks_(blocks),
        link_(link),
        start_(blocks.first_is_empty() ? 1 : 0),
        to_beat_s_(to_beat_s),
        best_(blocks.size() + 1) {}

  // Empty: nothing beats `to_beat_s`.
  std::vector<TensorGroup> run() {
    const size_t end = blocks_.size();
    std::vector<Labels> first(end + 1);
    first[start_].push_back({blocks_.ready_s[0], blocks_.forward_upto_s[start_], 0, 0});
    levels_.push_back(std::move(first));
    size_t best_groups = 0;
    uint32_t best_label = 0;
    for (size_t g = 1; g <= end - start_ && advance(g); ++g) {
      const Labels& ends = levels_[g][end];
      for (uint32_t l = 0; l < ends.size(); ++l) {
        const double step_s = ends[l].reduced_s + ends[l].forward_s;
        if (step_s >= to_beat_s_) continue;
        to_beat_s_ = step_s;
        best_groups = g;
        best_label = l;
      }
    }
    return best_groups == 0 ? std::vector<TensorGroup>() : backtrack(best_groups, best_label);
  }

 private:
  double after(const MessageCost& cost, size_t g, size_t j) const {
    return static_cast<double>(g) * cost.startup_s + cost.per_byte_s * static_cast<double>(blocks_.bytes_upto[j]);
  }

  // Whether no plan with this label of (j, g) can beat to_beat_s_. Unless j is the end, at least one more group
  // follows, which begins at j.
  bool hopeless(const Label& label, size_t g, size_t j) const {
    const size_t end = blocks_.size();
    const std::vector<double>& forward = blocks_.forward_upto_s;
    double reduced = label.reduced_s;
    double ended = label.forward_s + forward[end] - forward[j];
    if (j < end) {
      reduced = std::max(reduced, blocks_.ready_s[j] + after(link_.reduce_scatter, g + 1, j + 1));
      ended = std::max(ended, after(link_.all_gather, g + 1, end) + forward[end] - forward[end - 1]);
    }
    return reduced + ended >= to_beat_s_;
  }

  // Makes the labels of g groups. Returns whether there is any.
  bool advance(size_t g) {
    const std::vector<Labels>& before = levels_.back();
    std::vector<Labels> next(before.size());
    bool any = false;
    for (size_t j = start_ + g; j < next.size(); ++j) {
      extend(before, g, j, next[j]);
      keep_the_best(next[j]);
      thin(next[j]);
      keep_what_is_new(next[j], best_[j]);
      any = any || !next[j].empty();
    }
    levels_.push_back(std::move(next));
    return any;
  }

  void extend(const std::vector<Labels>& before, size_t g, size_t j, Labels& made) const {
    const std::vector<double>& forward = blocks_.forward_upto_s;
    const double rest_s = forward.back() - forward[j];
    const double gathered = after(link_.all_gather, g, j);
    const double reduced = after(link_.reduce_scatter, g, j);
    for (size_t i = j; i-- > start_;) {
      const double group_s = forward[j] - forward[i];
      // A group of more tensors only ends later. The rest of the forward pass and the backward pass are added.
      if (gathered + group_s + rest_s + blocks_.ready_s[0] >= to_beat_s_) break;
      for (uint32_t l = 0; l < before[i].size(); ++l) {
        const Label& label = before[i][l];
        const Label longer{std::max(label.reduced_s, blocks_.ready_s[i] + reduced),
                           std::max(label.forward_s, gathered) + group_s, static_cast<uint32_t>(i), l};
        if (!hopeless(longer, g, j)) made.push_back(longer);
      }
    }
  }

  std::vector<TensorGroup> backtrack(size_t groups, uint32_t label) const {
    std::vector<TensorGroup> found;
    size_t end = blocks_.size();
    for (size_t g = groups; g > 0; --g) {
      const Label& last = levels_[g][end][label];
      found.push_back(blocks_.group(last.from, end));
      end = last.from;
      label = last.before;
    }
    if (end > 0) found.push_back(blocks_.group(0, end));
    std::reverse(found.begin(), found.end());
    return found;
  }

  const GradientBlocks& blocks_;
  const GradientLink& link_;
  const size_t start_;  // a block of no bytes at the beginning waits for nothing
  double to_beat_s_;
  std::vector<Labels> best_;                 // [j], over all g so far: with more groups, what follows is never earlier
  std::vector<std::vector<Labels>> levels_;  // [g][j]
};

GradientPlan shared_plan(std::vector<TensorGroup> groups) {
  GradientPlan plan;
  plan.shape = StepShape::kSplit;
  plan.groups = std::move(groups);
  plan.gather_groups = plan.groups;
  return plan;
}

// The fastest of simpler plans. The better it is, the less is searched.
GradientPlan first_guess(const GradientWorkload& workload, const GradientLink& link, double& step_s) {
  const GradientPlan free = plan_split_free(workload, link);
  GradientPlan best;
  step_s = std::numeric_limits<double>::infinity();
  const auto offer = [&](std::vector<TensorGroup> groups) {
    GradientPlan plan = shared_plan(std::move(groups));
    const double time_s = time_step(plan, workload, link).iteration_s;
    if (time_s >= step_s) return;
    step_s = time_s;
    best = std::move(plan);
  };
  offer(free.gather_groups);
  offer(free.groups);
  if (link.copy_per_byte_s > 0) offer(single_groups(static_cast<uint32_t>(workload.tensors.size())));  // not copied
  for (uint64_t mib = 1; mib <= kMostBufferMib; ++mib) offer(dear_groups(workload, mib << 20));
  return best;
}

// The search counts a copy of every byte, unless all tensors lie together. So its plan takes no longer than the search
// predicts.
GradientLink searched_link(const GradientWorkload& workload, const GradientLink& link) {
  const TensorGroup all{0, static_cast<uint32_t>(workload.tensors.size() - 1)};
  const uint32_t copies = MessageCopies(workload).of(MessageKind::kReduceScatter, all, false);
  GradientLink searched = link;
  for (MessageCost* half : {&searched.reduce_scatter, &searched.all_gather})
    *half = with_copies(*half, link.copy_per_byte_s, copies);
  return searched;
}

}  // namespace

GradientPlan plan_split_shared(const GradientWorkload& workload, const GradientLink& link) {
  double guess_s = 0;
  GradientPlan guess = first_guess(workload, link, guess_s);
  const GradientBlocks blocks = blocks_of(workload);
  const GradientLink searched = searched_link(workload, link);
  std::vector<TensorGroup> groups = SharedSearch(blocks, searched, guess_s).run();
  return groups.empty() ? guess : shared_plan(std::move(groups));
}

}  // namespace trestle
