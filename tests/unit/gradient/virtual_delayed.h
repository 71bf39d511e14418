// The machine of delayed messages on a virtual clock: a compute thread with the buckets' times, and links that send one
// message at a time. Nanoseconds, which are exact. One thread.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <vector>

#include "gradient/deft/simulate.h"
#include "gradient/executor/run/delayed_machine.h"

namespace trestle {

class VirtualDelayed {
 public:
  // tensors: in each bucket. The bucket's backward time is that of its last tensor: the others take none.
  VirtualDelayed(const DeftQueues& queues, uint32_t tensors)
      : system_(queues.system()),
        machine_(queues, groups_of(system_.buckets.size(), tensors)),
        links_(system_.links.size()),
        last_(machine_.buckets().back().last) {}

  // As DeftRun has it: compute waits at the end of a backward pass, for the update that is due.
  DeftRun run(uint32_t steps) {
    for (uint32_t step = 0; step < steps; ++step) {
      compute(forward_us(system_.buckets) * 1000);
      for (size_t bucket = system_.buckets.size(); bucket-- > 0;) {
        compute(system_.buckets[bucket].backward_us * 1000);
        const TensorGroup& group = machine_.buckets()[bucket];
        for (uint32_t tensor = group.last + 1; tensor-- > group.first;) ready(tensor);
      }
      const uint64_t before = now_ns_;
      while (given_ < (uint64_t{step} + 1) * (last_ + 1) && !testing::Test::HasFatalFailure()) wait();
      run_.ends_ns.push_back(now_ns_);
      run_.waits_ns.push_back(now_ns_ - before);
      run_.update_batches.push_back(batches_);
      updated_ += batches_;
    }
    run_.pending = steps - updated_;
    return run_;
  }
  // Messages of each link so far.
  const std::vector<uint64_t>& sent() const { return sent_; }

 private:
  struct Link {
    std::deque<DelayedMachine::Issue> queue;
    std::optional<uint64_t> end_ns;  // of the first of them, on its way
  };

  static std::vector<TensorGroup> groups_of(size_t buckets, uint32_t tensors) {
    std::vector<TensorGroup> groups;
    for (uint32_t i = 0; i < buckets; ++i) groups.push_back({i * tensors, (i + 1) * tensors - 1});
    return groups;
  }
  void pump() {
    for (uint32_t link = 0; link < links_.size(); ++link) {
      while (const auto issue = machine_.next(link)) {
        links_[link].queue.push_back(*issue);
        ++sent_[link];
      }
      if (links_[link].queue.empty() || links_[link].end_ns) continue;
      const DeftItem& item = machine_.queues().items()[links_[link].queue.front().item];
      links_[link].end_ns = now_ns_ + item.comm_us * system_.links[link].slowdown_permille;
    }
  }
  // The link whose message ends first.
  std::optional<uint32_t> first() const {
    std::optional<uint32_t> first;
    for (uint32_t link = 0; link < links_.size(); ++link) {
      if (links_[link].end_ns && (!first || *links_[link].end_ns < *links_[*first].end_ns)) first = link;
    }
    return first;
  }
  void finish(uint32_t link) {
    now_ns_ = std::max(now_ns_, *links_[link].end_ns);
    const DelayedMachine::Issue done = machine_.oldest(link);
    ASSERT_EQ(done, links_[link].queue.front());
    machine_.complete(link);
    links_[link].queue.pop_front();
    links_[link].end_ns.reset();
    const TensorGroup& group = machine_.buckets()[machine_.queues().items()[done.item].bucket];
    for (uint32_t tensor = group.first; tensor <= group.last; ++tensor) take(tensor);
    pump();
  }
  void wait() {
    pump();
    const auto link = first();
    ASSERT_TRUE(link) << "compute waits for a message that nobody sends";
    finish(*link);
  }
  void compute(uint64_t ns) {
    const uint64_t until = now_ns_ + ns;
    pump();
    while (const auto link = first()) {
      if (*links_[*link].end_ns > until) break;
      finish(*link);
    }
    now_ns_ = until;
  }
  void ready(uint32_t tensor) {
    machine_.ready(tensor);
    pump();
    take(tensor);
  }
  void take(uint32_t tensor) {
    const auto due = machine_.take(tensor);
    if (!due) return;
    ++given_;
    batches_ = due->batches;
  }

  const DeftSystem system_;
  DelayedMachine machine_;
  std::vector<Link> links_;
  const uint32_t last_;
  std::vector<uint64_t> sent_ = std::vector<uint64_t>(links_.size());
  uint64_t now_ns_ = 0;
  uint64_t given_ = 0;
  uint64_t updated_ = 0;
  uint32_t batches_ = 0;
  DeftRun run_;
};

}  // namespace trestle
