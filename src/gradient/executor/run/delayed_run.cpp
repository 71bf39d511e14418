#include "gradient/executor/run/delayed_run.h"

#include <cstring>
#include <set>

#include "gradient/executor/nan_count.h"
#include "gradient/executor/run/message_loops.h"

namespace trestle {
namespace {

constexpr int kMostSteps = 10000;  // of a cycle of the queues, as deft_cycle has it

// By link and item: whether the item ever travels there. Link 0 has all items, because bring_in() sends them there.
// This runs the queues through a whole cycle, so they keep its selections and compute none while a step runs.
std::vector<std::vector<bool>> carried_items(DeftQueues& queues) {
  const size_t items = queues.items().size();
  std::vector<std::vector<bool>> carried(queues.system().links.size(), std::vector<bool>(items, false));
  carried[0].assign(items, true);
  const auto note = [&](const DeftSends& sends) {
    for (size_t link = 0; link < sends.size(); ++link) {
      for (const uint32_t item : sends[link]) carried[link][item] = true;
    }
  };
  std::set<DeftState> seen;
  int step = 0;
  for (; step < kMostSteps && seen.insert(queues.state()).second; ++step) {
    note(queues.forward().sends);
    const DeftPass backward = queues.backward();
    note(backward.sends);
    note(backward.next_sends);
  }
  for (std::vector<bool>& link : carried) {
    if (step == kMostSteps) link.assign(items, true);
  }
  queues.restart();
  return carried;
}

// For the board: the last gradient of a bucket wakes the executor, and every tensor has a result in every step.
StepMessages buckets_to_follow(const std::vector<TensorGroup>& buckets, size_t tensors) {
  StepMessages list;
  list.tensors = static_cast<uint32_t>(tensors);
  list.waits.assign(tensors, true);
  for (const TensorGroup& bucket : buckets) {
    StepMessage message;
    message.tensors = bucket;
    list.messages.push_back(std::move(message));
  }
  return list;
}

}  // namespace

Result<std::unique_ptr<StepRun>> DelayedRun::make(const RunUse& use, const GradientPlan& plan) {
  if (plan.delayed.links.size() > use.comms.size()) {
    return Error{Code::kInternalError, "the plan is for " + std::to_string(plan.delayed.links.size()) +
                                           " links, and the scheduler has " + std::to_string(use.comms.size())};
  }
  DeftQueues queues = TRY(DeftQueues::make(plan.delayed, plan.capacity_permille));
  const std::vector<std::vector<bool>> carried = carried_items(queues);
  std::unique_ptr<DelayedRun> run(new DelayedRun(use, std::move(queues), plan.groups));
  TRY(run->build(carried));
  return std::unique_ptr<StepRun>(std::move(run));
}

Status DelayedRun::build(const std::vector<std::vector<bool>>& carried) {
  memory_ = TRY(DelayedMemory::make(use_.comms.front(), use_.tensors, buckets_));
  for (size_t link = 0; link < carried.size(); ++link) {
    const DelayedLink::Use channel{use_.comms[link], use_.settings.op, *memory_, use_.counts, use_.bell};
    links_.push_back(TRY(DelayedLink::make(channel, fresh_.items(), carried[link])));
    issued_.emplace_back(use_.trace);
  }
  return {};
}

void DelayedRun::begin() {
  steps_before_ = use_.board.ended();
  use_.board.follow(buckets_to_follow(buckets_, use_.tensors.size()));
}

bool DelayedRun::turn() {
  bool changed = collect();
  if (take_marks()) changed = true;
  if (issue()) changed = true;
  if (changed) use_.board.tell();
  return changed;
}

bool DelayedRun::drained() const {
  if (machine_->steps() < use_.board.ended() - steps_before_ || !machine_->idle()) return false;
  for (const auto& link : links_) {
    if (!link->idle()) return false;
  }
  return true;
}

// ---- events

bool DelayedRun::collect() {
  bool changed = false;
  for (uint32_t link = 0; link < links_.size(); ++link) {
    if (collect_complete(*links_[link], use_.board, [&] { return finish_oldest(link); })) changed = true;
  }
  return changed;
}

Status DelayedRun::finish_oldest(uint32_t link) {
  const DelayedMachine::Issue done = machine_->oldest(link);
  machine_->complete(link);
  const TensorGroup& bucket = buckets_[fresh_.items()[done.item].bucket];
  const int64_t complete_ns = use_.trace.now_ns();
  trace(TraceKind::kTravel, link, done.item, issued_[link].take(), complete_ns);
  for (uint32_t tensor = bucket.first; tensor <= bucket.last; ++tensor) TRY(give(tensor));
  trace(TraceKind::kUnpack, link, done.item, complete_ns, use_.trace.now_ns());
  return {};
}

bool DelayedRun::take_marks() {
  return do_all(
      use_.board, [this] { return use_.board.take_mark(); }, [this](uint32_t tensor) { return add(tensor); });
}

Status DelayedRun::add(uint32_t tensor) {
  const TensorEntry& entry = use_.tensors[tensor];
  const std::byte* const gradient = use_.gradient(tensor);
  if (use_.settings.count_nans && entry.count > 0) {
    use_.counts.nans.fetch_add(count_nans(gradient, entry.count, entry.type), std::memory_order_relaxed);
  }
  memory_->add(tensor, machine_->filling(), gradient, steps_before_ + machine_->steps() + 1);
  use_.counts.copied_bytes.fetch_add(entry.bytes(), std::memory_order_relaxed);
  if (tensor == 0) use_.counts.delayed_steps.fetch_add(1, std::memory_order_relaxed);
  machine_->ready(tensor);
  return give(tensor);
}

bool DelayedRun::issue() {
  bool changed = false;
  for (uint32_t link = 0; link < links_.size(); ++link) {
    const bool issued = do_all(
        use_.board, [&] { return machine_->next(link); },
        [&](const DelayedMachine::Issue& next) { return start(link, next); });
    if (issued) changed = true;
  }
  return changed;
}

Status DelayedRun::start(uint32_t link, const DelayedMachine::Issue& issue) {
  const int64_t begin_ns = use_.trace.now_ns();
  TRY(links_[link]->start(issue.item, issue.set));
  const int64_t issued_ns = use_.trace.now_ns();
  issued_[link].push(issued_ns);
  trace(TraceKind::kPack, link, issue.item, begin_ns, issued_ns);
  return {};
}

// Notes the event under the step in which it happens, which may be later than the steps of its gradients.
void DelayedRun::trace(TraceKind kind, uint32_t link, uint32_t item, int64_t begin_ns, int64_t end_ns) {
  const TensorGroup& bucket = buckets_[fresh_.items()[item].bucket];
  use_.trace.note({kind, item, link, bucket, use_.board.ended() + 1, begin_ns, end_ns});
}

// ---- results

Status DelayedRun::give(uint32_t tensor) {
  const auto due = machine_->take(tensor);
  if (!due) return {};
  const uint64_t step = steps_before_ + due->step + 1;
  if (due->batches != 0) return deliver(tensor, due->set, due->batches, step);
  // No update is due, so the result is the sum of nothing: zeros. A program that applies zeros changes nothing.
  const TensorEntry& entry = use_.tensors[tensor];
  if (!use_.settings.update && entry.count > 0) std::memset(use_.gradient(tensor), 0, entry.bytes());
  use_.board.complete(tensor, step, {0, 0});
  return {};
}

Status DelayedRun::deliver(uint32_t tensor, uint64_t set, uint32_t batches, uint64_t step) {
  const TensorEntry& entry = use_.tensors[tensor];
  const DelayedMemory::Batches taken = TRY(memory_->take(tensor, set, batches));
  const ResultAge age{taken.count, static_cast<uint32_t>(step - taken.oldest)};
  if (entry.count > 0 && use_.settings.update) {
    TRY(use_.settings.update(tensor, 0, entry.count, memory_->sum(tensor, set), entry.parameter, age));
  } else if (entry.count > 0) {
    std::memcpy(use_.gradient(tensor), memory_->sum(tensor, set), entry.bytes());
    use_.counts.copied_bytes.fetch_add(entry.bytes(), std::memory_order_relaxed);
  }
  if (tensor == 0) use_.counts.note_update(age);
  use_.board.complete(tensor, step, age);
  return {};
}

// ---- bringing in

std::vector<DelayedMemory::Run> DelayedRun::runs(uint32_t item) const {
  const DeftItem& what = fresh_.items()[item];
  return memory_->runs(what.bucket, what.part, what.parts);
}

// Two sets may be pending: the current one, of which some items have travelled, and the one that fills. Items of the
// current set that have not travelled are added to the filling set before it travels. Items that have travelled are
// added to it afterwards. So each item travels once more.
Result<uint32_t> DelayedRun::bring_in() {
  const uint32_t batches = pending();
  if (batches == 0) return batches;
  const int64_t begin_ns = use_.trace.now_ns();
  const uint64_t filling = machine_->filling();
  const bool fills = memory_->batches(0, filling).count > 0;
  const bool merged = fills && memory_->batches(0, filling + 1).count > 0;  // the memory of the set before it
  const uint64_t last = fills ? filling : filling - 1;
  TRY(send_all(last, merged));
  for (uint32_t item = 0; merged && item < fresh_.items().size(); ++item) {
    if (!machine_->issued(item, last - 1)) continue;
    for (const DelayedMemory::Run& run : runs(item)) memory_->merge(run, last - 1);
  }
  if (merged) memory_->merge_accounts(last - 1);
  for (uint32_t tensor = 0; tensor < use_.tensors.size(); ++tensor) {
    TRY(deliver(tensor, last, batches, use_.board.ended()));
  }
  machine_.emplace(fresh_, buckets_);
  steps_before_ = use_.board.ended();
  const TensorGroup all{0, buckets_.back().last};
  use_.trace.note({TraceKind::kDrain, 0, 0, all, steps_before_, begin_ns, use_.trace.now_ns()});
  return batches;
}

Status DelayedRun::send_all(uint64_t last, bool merged) {
  for (uint32_t item = 0; item < fresh_.items().size(); ++item) {
    if (machine_->issued(item, last)) continue;
    if (merged && !machine_->issued(item, last - 1)) {
      for (const DelayedMemory::Run& run : runs(item)) memory_->merge(run, last - 1);
    }
    TRY(links_[0]->start(item, last));
  }
  return wait_for_link(*links_[0]);
}

Status DelayedRun::wait_for_link(DelayedLink& link) {
  while (!link.idle()) {
    const uint32_t before = use_.bell->count();
    const auto complete = link.poll();
    if (complete && !complete->ok()) return *complete;
    if (auto failure = use_.board.failure()) return *std::move(failure);  // perhaps of another link
    if (!complete) use_.bell->wait(before);
  }
  return {};
}

}  // namespace trestle
