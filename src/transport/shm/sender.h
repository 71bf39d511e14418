// Sender: the sending half of a pair of ranks: sends through this rank's lane to one peer.
//
// How a message travels (bytes, where they lie):
//   <= kInlineBytes              in the descriptor                     kInline, counted against a small slot
//   <= a small slot              copied to a small slot                kSmall
//   more, where peers can map it stays there, the peer reads it        kMapped, kMappedList, then kRead comes back
//   more, elsewhere              copied to big slots                   kData
//   more, in the host's outbox   stays there, the peer's device reads  kMapped, then kRead comes back
//   any, in the device's outbox  stays there, the peer's device reads  kMapped, then kRead comes back
//   any, its end in host memory  the same, in both outboxes            kDivided, then kRead comes back
// A message goes unasked only while slots beyond the reserve are free. Otherwise the sender asks (kAsk), and the
// receiver answers when its receive is posted (kClear). Then any slot will do, in the order of the answers. So messages
// without a receive never hold all slots, and messages with a waiting receiver always find some.
// Owned by the transport, under the rank's progress lock. Nothing blocks; after warm-up nothing is allocated and there
// is no system call.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/counter.h"
#include "base/result.h"
#include "memory/registrations.h"
#include "transport/shm/host_channel.h"
#include "transport/shm/lane.h"
#include "transport/shm/store_choice.h"
#include "transport/tag_map.h"

namespace trestle {

struct SenderOptions {
  uint64_t unasked_bytes = UINT64_MAX;  // longer messages are sent only when asked for
  bool map_memory = true;
  ByteMeter* memory = nullptr;                // counts the lane; outlives the sender
  MemRegistrations* registrations = nullptr;  // may be nullptr; outlives the sender
};

class Sender {
 public:
  Sender(int32_t peer, HostChannel& channel, const SenderOptions& options)
      : peer_(peer), channel_(channel), options_(options) {}

  // Makes the lane, before anything is sent.
  Status start(const LaneShape& shape);
  OutLane& lane() { return lane_; }

  // The peer has opened an outbox of this rank: memory `id` of its device, or host memory that the peer's device reads.
  void set_outbox(uint64_t id, bool on_device) { (on_device ? outbox_ : host_outbox_) = id; }

  // As Transport::post_send, once the connection is ready.
  Result<bool> post(SendRequest& request);
  // For a notice's tag; at any time.
  void post_notice(SendRequest& request);
  // Copies cleared messages, as far as slots are free. True if anything moved.
  Result<bool> progress();
  // Takes kClear and kRead of the peer.
  Status on_clear(const Descriptor& descriptor);
  Status on_read(const Descriptor& descriptor);
  // As on_read(), from a peer that leaves; it sends this on each of its sockets.
  void on_last_read(const MessageTag& tag);
  // The kRead answers that found no room in the lane, as frames of the sockets. Other unsent descriptors have no
  // meaning after the end of this rank.
  std::vector<HostFrame> unsent_reads() const;

  // Sends a descriptor without data, now or as soon as there is room.
  void push_control(const Descriptor& descriptor);
  // Tells the peer which of the allocations that it has mapped are freed.
  void forget_freed();

  // Something was pushed since the last call: the peer must be woken if it sleeps.
  bool take_pushed() { return std::exchange(pushed_, false); }
  // Whether progress() has something to do.
  bool starved() const { return queue_[0].first != nullptr || queue_[1].first != nullptr || !backlog_.empty(); }
  // Whether progress(), or a post that was refused, could do something now: there are slots or room for it. Call this
  // after the lane was marked asleep: anything given back later rings.
  bool could_move();
  // Whether the peer has not taken some messages. Answers and notices do not count: a rank that has left needs them no
  // more.
  bool has_messages() const { return queue_[0].first != nullptr || queue_[1].first != nullptr || !waiting_.empty(); }

 private:
  struct Queue {
    SendRequest* first = nullptr;
    SendRequest* last = nullptr;
  };

  void push(Descriptor& descriptor);
  Result<bool> post_mapped(SendRequest& request, bool& mapped);
  Result<bool> post_on_device(SendRequest& request);
  void post_divided(SendRequest& request);
  void wait_for_reader(SendRequest& request);
  Result<bool> share(uint64_t id);
  bool fill_pieces(const SendRequest& request, MappedPiece* pieces) const;
  Result<bool> make_data();
  void push_small(SendRequest& request, uint8_t flags);
  // Sends the next slots of the message, at most `slots`. True when the message is complete.
  bool push_big(SendRequest& request, uint32_t slots, uint8_t flags);
  void ask(SendRequest& request);
  void copy_out(SendRequest& request, std::byte* to, size_t bytes, bool streaming);

  const int32_t peer_;
  HostChannel& channel_;
  const SenderOptions options_;
  OutLane lane_;
  bool data_told_ = false;
  bool pushed_ = false;
  bool refused_ = false;          // a post was refused for lack of room
  TagMap<SendRequest*> waiting_;  // messages that were asked for, or are being read by the peer
  StoreChoice stores_;
  Queue queue_[2];  // cleared, waiting for slots: small, big
  std::vector<Descriptor> backlog_;
  std::vector<uint64_t> shared_;  // ids of the allocations that the peer has
  uint64_t outbox_ = 0;           // id of memory of a device that the peer has; 0: none
  uint64_t host_outbox_ = 0;      // of host memory for devices
};

}  // namespace trestle
