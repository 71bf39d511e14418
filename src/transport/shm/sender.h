// Sender: the sending half of a pair of ranks: what goes through this rank's lane to one peer.
//
// How a message travels (bytes, where they lie):
//   <= 24                        in the descriptor                     kInline, counted against a small slot
//   <= a small slot              copied to a small slot                kSmall
//   more, where peers can map it stays there, the peer reads it        kMapped, kMappedList, then kRead comes back
//   more, elsewhere              copied to big slots                   kData
// Unasked only while slots beyond the reserve are free; otherwise the sender asks (kAsk), the receiver answers when its
// receive is posted (kClear), and then any slot will do, in the order of the answers. So unposted messages never hold
// all slots, and what a waiting receiver needs always finds some.
// Owned by the transport, under the rank's progress lock. Nothing blocks; after warm-up nothing is allocated and there
// is no system call.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/counter.h"
#include "base/result.h"
#include "transport/shm/lane.h"
#include "transport/shm/links.h"
#include "transport/shm/mem_index.h"
#include "transport/shm/registrations.h"
#include "transport/shm/store_choice.h"
#include "transport/tag_map.h"

namespace trestle {

struct SenderOptions {
  uint64_t unasked_bytes = UINT64_MAX;  // longer messages are only sent when asked for
  bool map_memory = true;
  ByteMeter* memory = nullptr;                // counts the lane; outlives the sender
  MemRegistrations* registrations = nullptr;  // or none; outlives the sender
};

class Sender {
 public:
  Sender(int32_t peer, Links& links, const SenderOptions& options) : peer_(peer), links_(links), options_(options) {}

  // The lane, before anything is sent.
  Status start(const LaneShape& shape);
  OutLane& lane() { return lane_; }

  // As Transport::post_send, once the link is ready.
  Result<bool> post(SendRequest& request);
  // For a tag that is a notice; at any time.
  void post_notice(SendRequest& request);
  // Copies for those who wait, as far as slots are free. True if anything moved.
  Result<bool> progress();
  // kClear and kRead of the peer.
  Status on_clear(const Descriptor& descriptor);
  Status on_read(const Descriptor& descriptor);
  // The same of a peer that leaves, which says it on each of its links.
  void on_last_read(const MessageTag& tag);
  // The answers that found no way into the lane, as frames of the links. Other unsent descriptors lose their meaning
  // with the end of this rank.
  std::vector<LinkFrame> unsent_reads() const;

  // Sends a descriptor without data, now or as soon as there is room.
  void push_control(const Descriptor& descriptor);
  // Tells the peer which of the allocations that it has mapped are gone.
  void forget_freed();

  // Something was pushed since the last call: the peer must be woken if it sleeps.
  bool take_pushed() { return std::exchange(pushed_, false); }
  // There is work for progress().
  bool starved() const { return queue_[0].first != nullptr || queue_[1].first != nullptr || !backlog_.empty(); }
  // The same, or a post that was refused, and slots or room for it. Asked after the lane was marked asleep: whatever is
  // given back later rings.
  bool could_move();
  // There are messages that the peer has not taken. Answers and notices are none: who has left needs them no more.
  bool has_messages() const { return queue_[0].first != nullptr || queue_[1].first != nullptr || !waiting_.empty(); }

 private:
  struct Queue {
    SendRequest* first = nullptr;
    SendRequest* last = nullptr;
  };

  void push(Descriptor& descriptor);
  Result<bool> post_mapped(SendRequest& request, bool& mapped);
  Result<bool> share(uint64_t id);
  MemPlace place_of(const ConstPiece& piece) const;
  bool fill_pieces(const SendRequest& request, MappedPiece* pieces) const;
  Result<bool> make_data();
  void push_small(SendRequest& request, uint8_t flags);
  // The next slots of the message, at most `slots`. True when that was its end.
  bool push_big(SendRequest& request, uint32_t slots, uint8_t flags);
  void ask(SendRequest& request);
  void gather(SendRequest& request, std::byte* to, size_t bytes, bool streaming);

  const int32_t peer_;
  Links& links_;
  const SenderOptions options_;
  OutLane lane_;
  bool data_told_ = false;
  bool pushed_ = false;
  bool refused_ = false;          // a post, for want of room
  TagMap<SendRequest*> waiting_;  // asked, or being read by the peer
  StoreChoice stores_;
  Queue queue_[2];  // cleared, waiting for slots: small, big
  std::vector<Descriptor> backlog_;
  std::vector<uint64_t> shared_;  // allocations that the peer has
};

}  // namespace trestle
