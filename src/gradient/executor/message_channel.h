// MessageChannel: the messages of a plan as persistent requests of a communicator, on one stream, with their buffers.
//
// Used by the executor's thread only. The requests are made once; each step starts them again. A message whose tensors
// lie together in memory travels from there. Others travel from a buffer of trestleMemAlloc. So do all halves if the
// two have groups of their own. Neighbours of different types are several requests of one message.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "gradient/executor/bell.h"
#include "gradient/executor/core_calls.h"
#include "gradient/executor/fused_buffer.h"
#include "gradient/executor/message_end.h"
#include "gradient/executor/step_board.h"
#include "gradient/executor/step_messages.h"
#include "gradient/executor/tensor_table.h"

namespace trestle {

// Counters of a scheduler. Any thread. Not beside what the program's threads read when they mark gradients.
struct alignas(64) TrafficCounts {
  std::atomic<uint64_t> messages{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> copied_bytes{0};
  std::atomic<uint64_t> nans{0};
  // Of plans that delay gradients.
  std::atomic<uint64_t> delayed_steps{0};
  std::atomic<uint64_t> delayed_updates{0};
  std::atomic<uint64_t> delayed_batches{0};  // steps whose gradients are in an update
  std::atomic<uint64_t> age_sum{0};          // over those steps: by how many steps the update came later
  std::atomic<uint64_t> oldest_age{0};
  // Of plans of which only the largest elements travel.
  std::atomic<uint64_t> compressed_elements{0};  // of gradients that were compressed
  std::atomic<uint64_t> sent_elements{0};        // of those: this rank sent them
  std::atomic<uint64_t> compress_ns{0};          // time to add, select and distribute them
  std::atomic<double> gain{0};                   // of the last step
  double whole_square = 0;                       // |gradient + residual|^2 of the present step; the executor's alone
  // For one thread.
  void note_update(const ResultAge& age);
  void add_compress_ns(int64_t ns) { compress_ns.fetch_add(static_cast<uint64_t>(ns), std::memory_order_relaxed); }
};

// Everything must live longer than the channel, except the bell.
struct ChannelUse {
  trestleComm_t comm = nullptr;
  const std::vector<TensorEntry>& tensors;
  const GradientSettings& settings;
  const StepBoard* board = nullptr;  // says where gradients lie; nullptr: all where they were registered
  TrafficCounts& counts;
  std::shared_ptr<Bell> bell;  // rings when a message is complete
};

class MessageChannel {
 public:
  // Not collective. Errors: those of trestleMemAlloc and of the Init calls.
  static Result<std::unique_ptr<MessageChannel>> make(const ChannelUse& use, const StepMessages& list);
  // Waits for messages that are on their way.
  ~MessageChannel();
  MessageChannel(const MessageChannel&) = delete;
  MessageChannel& operator=(const MessageChannel&) = delete;

  // Packs and issues a message.
  Status start(uint32_t message);
  // The oldest message that was started, if it is complete; then it no longer counts as started.
  std::optional<Status> poll();
  bool idle() const { return started_.empty(); }
  size_t started() const { return started_.size(); }  // messages under way
  trestleStream_t stream() const { return stream_.get(); }
  // After a message is complete: makes its updates, and copies results to where they belong.
  Status finish(uint32_t message);

 private:
  struct Buffer {
    FusedLayout layout;
    std::byte* data = nullptr;
    bool own_memory = false;  // the tensors', so nothing is copied
  };
  struct Transfer {
    size_t packed = kNone;    // the buffer to fill before
    size_t unpacked = kNone;  // the buffer to empty behind it
    size_t request = 0;
    bool second_half = false;
    uint64_t bytes = 0;
  };
  // Shards of this rank, which are updated between the halves.
  struct Shard {
    FusedSpan span;
    DataType type = DataType::kFloat32;
    std::byte* data = nullptr;
  };
  struct Message {
    MessageKind kind = MessageKind::kAllReduce;
    std::vector<Transfer> transfers;
    std::vector<Shard> shards;
    std::optional<MessageEnd> end;
  };
  static constexpr size_t kNone = SIZE_MAX;

  MessageChannel(const ChannelUse& use, const StepMessages& list) : use_(use), list_(list) {}
  Status build();
  Status build_whole(const StepMessage& planned, Message& message);
  Status build_shared(size_t index);
  Status build_sharded(const StepMessage& planned, Message& message);
  void lay_out_shards();
  Status add_shards(const FusedLayout& layout, std::byte* data, Message& message);
  // The bytes of all buffers that are not the tensors' own memory.
  uint64_t room() const;
  uint64_t room_of(const StepMessage& planned) const;
  uint64_t shard_elements(DataType type) const;
  size_t add_buffer(FusedLayout layout, bool may_use_own_memory);
  std::byte* slice(uint64_t bytes);
  Status checked(trestleResult_t result) const { return core_status(result, use_.comm); }

  std::byte* memory_of(uint32_t tensor) const;
  void count_nans_in(const Buffer& buffer);
  void pack(const Buffer& buffer);
  void unpack(const Buffer& buffer);
  Status update_whole(const Buffer& buffer);
  Status update_shard(const Shard& shard);

  const ChannelUse use_;
  const StepMessages& list_;
  int ranks_ = 1;
  int rank_ = 0;
  CoreMemory arena_;
  uint64_t arena_bytes_ = 0;
  uint64_t used_ = 0;  // of those
  std::vector<Buffer> buffers_;
  std::vector<std::byte*> shard_of_;  // by tensor: this rank's shard, if the halves have groups of their own
  CoreStream stream_;
  std::vector<CoreRequest> requests_;  // freed before the stream and the memory
  std::vector<Message> messages_;
  std::deque<uint32_t> started_;
};

}  // namespace trestle
