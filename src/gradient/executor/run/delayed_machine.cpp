#include "gradient/executor/run/delayed_machine.h"

#include <algorithm>

#include "base/check.h"

namespace trestle {

DelayedMachine::DelayedMachine(DeftQueues queues, std::vector<TensorGroup> buckets)
    : queues_(std::move(queues)),
      buckets_(std::move(buckets)),
      queued_(queues_.system().links.size()),
      on_link_(queued_.size()),
      ready_(buckets_.size()),
      issued_(queues_.items().size()),
      items_in_(buckets_.size()),
      complete_in_{{std::vector<uint64_t>(buckets_.size()), std::vector<uint64_t>(buckets_.size())}} {
  for (uint32_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    bucket_of_.resize(size_t{buckets_[bucket].last} + 1, bucket);
  }
  due_.resize(bucket_of_.size());
  for (const DeftItem& item : queues_.items()) ++items_in_[item.bucket];
  begin_step();
}

void DelayedMachine::queue(const DeftSends& sends, uint64_t set, uint64_t steps) {
  for (size_t link = 0; link < sends.size(); ++link) {
    for (const uint32_t item : sends[link]) queued_[link].push_back({{item, set}, steps});
  }
}

// The set that was current when a step begins has all its gradients. What both passes send of it may leave at once. Of
// the set that becomes the current one, a bucket leaves with its gradients of this step.
void DelayedMachine::begin_step() {
  const DeftPass forward = queues_.forward();
  const DeftPass backward = queues_.backward();
  filling_ = next_filling_;
  queue(forward.sends, filling_ - 1, step_);
  queue(backward.sends, filling_ - 1, step_);
  due_batches_ = backward.update_batches;
  if (backward.next_batches == 0) return;
  queue(backward.next_sends, filling_, step_ + 1);
  ++next_filling_;
}

void DelayedMachine::ready(uint32_t tensor) {
  CHECK(!due_[tensor], "a gradient is ready before the result of the step before was given");
  ++ready_[bucket_of_[tensor]];
  due_[tensor] = Due{step_, due_batches_, due_batches_ == 0 ? 0 : filling_ - 1};
  ++due_count_;
  if (++ready_count_ < (step_ + 1) * bucket_of_.size()) return;
  ++step_;
  begin_step();
}

bool DelayedMachine::released(const Queued& queued) const {
  const TensorGroup& bucket = buckets_[queues_.items()[queued.what.item].bucket];
  const uint64_t tensors = uint64_t{bucket.last} - bucket.first + 1;
  // The set before it may wait on another link, which is asked later.
  if (issued_[queued.what.item] != queued.what.set) return false;
  return ready_[queues_.items()[queued.what.item].bucket] >= queued.steps * tensors;
}

std::optional<DelayedMachine::Issue> DelayedMachine::next(uint32_t link) {
  if (queued_[link].empty() || !released(queued_[link].front())) return std::nullopt;
  const Issue issue = queued_[link].front().what;
  CHECK(issued_[issue.item] == issue.set, "an item travels twice, or not at all, for a set");
  ++issued_[issue.item];
  queued_[link].pop_front();
  on_link_[link].push_back(issue);
  return issue;
}

DelayedMachine::Issue DelayedMachine::oldest(uint32_t link) const {
  CHECK(!on_link_[link].empty(), "no message is on its way");
  return on_link_[link].front();
}

void DelayedMachine::complete(uint32_t link) {
  const Issue done = oldest(link);
  on_link_[link].pop_front();
  ++complete_in_[done.set % 2][queues_.items()[done.item].bucket];
}

// At most two sets have messages under way: one with an even number, one with an odd number. When a set's messages are
// issued in a bucket, those of the set two before it are complete there. So one count for even and one for odd sets do.
bool DelayedMachine::bucket_complete(uint32_t bucket, uint64_t set) const {
  return complete_in_[set % 2][bucket] >= (set / 2 + 1) * items_in_[bucket];
}

std::optional<DelayedMachine::Due> DelayedMachine::take(uint32_t tensor) {
  const std::optional<Due> due = due_[tensor];
  if (!due || (due->batches != 0 && !bucket_complete(bucket_of_[tensor], due->set))) return std::nullopt;
  due_[tensor].reset();
  --due_count_;
  return due;
}

bool DelayedMachine::idle() const {
  const auto stands = [&](size_t link) {
    return on_link_[link].empty() && (queued_[link].empty() || !released(queued_[link].front()));
  };
  for (size_t link = 0; link < queued_.size(); ++link) {
    if (!stands(link)) return false;
  }
  return due_count_ == 0;
}

}  // namespace trestle
