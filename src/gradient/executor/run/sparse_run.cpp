#include "gradient/executor/run/sparse_run.h"

#include "base/clock.h"

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
  run->memory_ = TRY(SparseMemory::make(use.comms.front(), use.tensors, compressed.ratio));
  const SparseChannel::Use channel{use.comms.front(), use.settings.op, collective, *run->memory_,
                                   use.board,         use.counts,      use.bell,   use.trace};
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
  bool changed = false;
  while (const auto complete = channel_->poll()) {
    changed = true;
    if (use_.board.failure()) continue;  // the messages behind a failure are only awaited
    Status status = *complete;
    if (status.ok()) status = finish_oldest();
    if (!status.ok()) use_.board.fail(status.error());
  }
  return changed;
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
  bool changed = false;
  while (!use_.board.failure()) {
    const auto tensor = use_.board.take_mark();
    if (!tensor) break;
    changed = true;
    add(*tensor);
    machine_.ready(*tensor);
    // No message brings its result.
    if (!list_.waits[*tensor]) use_.board.complete(*tensor, steps_before_ + machine_.ready_in(*tensor));
  }
  return changed;
}

void SparseRun::add(uint32_t tensor) {
  const int64_t begin = monotonic_clock().now_ns();
  const Accumulated sum = memory_->add(tensor, memory_of(tensor));
  use_.counts.whole_square += sum.square_sum;
  use_.counts.nans.fetch_add(sum.nans, std::memory_order_relaxed);
  use_.counts.compressed_elements.fetch_add(use_.tensors[tensor].count, std::memory_order_relaxed);
  use_.counts.add_compress_ns(monotonic_clock().now_ns() - begin);
}

bool SparseRun::issue() {
  bool changed = false;
  while (!use_.board.failure()) {
    const auto next = machine_.next();
    if (!next) break;
    changed = true;
    const uint64_t step = steps_before_ + next->step + 1;
    const Status status = channel_->start(next->message, step, step - brought_in_);
    if (!status.ok()) use_.board.fail(status.error());
  }
  return changed;
}

// ---- results

// Where a step's gradient lies.
std::byte* SparseRun::memory_of(uint32_t tensor) const {
  std::byte* const given = use_.board.gradient(tensor);
  return given != nullptr ? given : use_.tensors[tensor].gradient;
}

Status SparseRun::give(uint32_t tensor) {
  if (use_.tensors[tensor].count == 0) return {};
  channel_->give(tensor, memory_of(tensor));
  return update(tensor, {});
}

Status SparseRun::update(uint32_t tensor, const ResultAge& age) {
  const TensorEntry& entry = use_.tensors[tensor];
  if (!use_.settings.update || entry.count == 0) return {};
  return use_.settings.update(tensor, 0, entry.count, memory_of(tensor), entry.parameter, age);
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
    memory_->give_residual(tensor, memory_of(tensor));
    TRY(update(tensor, age));
    use_.board.complete(tensor, use_.board.ended(), age);
  }
  memory_->clear_residuals();
  brought_in_ = use_.board.ended();
  use_.trace.note({TraceKind::kDrain, 0, 0, {0, list_.tensors - 1}, brought_in_, begin_ns, use_.trace.now_ns()});
  return batches;
}

}  // namespace trestle
