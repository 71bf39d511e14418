#include "gradient/executor/run/list_run.h"

#include "gradient/executor/run/delayed_run.h"
#include "gradient/executor/run/message_loops.h"
#include "gradient/executor/run/sparse_run.h"

namespace trestle {

Result<std::unique_ptr<StepRun>> make_step_run(const RunUse& use, const PlannedStep& step,
                                               const GradientWorkload& workload) {
  if (step.plan.shape == StepShape::kDelayed) return DelayedRun::make(use, step.plan);
  StepMessages list = step_messages(step.plan, workload);
  return step.compressed ? SparseRun::make(use, *step.compressed, std::move(list))
                         : ListRun::make(use, std::move(list));
}

Result<std::unique_ptr<StepRun>> ListRun::make(const RunUse& use, StepMessages list) {
  std::unique_ptr<ListRun> run(new ListRun(use, std::move(list)));
  const ChannelUse channel{use.comms.front(), use.tensors, use.settings, &use.board, use.counts, use.bell};
  run->channel_ = TRY(MessageChannel::make(channel, run->list_));
  return std::unique_ptr<StepRun>(std::move(run));
}

void ListRun::begin() {
  steps_before_ = use_.board.ended();
  use_.board.follow(list_);
}

bool ListRun::turn() {
  bool changed = take_events();
  // Issues before it finishes complete messages: finishing may take longer than the messages that are under way.
  if (issue()) changed = true;
  if (collect()) changed = true;
  return issue() || changed;
}

bool ListRun::collect() {
  return collect_complete(*channel_, use_.board, [this] { return finish_oldest(); });
}

Status ListRun::finish_oldest() {
  const StepMachine::Issue oldest = machine_.oldest();
  const int64_t complete_ns = use_.trace.now_ns();
  TRY(channel_->finish(oldest.message));
  trace(TraceKind::kTravel, oldest, issued_.take(), complete_ns);
  trace(TraceKind::kUnpack, oldest, complete_ns, use_.trace.now_ns());
  machine_.complete();
  for (const uint32_t tensor : list_.messages[oldest.message].results) {
    use_.board.complete(tensor, steps_before_ + oldest.step + 1);
  }
  use_.board.tell();
  return {};
}

bool ListRun::take_events() {
  bool changed = false;
  while (const auto tensor = use_.board.take_mark()) {
    machine_.ready(*tensor);
    changed = true;
    // No message brings its result.
    if (!list_.waits[*tensor]) use_.board.complete(*tensor, steps_before_ + machine_.ready_in(*tensor));
  }
  if (changed) use_.board.tell();
  if (const auto forward = use_.board.forward(); forward && forward->ended_steps >= steps_before_) {
    machine_.forward_at(forward->ended_steps - steps_before_, forward->tensor);
  }
  return changed;
}

bool ListRun::issue() {
  return do_all(
      use_.board, [this] { return machine_.next(); }, [this](const StepMachine::Issue& next) { return start(next); });
}

Status ListRun::start(const StepMachine::Issue& issue) {
  const int64_t begin_ns = use_.trace.now_ns();
  TRY(channel_->start(issue.message));
  const int64_t issued_ns = use_.trace.now_ns();
  issued_.push(issued_ns);
  trace(TraceKind::kPack, issue, begin_ns, issued_ns);
  return {};
}

void ListRun::trace(TraceKind kind, const StepMachine::Issue& issue, int64_t begin_ns, int64_t end_ns) {
  use_.trace.note({kind, issue.message, 0, list_.messages[issue.message].tensors, steps_before_ + issue.step + 1,
                   begin_ns, end_ns});
}

bool ListRun::drained() const {
  return channel_->idle() && machine_.finished(use_.board.ended() - steps_before_);
}

}  // namespace trestle
