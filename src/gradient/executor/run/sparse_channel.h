// SparseChannel: the messages of a plan of which only the largest elements travel, on one stream of a communicator.
//
// Used by the executor's thread only. Each message of the backward pass has two parts (FLEX, arXiv 2312.02493): one
// rank names elements of the message's tensors, and all ranks send these. In step i rank i mod N names them, and only
// that rank selects. The second part begins when the first is complete, and the next message begins after that. So all
// ranks put the same calls on the stream in the same order. By the collective (policy/topk.h):
//
//   ring        indices broadcast, values reduce-scattered; forward: values gathered (a MessageChannel)
//   tree        indices broadcast, values reduced to the rank that named them; forward: values broadcast
//   all-gather  each rank names and sends its own, at once; forward: nothing
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "compress/ar_topk.h"
#include "compress/choice.h"
#include "gradient/executor/message_channel.h"
#include "gradient/executor/run/sparse_memory.h"
#include "gradient/executor/trace/step_trace.h"

namespace trestle {

class SparseChannel {
 public:
  // Everything must live longer than the channel, except the bell.
  struct Use {
    trestleComm_t comm = nullptr;
    SparseCollective collective = SparseCollective::kRing;
    SparseMemory& memory;
    const StepBoard& board;
    TrafficCounts& counts;
    std::shared_ptr<Bell> bell;  // rings when a part of a message is complete
    StepTrace& trace;            // the caller traces finish() and give()
  };
  // Not collective. Errors: those of trestleMemAlloc and of the Init calls.
  static Result<std::unique_ptr<SparseChannel>> make(const Use& use, const StepMessages& list);
  // Waits for messages that are on their way.
  ~SparseChannel();
  SparseChannel(const SparseChannel&) = delete;
  SparseChannel& operator=(const SparseChannel&) = delete;

  // The gradients of the message's tensors must be in the residuals. turn: the number of the step since the residuals
  // were empty, from 1.
  Status start(uint32_t message, uint64_t step, uint64_t turn);
  // Begins second parts. Returns how the oldest message ended that was started, if it is complete; then it no longer
  // counts as started. After a failure of the board it begins nothing.
  std::optional<Status> poll();
  bool idle() const { return waiting_.empty() && !naming_ && started_.empty(); }
  // After a message is complete.
  Status finish(uint32_t message);
  // Writes a tensor's result, after finish() of the message that completes the tensor.
  void give(uint32_t tensor, std::byte* result);
  // Replaces all residuals by their sums over the ranks; waits.
  Status add_residuals();

 private:
  struct Waiting {
    uint32_t message = 0;
    uint64_t step = 0;
    uint64_t turn = 0;  // names the root
    int64_t issued_ns = 0;
  };
  // Of an all-gather: where the parts of all ranks lie. All parts have the same layout.
  struct Gathered {
    std::byte* parts = nullptr;
    uint64_t part_bytes = 0;
    std::array<uint64_t, SparseMemory::kSumTypes.size()> values{};  // from the part's beginning
    uint64_t indices = 0;
    std::optional<CoreRequest> request;
  };
  explicit SparseChannel(const Use& use, const StepMessages& list) : use_(use), list_(list) {}
  Status build();
  Status build_gathered();
  Gathered laid_out(const TensorGroup& tensors) const;
  bool gathers() const { return use_.collective == SparseCollective::kAllGather; }
  bool is_forward(uint32_t message) const { return list_.messages[message].kind == MessageKind::kAllGather; }
  Status checked(trestleResult_t result) const { return core_status(result, use_.comm); }
  trestleStream_t stream() const { return values_ != nullptr ? values_->stream() : stream_.get(); }
  int root(uint64_t turn) const { return static_cast<int>(star_root(turn, static_cast<uint32_t>(ranks_))); }
  // A forward message of an all-gather sends nothing. It is complete when those before it are.
  bool is_nothing(uint32_t message) const { return gathers() && is_forward(message); }

  Status begin_next();
  Status begin(const Waiting& next);
  Status name(const Waiting& next);
  Status select(const Waiting& next);
  Status send_named(const Waiting& named);
  Status send_gathered(uint32_t message);
  Status send_values(const Waiting& what);
  void take(uint32_t message);
  void issued(const Waiting& what, int64_t begin_ns);
  void trace(TraceKind kind, const Waiting& what, int64_t begin_ns);
  std::optional<Status> poll_started();
  Status check_parts(uint32_t message) const;

  const Use use_;
  const StepMessages& list_;
  int ranks_ = 1;
  int rank_ = 0;
  GradientSettings settings_;  // of values_: the operator only, a sum
  CoreMemory parts_;           // of all-gathers
  CoreStream stream_;
  std::unique_ptr<MessageChannel> values_;  // carries the values of a ring; else nullptr
  std::vector<Gathered> gathered_;          // by message; freed before the stream
  std::vector<uint32_t> gathered_in_;       // by tensor: the message
  std::vector<MessageEnd> ends_;            // by message, not of a ring
  std::optional<MessageEnd> named_;
  std::deque<Waiting> waiting_;    // not begun
  std::optional<Waiting> naming_;  // its indices are on their way
  std::deque<Waiting> started_;    // all of it is on its way
  double sent_square_ = 0;         // of the step so far
};

}  // namespace trestle
