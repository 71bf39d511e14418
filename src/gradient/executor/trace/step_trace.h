// StepTrace: what happened in the last steps, for a timeline (Chrome's trace format).
//
// Any thread may note an event: without a lock, a system call or memory. A ring of fixed size keeps the last ones.
// While nothing is traced, on() is one load. begin() is for one thread, while nobody else uses the trace.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gradient/executor/tensor_table.h"
#include "gradient/plan.h"

namespace trestle {

enum class TraceKind : uint8_t {
  kReady,    // a gradient was made ready; number: its tensor
  kWait,     // a program's wait for a tensor; number: the tensor
  kStepEnd,  // number: none
  // Of a message. number: its place in the step's list, or of a delayed plan its item.
  kPack,    // copied into its buffer, and issued
  kTravel,  // from there until it is complete
  kUnpack,  // updated, and copied to where the results belong
  // And where only the largest elements travel:
  kSelect,   // this rank chose them
  kIndices,  // their indices were on their way, before what they name was packed
  // number: none. What a policy had delayed or left behind was brought in.
  kDrain,
};

struct TraceEvent {
  TraceKind kind = TraceKind::kReady;
  uint32_t number = 0;
  uint32_t link = 0;
  TensorGroup tensors;   // of a message
  uint64_t step = 0;     // as the board counts: 1 is the first one
  int64_t begin_ns = 0;  // of the monotonic clock
  int64_t end_ns = 0;
  bool operator==(const TraceEvent&) const = default;
};

class StepTrace {
 public:
  static constexpr size_t kBytesOfAnEvent = 64;

  // Forgets all events, and from now on keeps the last `events` ones. 0: none. Error (kSystemError): there is no memory
  // for so many, and none is kept.
  Status begin(size_t events);
  bool on() const { return size_.load(std::memory_order_acquire) != 0; }
  void note(const TraceEvent& event);
  int64_t now_ns() const { return on() ? monotonic_clock().now_ns() : 0; }
  // The events in the order in which they were noted. Events that are being written now are left out. So is an event
  // that came while a thread was still writing another one, a whole ring older, to the same slot.
  std::vector<TraceEvent> events() const;

 private:
  static constexpr size_t kWords = 6;
  static constexpr uint64_t kClaimed = UINT64_MAX;  // the slot's number while it is written
  struct alignas(kBytesOfAnEvent) Slot {
    std::atomic<uint64_t> number{0};  // of the event, from 1; 0: none
    std::atomic<uint64_t> words[kWords] = {};
  };
  static_assert(sizeof(Slot) == kBytesOfAnEvent);

  std::unique_ptr<Slot[]> slots_;
  std::atomic<size_t> size_{0};
  std::atomic<uint64_t> noted_{0};
};

// When each message that is on its way was issued, in their order. One thread.
class TraceTimes {
 public:
  explicit TraceTimes(const StepTrace& trace) : trace_(trace) {}
  void push(int64_t time_ns) {
    if (trace_.on()) times_.push_back(time_ns);
  }
  int64_t take() {
    if (times_.empty()) return 0;
    const int64_t first = times_.front();
    times_.pop_front();
    return first;
  }

 private:
  const StepTrace& trace_;
  std::deque<int64_t> times_;
};

// The events as Chrome's trace format has them ("JSON Object Format"): chrome://tracing and Perfetto show it. Times are
// microseconds. The process is the rank; its lanes are the gradients, the waits, and each link.
std::string trace_json(const std::vector<TraceEvent>& events, const std::vector<TensorEntry>& tensors, int rank);

}  // namespace trestle
