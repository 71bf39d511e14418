// SparseRun: carries out plans of which only the largest elements of gradients travel, in two halves (policy/topk.h).
//
// Used by the executor's thread only. Each gradient is added to a residual when its mark is taken. A tensor's result is
// the sum over the ranks of what travelled, and zeros elsewhere. What stayed behind travels in later steps. Every rank
// updates whole tensors after both halves, because gradients travel in both and not parameters.
#pragma once

#include "gradient/executor/run/sparse_channel.h"
#include "gradient/executor/run/step_run.h"
#include "gradient/executor/step_machine.h"

namespace trestle {

class SparseRun final : public StepRun {
 public:
  // Errors: those of check_compressible, SparseMemory::make and SparseChannel::make; a ratio or a collective that no
  // plan has (kInternalError).
  static Result<std::unique_ptr<StepRun>> make(const RunUse& use, const CompressedStep& compressed, StepMessages list);

  void begin() override;
  bool turn() override;
  bool drained() const override;
  bool is_busy(size_t link) const override { return link == 0 && !channel_->idle(); }
  // Steps whose gradients have left something in the residuals.
  uint32_t pending() const override;
  Result<uint32_t> bring_in() override;

 private:
  SparseRun(const RunUse& use, StepMessages list) : use_(use), list_(std::move(list)), machine_(list_, false) {}
  bool collect();
  bool take_events();
  bool issue();
  void add(uint32_t tensor);
  Status finish_oldest();
  Status give(uint32_t tensor);
  Status update(uint32_t tensor, const ResultAge& age);

  const RunUse use_;
  const StepMessages list_;
  StepMachine machine_;
  std::unique_ptr<SparseMemory> memory_;
  std::unique_ptr<SparseChannel> channel_;  // it ends before the memory does
  uint64_t steps_before_ = 0;               // steps that had ended at begin()
  uint64_t brought_in_ = 0;                 // steps that had ended when the residuals were last empty
};

}  // namespace trestle
