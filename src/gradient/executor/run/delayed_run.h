// DelayedRun: carries out plans that delay gradients (DeFT, arXiv 2503.16815), on one link or on several at once.
//
// Used by the executor's thread only. Each gradient is added to a sum when its mark is taken. From then on the
// program's memory is needed only for the result: the sum of all ranks in steps in which an update is due, and zeros in
// others. With an update function there is no result in the gradients' memory.
#pragma once

#include <optional>

#include "gradient/executor/run/delayed_link.h"
#include "gradient/executor/run/delayed_machine.h"
#include "gradient/executor/run/step_run.h"

namespace trestle {

class DelayedRun final : public StepRun {
 public:
  // Errors: those of DeftQueues::make, DelayedMemory::make and DelayedLink::make; more links than communicators.
  static Result<std::unique_ptr<StepRun>> make(const RunUse& use, const GradientPlan& plan);

  void begin() override;
  bool turn() override;
  bool drained() const override;
  bool is_busy(size_t link) const override { return link < links_.size() && !links_[link]->idle(); }
  uint32_t pending() const override { return memory_->pending(); }
  Result<uint32_t> bring_in() override;

 private:
  DelayedRun(const RunUse& use, DeftQueues queues, std::vector<TensorGroup> buckets)
      : use_(use), fresh_(std::move(queues)), buckets_(std::move(buckets)), machine_(std::in_place, fresh_, buckets_) {}
  // carried: by link and item, whether the item ever travels there.
  Status build(const std::vector<std::vector<bool>>& carried);
  bool collect();
  bool take_marks();
  bool issue();
  Status add(uint32_t tensor);
  Status finish_oldest(uint32_t link);
  Status start(uint32_t link, const DelayedMachine::Issue& issue);
  void trace(TraceKind kind, uint32_t link, uint32_t item, int64_t begin_ns, int64_t end_ns);
  // Gives the tensor its result of the step, if one is due and complete.
  Status give(uint32_t tensor);
  // Makes a set's sum the tensor's result in a step.
  Status deliver(uint32_t tensor, uint64_t set, uint32_t batches, uint64_t step);
  Status send_all(uint64_t last, bool merged);
  Status wait_for_link(DelayedLink& link);
  std::vector<DelayedMemory::Run> runs(uint32_t item) const;

  const RunUse use_;
  const DeftQueues fresh_;  // before any step
  const std::vector<TensorGroup> buckets_;
  std::optional<DelayedMachine> machine_;
  std::unique_ptr<DelayedMemory> memory_;
  std::vector<std::unique_ptr<DelayedLink>> links_;  // they end before the memory does
  std::vector<TraceTimes> issued_;                   // by link: of the messages on their way
  uint64_t steps_before_ = 0;                        // steps that had ended when the machine was made
};

}  // namespace trestle
