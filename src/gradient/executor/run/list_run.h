// ListRun: carries out plans whose steps are all alike. Every step has the same list of messages, on the first link.
// Used by the executor's thread only.
#pragma once

#include "gradient/executor/run/step_run.h"
#include "gradient/executor/step_machine.h"

namespace trestle {

class ListRun final : public StepRun {
 public:
  // Errors: those of MessageChannel::make.
  static Result<std::unique_ptr<StepRun>> make(const RunUse& use, StepMessages list);

  void begin() override;
  bool turn() override;
  bool drained() const override;
  bool is_busy(size_t link) const override { return link == 0 && !channel_->idle(); }
  // One travels while the executor issues what follows the one that is complete.
  bool is_supplied() const override { return channel_->started() >= 2; }

 private:
  ListRun(const RunUse& use, StepMessages list)
      : use_(use),
        list_(std::move(list)),
        machine_(list_, static_cast<bool>(use.settings.update)),
        issued_(use.trace) {}
  bool collect();
  bool take_events();
  bool issue();
  Status finish_oldest();
  Status start(const StepMachine::Issue& issue);
  void trace(TraceKind kind, const StepMachine::Issue& issue, int64_t begin_ns, int64_t end_ns);

  const RunUse use_;
  const StepMessages list_;
  StepMachine machine_;
  std::unique_ptr<MessageChannel> channel_;
  uint64_t steps_before_ = 0;  // steps that had ended at begin()
  TraceTimes issued_;          // of the messages on their way
};

}  // namespace trestle
