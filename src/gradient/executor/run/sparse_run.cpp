#include "gradient/executor/run/sparse_run.h"

#include "base/clock.h"
#include "gradient/executor/run/message_loops.h"

namespace trestle {
namespace {

Result<SparseCollective> collective_of(const std::string& text) {
  for (const SparseCollective one : {SparseCollective::kRing, SparseCollective::kTree, SparseCollective::kAllGather}) {
    if (text == to_string(one)) return one;
  }
  return Error{Code::kInternalError, "the plan compresses by \"" + text + "\", which is no collective"};
}

}  // namespace

Result<std::unique_ptr<StepRun>> SparseRun::make(const RunUse& use, const CompressedStep& compressed,
                                                 StepMessages list) {
  const SparseCollective collective = TRY(collective_of(compressed.collective));
  if (!(compressed.ratio > 0 && compressed.ratio <= 1))
    return Error{Code::kInternalError, "the plan compresses by a ratio that is not above 0 and at most 1"};
  TRY(check_compressible(use.tensors));
  std::unique_ptr<SparseRun> run(new SparseRun(use, std::move(list)));
  int ranks = 0;
  TRY(core_status(trestleCommCount(use.comms.front(), &ranks), use.comms.front()));
  const uint32_t mean_over = use.settings.op == trestleAvg ? static_cast<uint32_t>(ranks) : 0;
  run->memory_ = TRY(SparseMemory::make(use.comms.front(), use.tensors, compressed.ratio, mean_over));
  const SparseChannel::Use channel{use.comms.front(), collective, *run->memory_, use.board,
                                   use.counts,        use.bell,   use.trace};
  run->channel_ = TRY(SparseChannel::make(channel, run->list_));
  return std::unique_ptr<StepRun>(std::move(run));
}

void SparseRun::begin() {
  steps_before_ = brought_in_ = use_.board.ended();
  use_.counts.whole_square = 0;
  use_.board.follow(list_);
}

bool SparseRun::turn() {
  bool changed = collect();
  if (take_events()) changed = true;
  if (issue()) changed = true;
  if (changed) use_.board.tell();
  return changed;
}

bool SparseRun::drained() const {
  return channel_->idle() && machine_.finished(use_.board.ended() - steps_before_);
}

// ---- events

bool SparseRun::collect() {
  return collect_complete(*channel_, use_.board, [this] { return finish_oldest(); });
}

Status SparseRun::finish_oldest() {
  const StepMachine::Issue oldest = machine_.oldest();
  const StepMessage& message = list_.messages[oldest.message];
  const uint64_t step = steps_before_ + oldest.step + 1;
  const int64_t begin_ns = use_.trace.now_ns();
  TRY(channel_->finish(oldest.message));
  for (const uint32_t tensor : message.results) TRY(give(tensor));
  use_.trace.note({TraceKind::kUnpack, oldest.message, 0, message.tensors, step, begin_ns, use_.trace.now_ns()});
  machine_.complete();
  for (const uint32_t tensor : message.results) use_.board.complete(tensor, step);
  return {};
}

bool SparseRun::take_events() {
  return do_all(
      use_.board, [this] { return use_.board.take_mark(); },
      [this](uint32_t tensor) -> Status {
        add(tensor);
        machine_.ready(tensor);
        // No message brings its result.
        if (!list_.waits[tensor]) use_.board.complete(tensor, steps_before_ + machine_.ready_in(tensor));
        return {};
      });
}

void SparseRun::add(uint32_t tensor) {
  const int64_t begin = monotonic_clock().now_ns();
  const Accumulated sum = memory_->add(tensor, use_.gradient(tensor));
  use_.counts.whole_square += sum.square_sum;
  use_.counts.nans.fetch_add(sum.nans, std::memory_order_relaxed);
  use_.counts.compressed_elements.fetch_add(use_.tensors[tensor].count, std::memory_order_relaxed);
  use_.counts.add_compress_ns(monotonic_clock().now_ns() - begin);
}

bool SparseRun::issue() {
  return do_all(
      use_.board, [this] { return machine_.next(); },
      [this](const StepMachine::Issue& next) {
        const uint64_t step = steps_before_ + next.step + 1;
        return channel_->start(next.message, step, step - brought_in_);
      });
}

// ---- results

Status SparseRun::give(uint32_t tensor) {
  if (use_.tensors[tensor].count == 0) return {};
  channel_->give(tensor, use_.gradient(tensor));
  return update(tensor, {});
}

Status SparseRun::update(uint32_t tensor, const ResultAge& age) {
  const TensorEntry& entry = use_.tensors[tensor];
  if (!use_.settings.update || entry.count == 0) return {};
  return use_.settings.update(tensor, 0, entry.count, use_.gradient(tensor), entry.parameter, age);
}

// ---- bringing in

uint32_t SparseRun::pending() const {
  return memory_->leaves_any() ? static_cast<uint32_t>(use_.board.ended() - brought_in_) : 0;
}

Result<uint32_t> SparseRun::bring_in() {
  const uint32_t batches = pending();
  if (batches == 0) return batches;
  const int64_t begin_ns = use_.trace.now_ns();
  TRY(channel_->add_residuals());
  for (uint32_t tensor = 0; tensor < use_.tensors.size(); ++tensor) {
    const ResultAge age{batches, batches - 1};
    memory_->give_residual(tensor, use_.gradient(tensor));
    TRY(update(tensor, age));
    use_.board.complete(tensor, use_.board.ended(), age);
  }
  memory_->clear_residuals();
  brought_in_ = use_.board.ended();
  use_.trace.note({TraceKind::kDrain, 0, 0, {0, list_.tensors - 1}, brought_in_, begin_ns, use_.trace.now_ns()});
  return batches;
}

}  // namespace trestle
