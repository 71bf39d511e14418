// Link: the open messages between a rank and one peer, and the protocol between the two, above the rails that carry it.
// Headers that arrive are passed in, and what to send next is taken out. So tests and fuzzers can drive two of them
// against each other without a connection.
//
// Owned by a RailTransport, which also owns the buffer pool; used under the rank's progress lock. Error messages about
// input continue the peer's name ("sent ..."). Those of the Agreement (kInvalidUsage) are whole sentences.
//
// Flow. A message up to the eager limit is sent at once, if there is credit for it. The receiver keeps at most
// `credit_bytes` of messages that have no receive yet, and returns credit as they are matched. Without credit the
// sender asks (kRequest) and waits for kClear, as a large message does. So messages without a receive never block the
// others. A large receive sends kClear when it is posted. Cleared and eager messages leave in the order of their
// operations, turns and tags.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/agreement.h"
#include "transport/buffer_pool.h"
#include "transport/message/frame.h"
#include "transport/tag_map.h"
#include "transport/transport.h"

namespace trestle {

struct LinkLimits {
  uint64_t eager_bytes = 32 * 1024;    // the same on both sides
  uint64_t credit_bytes = 512 * 1024;  // the same on both sides; at least 4 * (eager_bytes + kEagerOverhead)
};
// What keeping one message costs beyond its bytes. Bounds the number of small ones.
inline constexpr uint64_t kEagerOverhead = 256;

class Link {
 public:
  // agreement: checks everything that `peer` sends; null: nothing is compared.
  explicit Link(const LinkLimits& limits, BufferPool& pool, Agreement* agreement = nullptr, int32_t peer = 0)
      : limits_(limits), pool_(pool), agreement_(agreement), peer_(peer), credit_(limits.credit_bytes) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // ---- Requests: as in transport.h. False: too many are open, try again.
  Result<bool> post_send(SendRequest& request);
  Result<bool> post_recv(RecvRequest& request);
  void release(RecvRequest& request);

  // ---- Input
  // A header has arrived. Returns where its payload goes: valid until end(), or close(). No pieces: it is dropped, or
  // there is none.
  Result<std::span<const Piece>> begin(const Frame& frame);
  // The payload of the last header is complete.
  void end();
  bool large_expected() const { return cleared_receives_ > 0; }

  // ---- Output
  bool has_output() const { return control_at_ < control_.size() || !ready_.empty(); }
  // Takes the next header without payload; these go first. False: there is none.
  bool next_control(Frame& header);
  // Takes the oldest message that may go; nullptr: there is none. written() must follow.
  SendRequest* next_message(Frame& header);
  void written(SendRequest& request);

  // ---- Life cycle
  // This rank waits for the peer: for data, or for permission to send.
  bool awaiting() const { return receives_.size() + waiting_.size() > 0 || in_.receive != nullptr; }
  // Messages may go, or are on their way.
  bool sending() const { return on_their_way_ > 0 || !ready_.empty(); }
  bool peer_left() const { return goodbye_received_; }
  // Whether this message, or its beginning, arrived before its receive was posted.
  bool has_early(const MessageTag& tag) { return early_.find(tag) != nullptr; }
  bool goodbye_answered() const { return goodbye_received_ || goodbye_seen_; }
  // Drops all requests. Data that arrives from now on is dropped. With `goodbye`, a goodbye is the last frame. A rail
  // still finishes a message that it has partly sent.
  void close(bool goodbye);

 private:
  struct Incoming {                  // the message whose payload arrives
    RecvRequest* receive = nullptr;  // null: no receive was posted when it began
    MessageTag tag;
    Piece buffer;         // from the pool; unused where the data goes straight into the receive's pieces
    bool active = false;  // end() must do something
  };
  struct Early {  // arrived before its receive
    std::byte* buffer = nullptr;
    MessageTag tag;
    uint64_t bytes = 0;
    bool complete = false;
  };
  struct Announced {  // a kRequest or kClear whose request is not posted here yet
    MessageTag tag;
    uint64_t bytes = 0;
  };

  using Payload = std::span<const Piece>;
  Result<Payload> handle_message(const Frame& frame);
  Result<Payload> begin_eager(const Frame& frame);
  Result<Payload> begin_data(const Frame& frame);
  Status cleared(const Frame& frame);
  Status requested(const Frame& frame);
  Result<Payload> begin_payload(const Frame& frame, RecvRequest* receive);
  // `sent`: this rank sends. `received`: the peer sends.
  Error sent_differs(const SendRequest& request, const MessageTag& expected, uint64_t bytes) const;
  Error received_differs(const MessageTag& sent, uint64_t bytes, const RecvRequest& request) const;
  std::string name_of(bool peer) const;
  Status accept_early(Early early, RecvRequest& request);
  void complete(RecvRequest& request, std::byte* buffer);

  void put_control(FrameType type, const MessageTag& tag, uint64_t bytes);
  void clear_to_send(RecvRequest& request);
  void make_ready(SendRequest& request);
  void give_credit_back(uint64_t bytes);
  uint32_t take_owed_credit();

  const LinkLimits limits_;
  BufferPool& pool_;
  Agreement* const agreement_;
  const int32_t peer_;

  TagMap<RecvRequest*> receives_;  // posted, no data yet
  TagMap<Early> early_;
  TagMap<Announced> requests_;  // kRequests without a receive
  uint64_t early_cost_ = 0;     // credit that the peer uses
  uint64_t owed_ = 0;           // credit to give back
  size_t cleared_receives_ = 0;
  Incoming in_;

  TagMap<SendRequest*> waiting_;     // sends that wait for kClear
  TagMap<Announced> clears_;         // kClears without a send
  std::vector<SendRequest*> ready_;  // a heap: oldest tag first
  uint64_t credit_;
  std::vector<Frame> control_;
  size_t control_at_ = 0;    // those before it were taken
  size_t on_their_way_ = 0;  // messages taken and not written

  bool closed_ = false;
  bool goodbye_received_ = false;
  bool goodbye_seen_ = false;
};

}  // namespace trestle
