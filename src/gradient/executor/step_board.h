// StepBoard: what the program's threads and the executor's thread tell each other about the gradients of a step.
//
// Any thread. The executor calls the functions that say so; the others are the program's. Marking a gradient takes no
// lock and makes no system call. Steps count from 1: the first step that ends is step 1.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "gradient/executor/bell.h"
#include "gradient/executor/marks/step_marks.h"
#include "gradient/executor/step_messages.h"
#include "gradient/executor/tensor_table.h"

namespace trestle {

class StepBoard {
 public:
  explicit StepBoard(uint32_t tensors);

  // ---- the program
  enum class Marked : uint8_t { kYes, kTwice, kNotWaited };
  struct Mark {
    Marked marked = Marked::kYes;
    bool wake = false;  // the executor may have something to issue
  };
  // Both halves of a mark. gradient: where it lies; nullptr: in the registered memory.
  Mark mark(uint32_t tensor, std::byte* gradient);
  // The first half keeps other threads from marking the tensor. The second half makes it ready, and other threads see
  // that last. So the step cannot end between the halves, nor before everything of the mark is in place.
  Marked claim(uint32_t tensor);
  bool settle(uint32_t tensor, std::byte* gradient);  // true: as `wake` of a mark
  uint64_t ended() const { return ended_.load(std::memory_order_acquire); }
  // Whether the tensor is ready in the step that has not ended.
  bool is_ready(uint32_t tensor) const { return ready_in(tensor) > ended(); }
  std::vector<uint32_t> missing() const;
  bool between_steps() const;
  void end_step() { ended_.fetch_add(1, std::memory_order_acq_rel); }
  // Waits until the tensor's result of the last ended step is in place. Error: the failure.
  Status wait(uint32_t tensor);
  bool is_complete(uint32_t tensor) const;  // whether wait() returns at once
  // Waits until done() returns true; tell() makes it look again. Error: the failure, if it comes first.
  Status until(const std::function<bool()>& done);
  // Whether the tensor's result of the last ended step was waited for.
  bool is_waited(uint32_t tensor) const { return tensors_[tensor].waited.load(std::memory_order_acquire) >= ended(); }
  // Of the last result that is in place. Before the first one, and of steps without a plan: no batches.
  ResultAge age(uint32_t tensor) const {
    return {tensors_[tensor].batches.load(std::memory_order_relaxed),
            tensors_[tensor].oldest.load(std::memory_order_relaxed)};
  }
  // The forward pass has come to this tensor. True if the executor may have something to issue.
  bool forward_at(uint32_t tensor);
  bool forward_needs(uint32_t tensor);  // forward_at(), when the pass is about to wait for this tensor
  // Whether no message brings the tensor's result: it is complete when the executor has taken the tensor's mark.
  bool awaits_mark(uint32_t tensor) const { return followed_ && !tensors_[tensor].travels && !is_complete(tensor); }
  bool forward_over();  // forward_at() its end: no later call will say where the pass is

  // ---- the executor
  // Between steps: which messages follow the marks.
  void follow(const StepMessages& list);
  // After a mark that said `wake`, a new scan finds all marks of its group (StepMarks), whatever other marks are under
  // way.
  std::optional<uint32_t> take_mark() { return marks_.take(); }
  struct Forward {
    uint64_t ended_steps = 0;
    uint32_t tensor = 0;
  };
  std::optional<Forward> forward() const;
  std::byte* gradient(uint32_t tensor) const { return tensors_[tensor].gradient.load(std::memory_order_acquire); }
  void complete(uint32_t tensor, uint64_t step, const ResultAge& age = {}) {
    tensors_[tensor].batches.store(age.batches, std::memory_order_relaxed);
    tensors_[tensor].oldest.store(age.oldest, std::memory_order_relaxed);
    tensors_[tensor].complete.store(step, std::memory_order_release);
  }
  void tell() { news_.ring(); }  // after complete(), and whenever a done() of until() may have become true
  void fail(Error error);        // the first failure stays
  bool has_failed() const { return failed_.load(std::memory_order_seq_cst); }  // the order: see failed_
  std::optional<Error> failure() const;

 private:
  // The first cache line is that of the program's threads. The executor writes it only between steps, and in a step
  // reads no more of it than where a marked gradient lies.
  struct alignas(64) Tensor {
    std::atomic<uint64_t> claimed{0};  // steps in which its mark has begun
    std::atomic<uint64_t> ready{0};    // steps in which it was ready
    std::atomic<uint64_t> waited{0};
    std::atomic<std::byte*> gradient{nullptr};  // stored only when it changes
    // Written by follow().
    bool travels = false;
    bool alone = false;  // in its group
    uint32_t group = 0;  // whose last gradient wakes the executor
    uint32_t forward_at = 0;
    // The executor's.
    alignas(64) std::atomic<uint64_t> complete{0};
    std::atomic<uint32_t> batches{0};
    std::atomic<uint32_t> oldest{0};
  };
  struct alignas(64) Group {
    std::atomic<uint64_t> ready{0};
    uint32_t tensors = 0;
  };
  uint64_t ready_in(uint32_t tensor) const { return tensors_[tensor].ready.load(std::memory_order_acquire); }
  bool advance(uint64_t place);
  static bool completes(Group& group);

  const uint32_t count_;
  const std::unique_ptr<Tensor[]> tensors_;
  std::unique_ptr<Group[]> groups_;
  bool followed_ = false;
  bool late_gathers_ = false;
  std::atomic<uint64_t> ended_{0};
  std::atomic<uint64_t> forward_{0};  // ended steps * (tensors + 1) + tensor + 1
  StepMarks marks_;
  Bell news_;
  // For a sleeper acquire and release would do: both sides of a bell change the same word, so one of them sees the
  // other. But the executor's destructor looks at another word, its JobFlag. After a failure: store failed_, load that.
  // A job: store that, load failed_. At least one of the two loads must see the other side's store. Only the one
  // order of sequentially consistent operations guarantees that. On x86-64 this load costs what an acquire does.
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  std::optional<Error> failure_ TRESTLE_GUARDED_BY(mutex_);
};

inline StepBoard::Marked StepBoard::claim(uint32_t tensor) {
  Tensor& at = tensors_[tensor];
  uint64_t step = ended();
  if (at.waited.load(std::memory_order_acquire) < step && at.claimed.load(std::memory_order_acquire) == step) {
    return Marked::kNotWaited;
  }
  const bool first = at.claimed.compare_exchange_strong(step, step + 1, std::memory_order_acq_rel);
  return first ? Marked::kYes : Marked::kTwice;
}

inline bool StepBoard::completes(Group& group) {
  return (group.ready.fetch_add(1, std::memory_order_acq_rel) + 1) % group.tensors == 0;
}

inline bool StepBoard::settle(uint32_t tensor, std::byte* gradient) {
  Tensor& at = tensors_[tensor];
  const uint64_t step = at.claimed.load(std::memory_order_relaxed);
  if (at.gradient.load(std::memory_order_relaxed) != gradient) at.gradient.store(gradient, std::memory_order_release);
  bool wake = false;
  if (followed_) [[likely]] {
    marks_.put(step, tensor);  // before the group counts it: a complete group has all its marks in marks_
    wake = at.alone || completes(groups_[at.group]);
  } else {
    // No plan follows this mark. So the tensor is complete before its step can end.
    at.complete.store(step, std::memory_order_release);
    at.waited.store(step, std::memory_order_release);
  }
  at.ready.store(step, std::memory_order_release);
  return wake;
}

}  // namespace trestle
