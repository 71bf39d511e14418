// cost() agrees with the built plans, counted over all ranks, blocks and messages, and with the longest chain of
// messages.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/rng.h"
#include "support/plan_groups.h"

namespace trestle {
namespace {

struct Counted {
  uint64_t busiest_blocks = 0;
  uint64_t reduced_blocks = 0;
  uint32_t messages = 0;
  uint32_t steps = 0;
  uint32_t blocks = 1;
  bool converges = false;
};

// Whether messages of several ranks may come at once: not if all of this rank's receives take turns.
bool receives_in_turns(const Plan& plan) {
  bool first = true;
  for (const Step& step : plan.steps) {
    if (step.kind == StepKind::kReduce) return false;
    if (step.kind == StepKind::kRecv && !std::exchange(first, false) && step.after == kNoStep) return false;
  }
  return true;
}

Counted count_traffic(const std::vector<Plan>& plans) {
  Counted counted;
  counted.blocks = plans[0].blocks;
  std::vector<uint64_t> sent(plans.size());
  std::vector<uint64_t> taken(plans.size());
  std::vector<uint32_t> messages(plans.size());  // sent and received
  std::vector<std::set<int32_t>> senders(plans.size());
  for (const Plan& plan : plans) {
    uint64_t reduced = 0;
    for (const Step& step : plan.steps) {
      if (step.kind == StepKind::kReduce) reduced += uint64_t{step.sources - 1} * step.blocks;
      if (step.kind != StepKind::kSend) continue;
      ++messages[static_cast<size_t>(plan.me)];
      ++messages[static_cast<size_t>(step.peer)];
      senders[static_cast<size_t>(step.peer)].insert(plan.me);
      sent[static_cast<size_t>(plan.me)] += step.blocks;
      taken[static_cast<size_t>(step.peer)] += step.blocks;
    }
    counted.reduced_blocks = std::max(counted.reduced_blocks, reduced);
  }
  counted.messages = *std::max_element(messages.begin(), messages.end());
  for (size_t r = 0; r < plans.size(); ++r) {
    counted.converges |= senders[r].size() > 1 && !receives_in_turns(plans[r]);
  }
  for (size_t r = 0; r < plans.size(); ++r)
    counted.busiest_blocks = std::max({counted.busiest_blocks, sent[r], taken[r]});
  return counted;
}

// The number of consecutive messages: a step that receives messages is one later than the latest of their sends.
// Messages to one peer in turn are one.
uint32_t longest_chain(const std::vector<Plan>& plans) {
  std::map<std::tuple<int32_t, int32_t, uint32_t>, uint32_t> sends;
  std::vector<std::vector<uint32_t>> depth;
  for (const Plan& plan : plans) {
    depth.emplace_back(plan.steps.size(), 0);
    for (uint32_t s = 0; s < plan.steps.size(); ++s) {
      if (plan.steps[s].kind == StepKind::kSend) sends[{plan.me, plan.steps[s].peer, plan.steps[s].message}] = s;
    }
  }
  bool changed = true;
  uint32_t longest = 0;
  while (changed) {
    changed = false;
    for (const Plan& plan : plans) {
      const auto me = static_cast<size_t>(plan.me);
      for (uint32_t s = 0; s < plan.steps.size(); ++s) {
        const Step& step = plan.steps[s];
        uint32_t deepest = 0;
        for (uint32_t i = 0; i < step.dependencies; ++i) {
          const uint32_t before = plan.dependencies[step.first_dependency + i].step;
          // A wait until a send has finished (write after read) is not a message.
          deepest = std::max(deepest, depth[me][before]);
        }
        // The turn comes when the message before has arrived, which is a message later than it was sent. A message to
        // the same peer is the rest of that one.
        if (step.after != kNoStep) {
          const bool next_turn = step.kind == StepKind::kSend && plan.steps[step.after].peer != step.peer;
          deepest = std::max(deepest, depth[me][step.after] + (next_turn ? 1 : 0));
        }
        auto message = [&](int32_t peer, uint32_t number) {
          deepest = std::max(deepest, depth[static_cast<size_t>(peer)][sends.at({peer, plan.me, number})] + 1);
        };
        if (step.kind == StepKind::kRecv) message(step.peer, step.message);
        for (uint32_t i = step.first_source; i < step.first_source + step.sources; ++i) {
          if (plan.sources[i].peer != kLocal) message(plan.sources[i].peer, plan.sources[i].message);
        }
        changed = changed || depth[me][s] != deepest;
        depth[me][s] = deepest;
        longest = std::max(longest, deepest);
      }
    }
  }
  return longest;
}

TEST(AlgorithmCost, IsWhatThePlansDo) {
  for (const Algorithm& row : algorithms()) {
    for (PhaseKind kind : kAllKinds) {
      for (int32_t size = 1; size <= 33; ++size) {
        if (!row.serves(kind, size)) continue;
        SCOPED_TRACE(std::string(row.name) + " " + to_string(kind) + ", " + std::to_string(size) + " ranks");
        const AlgorithmCost cost = row.cost(kind, size);
        for (InPlace in_place : {InPlace::kNo, InPlace::kYes}) {
          const std::vector<Plan> plans = plans_of_group(row, kind, size, has_root(kind) ? size / 2 : 0, in_place);
          const Counted counted = count_traffic(plans);
          EXPECT_EQ(cost.sent_num * counted.blocks, counted.busiest_blocks * cost.sent_den);
          EXPECT_EQ(cost.reduced_num * counted.blocks, counted.reduced_blocks * cost.reduced_den);
          EXPECT_EQ(cost.messages, counted.messages);
          EXPECT_EQ(cost.converges, counted.converges);
          EXPECT_EQ(cost.steps, longest_chain(plans));
        }
      }
    }
  }
}

// Counts the load of all ranks for blocks of any lengths.
BlockLoad count_lengths(const std::vector<Plan>& plans, const std::vector<uint64_t>& lengths) {
  BlockLoad counted;
  std::vector<uint64_t> sent(plans.size());
  std::vector<uint64_t> taken(plans.size());
  for (const Plan& plan : plans) {
    uint64_t reduced = 0;
    for (const Step& step : plan.steps) {
      uint64_t length = 0;
      for (uint32_t b = 0; b < step.blocks; ++b) length += lengths[(step.logical_first + b) ^ plan.turned];
      if (step.kind == StepKind::kReduce) reduced += (step.sources - 1) * length;
      if (step.kind != StepKind::kSend) continue;
      sent[static_cast<size_t>(plan.me)] += length;
      taken[static_cast<size_t>(step.peer)] += length;
    }
    counted.reduced = std::max(counted.reduced, reduced);
  }
  for (size_t r = 0; r < plans.size(); ++r) counted.sent = std::max({counted.sent, sent[r], taken[r]});
  return counted;
}

TEST(AlgorithmLoad, IsWhatThePlansDoWithBlocksOfAnyLengths) {
  Rng rng(20);
  size_t rows = 0;
  for (const Algorithm& row : algorithms()) {
    for (PhaseKind kind : {PhaseKind::kReduceScatter, PhaseKind::kAllGather}) {
      if (row.serves(kind, 4)) ++rows;
      for (int32_t size = 2; size <= 33; ++size) {
        if (!row.serves(kind, size)) continue;
        SCOPED_TRACE(std::string(row.name) + " " + to_string(kind) + ", " + std::to_string(size) + " ranks");
        ASSERT_NE(row.load, nullptr);
        const std::vector<Plan> plans = plans_of_group(row, kind, size, 0, InPlace::kNo);
        for (const int shape : {0, 1, 2}) {  // any lengths, one long block, equal ones
          std::vector<uint64_t> lengths;
          for (int32_t r = 0; r < size; ++r) lengths.push_back(shape == 2 ? 3 : rng.below(shape == 0 ? 1000 : 3));
          if (shape == 1) lengths[rng.below(static_cast<uint64_t>(size))] = 1000;
          const BlockLoad load = row.load(kind, BlockLengths(lengths));
          const BlockLoad counted = count_lengths(plans, lengths);
          EXPECT_EQ(load.sent, counted.sent) << shape;
          EXPECT_EQ(load.reduced, counted.reduced) << shape;
          if (shape != 2) continue;
          const AlgorithmCost cost = row.cost(kind, size);
          EXPECT_EQ(load.sent * cost.sent_den, cost.sent_num * lengths.size() * 3);
          EXPECT_EQ(load.reduced * cost.reduced_den, cost.reduced_num * lengths.size() * 3);
        }
      }
    }
  }
  EXPECT_GE(rows, 9u);
}

const Algorithm& row_of(std::string_view name) {
  return *find_algorithm(name).value();
}

TEST(AlgorithmCost, LogarithmicRowsStayLogarithmicAndScatteredOnesNearTheLeastData) {
  for (int32_t size = 2; size <= 1025; ++size) {
    const auto n = static_cast<uint64_t>(size);
    uint32_t log = 0;
    while ((1 << log) < size) ++log;
    EXPECT_LE(row_of("rd").cost(PhaseKind::kAllReduce, size).steps, log);
    const AlgorithmCost hd = row_of("hd").cost(PhaseKind::kReduceScatter, size);
    EXPECT_LE(hd.steps, log);
    EXPECT_EQ(hd.sent_den, n);
    EXPECT_LE(hd.sent_num, n - 1 + log);
    EXPECT_LE(row_of("dbtree").cost(PhaseKind::kAllReduce, size).sent_num, 4u);
  }
}

TEST(AlgorithmCost, CountsTheStepsOfUnevenHalvesInLargeGroupsToo) {
  for (int32_t size = 34; size <= 260; ++size) {
    const std::vector<Plan> plans = plans_of_group(row_of("rd"), PhaseKind::kAllReduce, size, 0, InPlace::kNo);
    EXPECT_EQ(row_of("rd").cost(PhaseKind::kAllReduce, size).steps, longest_chain(plans)) << size << " ranks";
  }
}

}  // namespace
}  // namespace trestle
