// Receiver: the receiving half of a pair of ranks: takes what comes through the lane of one peer.
//
// Matches messages with posted receives by tag, in whatever order they come. A receive with a destination is copied out
// of the slots (or out of the peer's mapped memory) at once; but a message in the peer's outbox is always handed over
// as a view. A view reads the slots, or the peer's memory, in place. Views that are not released must not stop the
// lane. So a solicited message that would leave fewer slots free than the reserve is handed over only when other slots
// come back. If none does for a long while (the reader may be waiting for the very messages behind it), it moves to
// memory of its own. Owned by the transport, under the rank's progress lock. Nothing blocks; after warm-up nothing is
// allocated.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "base/result.h"
#include "transport/agreement.h"
#include "transport/shm/host_channel.h"
#include "transport/shm/lane.h"
#include "transport/shm/peer_memory.h"
#include "transport/shm/sender.h"
#include "transport/tag_map.h"

namespace trestle {

class Receiver {
 public:
  // agreement: checks every message of the peer; null: nothing is compared. memory: counts the memory of spilled
  // messages.
  Receiver(int32_t peer, HostChannel& channel, Sender& answers, Agreement* agreement, ByteMeter& memory)
      : peer_(peer), channel_(channel), answers_(answers), agreement_(agreement), memory_meter_(memory) {}

  void set_outbox(const Region& outbox) { memory_.set_outbox(outbox); }
  // A frame of the peer that carries memory.
  Status on_frame(const HostFrame& frame, UniqueFd fd);

  Status post(RecvRequest& request);
  void release(RecvRequest& request);
  // Takes what the lane has, at most a few dozen descriptors. True if anything moved.
  Result<bool> progress();
  // The next call of progress() is by a thread that calls it rarely. What waits for a number of calls must not wait for
  // as many of these.
  void expect_rare_calls();

  InLane& lane() { return lane_; }
  // Slots or ring places were given back since the last call: the peer must be woken if it sleeps and waits for them.
  bool take_gave_back() { return std::exchange(gave_back_, false); }
  // There is something to do without anything new from the peer.
  bool has_work() const {
    const bool full = arriving_view_ != nullptr && big_held_ == lane_.shape().big_slots;
    return (lane_ && lane_.waiting()) || deferred_first_ != nullptr || full;
  }
  bool waits_for_peer() const { return !posted_.empty() || matched_ != 0; }

 private:
  struct Incoming {
    MessageTag tag;
    uint64_t bytes = 0;
    uint64_t received = 0;
    RecvRequest* request = nullptr;
    Incoming* next = nullptr;
    bool listed = false;  // it is in messages_
    bool asked = false;
    bool solicited = false;
    bool in_line = false;  // the data is in `line`
    int32_t small_slot = -1;
    std::vector<uint8_t> big_slots;  // all full except the message's last
    std::vector<ConstPiece> mapped;
    bool from_memory = false;  // `mapped` holds the message
    bool on_device = false;    // `mapped` is for this rank's device, and never read here
    std::array<std::byte, kInlineBytes> line{};
    std::vector<std::byte> own;  // the data of a spilled message
    bool spilled = false;
    size_t piece = 0;  // index into request->pieces where copying out continues
    size_t piece_offset = 0;
  };

  Status take(const Descriptor& descriptor);
  Status take_message(const Descriptor& descriptor);
  Status take_payload(Incoming& message, const Descriptor& descriptor);
  Status take_big(Incoming& message, const Descriptor& descriptor);
  Status take_mapped(Incoming& message, const Descriptor& descriptor);
  Status take_divided(Incoming& message, const Descriptor& descriptor);
  Status match(Incoming& message, RecvRequest& request);
  void clear(Incoming& message);
  Status deliver(Incoming& message);
  void hand_over(Incoming& message);
  void copy_out(Incoming& message, const std::byte* data, size_t bytes);
  void copy_out_slots(Incoming& message);
  void spill(Incoming& message);
  void spill_if_stuck();
  void hand_over_deferred();
  bool slots_scarce(const Incoming& message) const;
  void give_back(Incoming& message);
  size_t slot_bytes(const Incoming& message, size_t index) const;
  Incoming& make(const MessageTag& tag, uint64_t bytes);
  void list(Incoming& message);
  void unlist(Incoming& message);
  void recycle(Incoming& message);
  Error protocol_error(const char* what) const;

  const int32_t peer_;
  HostChannel& channel_;
  Sender& answers_;
  Agreement* const agreement_;
  ByteMeter& memory_meter_;
  InLane lane_;
  PeerMemory memory_;
  TagMap<RecvRequest*> posted_;
  TagMap<Incoming*> messages_;  // begun or asked for, not delivered
  std::deque<Incoming> pool_;
  Incoming* free_ = nullptr;
  Incoming* deferred_first_ = nullptr;  // complete views that wait until slots are less scarce
  Incoming* deferred_last_ = nullptr;
  // A view that has partly arrived. Senders send one long message at a time.
  Incoming* arriving_view_ = nullptr;
  uint32_t small_held_ = 0;
  uint32_t big_held_ = 0;
  uint32_t stuck_ = 0;
  size_t matched_ = 0;  // messages in messages_ with a request
  bool gave_back_ = false;
};

}  // namespace trestle
