// PlanInterpreter: runs the plans of a whole group over real float arrays in one thread, in a seeded random order of
// steps. A send is read as late as possible, when its receiver runs. For tests of the bits of results; the symbolic
// checker tests everything else.
//
// A value on a test's stack. Sums float32; all blocks have the same length. The plans should have passed check_plans.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "plan/cells.h"
#include "plan/plan.h"

namespace trestle {

class PlanInterpreter {
 public:
  PlanInterpreter(const std::vector<Plan>& plans, size_t elements_per_block)
      : plans_(plans), elements_(elements_per_block) {
    for (const Plan& plan : plans_) {
      cells_.emplace_back(plan);
      memory_.emplace_back((cells_.back().buffer_cells() + plan.scratch) * elements_);
      done_.emplace_back();
      for (const Step& step : plan.steps) done_.back().emplace_back(step.blocks, false);
      for (uint32_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        if (step.kind == StepKind::kSend) sends_[{plan.me, step.peer, step.message}] = s;
        for (uint32_t i = 0; i < step.blocks; ++i) nodes_.push_back({static_cast<uint32_t>(plan.me), s, i});
      }
    }
  }

  // Blocks are numbered as in the table of plan.h, whatever the plan calls them.
  float* input(size_t rank, uint32_t block) {
    return at(rank, Space::kInput, input_blocks(plans_[rank]) == 1 ? block : block ^ plans_[rank].turned);
  }
  float* output(size_t rank, uint32_t block) {
    return at(rank, Space::kOutput, output_blocks(plans_[rank]) == 1 ? block : block ^ plans_[rank].turned);
  }

  // What a reduction multiplies a source by: of a rank, by index into its plan's sources.
  std::function<float(size_t rank, size_t source)> factor = [](size_t, size_t) { return 1.0f; };

  void run(uint64_t seed) {
    Rng rng(seed);
    size_t left = nodes_.size();
    while (left > 0) {
      for (size_t i = nodes_.size(); i > 1; --i) std::swap(nodes_[i - 1], nodes_[rng.below(i)]);
      const size_t before = left;
      for (const Node& node : nodes_) {
        // Each ready step waits for a random decision, so that late readers are common.
        if (rng.below(3) != 0 || !may_run(node)) continue;
        perform(node);
        left -= finish(node);
      }
      idle_ = left == before ? idle_ + 1 : 0;
      CHECK(idle_ < 1000, "the plans do not finish");
    }
  }

 private:
  struct Node {
    uint32_t rank = 0;
    uint32_t step = 0;
    uint32_t position = 0;
  };

  const Step& step(const Node& node) const { return plans_[node.rank].steps[node.step]; }
  float* at(size_t rank, Space space, uint32_t block) {
    return memory_[rank].data() + cells_[rank].of(space, block) * elements_;
  }

  bool dependencies_done(const Node& node) const {
    const Step& s = step(node);
    for (uint32_t i = 0; i < s.dependencies; ++i) {
      const Dependency& d = plans_[node.rank].dependencies[s.first_dependency + i];
      if (node.position < d.my_first || node.position - d.my_first >= d.count) continue;
      if (!done_[node.rank][d.step][d.its_first + (node.position - d.my_first)]) return false;
    }
    return true;
  }

  // The sends whose messages this node receives.
  std::vector<Node> senders(const Node& node) const {
    std::vector<Node> result;
    auto add = [&](int32_t peer, uint32_t message) {
      const uint32_t s = sends_.at({peer, static_cast<int32_t>(node.rank), message});
      result.push_back({static_cast<uint32_t>(peer), s, node.position});
    };
    const Step& s = step(node);
    if (s.kind == StepKind::kRecv) add(s.peer, s.message);
    for (uint32_t i = s.first_source; i < s.first_source + s.sources; ++i) {
      const Source& source = plans_[node.rank].sources[i];
      if (source.peer != kLocal) add(source.peer, source.message);
    }
    return result;
  }

  bool may_run(const Node& node) const {
    if (step(node).kind == StepKind::kSend || done_[node.rank][node.step][node.position] || !dependencies_done(node))
      return false;
    const std::vector<Node> from = senders(node);
    return std::all_of(from.begin(), from.end(), [&](const Node& sender) { return dependencies_done(sender); });
  }

  const float* local(const Node& node, const Source& source) {
    return at(node.rank, source.blocks.space, source.blocks.first + node.position);
  }

  void perform(const Node& node) {
    const Step& s = step(node);
    std::vector<const float*> sources;
    auto message = [&](const Node& sender) {
      return local(sender, plans_[sender.rank].sources[step(sender).first_source]);
    };
    const std::vector<Node> from = senders(node);
    size_t next = 0;
    if (s.kind == StepKind::kRecv) sources.push_back(message(from[next++]));
    for (uint32_t i = s.first_source; i < s.first_source + s.sources; ++i) {
      const Source& source = plans_[node.rank].sources[i];
      sources.push_back(source.peer == kLocal ? local(node, source) : message(from[next++]));
    }
    const auto added = [&](size_t k, size_t e) {
      return s.kind == StepKind::kReduce ? sources[k][e] * factor(node.rank, s.first_source + k) : sources[k][e];
    };
    float* destination = at(node.rank, s.destination.space, s.destination.first + node.position);
    for (size_t e = 0; e < elements_; ++e) {
      float sum = added(0, e);
      for (size_t k = 1; k < sources.size(); ++k) sum += added(k, e);
      destination[e] = sum;
    }
  }

  size_t finish(const Node& node) {
    done_[node.rank][node.step][node.position] = true;
    const std::vector<Node> from = senders(node);
    for (const Node& sender : from) done_[sender.rank][sender.step][sender.position] = true;
    return 1 + from.size();
  }

  const std::vector<Plan>& plans_;
  size_t elements_;
  std::vector<Cells> cells_;
  std::vector<std::vector<float>> memory_;                            // by rank
  std::vector<std::vector<std::vector<bool>>> done_;                  // by rank, step, position
  std::map<std::tuple<int32_t, int32_t, uint32_t>, uint32_t> sends_;  // (from, to, message) -> step
  std::vector<Node> nodes_;
  int idle_ = 0;
};

}  // namespace trestle
