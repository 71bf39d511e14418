// PeerProtocol: the open messages between a rank and one peer, and the protocol between the two, above the rails that
// carry it. Headers that arrive are passed in, and what to send next is taken out. So tests and fuzzers can drive two
// of them against each other without a connection.
//
// Owned by a RailTransport, which also owns the buffer pool; used under the rank's progress lock. Error messages about
// input continue the peer's name ("sent ..."). Those of the Agreement (kInvalidUsage) are whole sentences.
//
// Rails. Frames that travel over different rails may overtake each other, and a large message may come in fragments, in
// any order. `rail` is the number of a rail between the two ranks, as in peer_rails.h. With one rail it is 0.
//
// Flow. A message up to the eager limit is sent at once, if there is credit for it. The receiver keeps at most
// `credit_bytes` of messages that have no receive yet, and returns credit as they are matched. Without credit the
// sender asks (kRequest) and waits for kClear, as a large message does. So messages without a receive never block the
// others. A large receive sends kClear when it is posted. Cleared and eager messages leave in the order of their
// operations, turns and tags.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/agreement.h"
#include "transport/buffer_pool.h"
#include "transport/frame.h"
#include "transport/message/assembly.h"
#include "transport/rail.h"
#include "transport/tag_map.h"
#include "transport/transport.h"

namespace trestle {

struct PeerLimits {
  uint64_t eager_bytes = 32 * 1024;    // both sides have one value
  uint64_t credit_bytes = 512 * 1024;  // both sides have one value; at least 4 * (eager_bytes + kEagerOverhead)
};
// What keeping one message costs beyond its bytes. Bounds the number of small ones.
inline constexpr uint64_t kEagerOverhead = 256;

class PeerProtocol {
 public:
  // agreement: checks everything that `peer` sends; null: nothing is compared.
  explicit PeerProtocol(const PeerLimits& limits, BufferPool& pool, Agreement* agreement = nullptr, int32_t peer = 0,
                        size_t rails = 1)
      : limits_(limits), pool_(pool), agreement_(agreement), peer_(peer), in_(rails), credit_(limits.credit_bytes) {}
  PeerProtocol(const PeerProtocol&) = delete;
  PeerProtocol& operator=(const PeerProtocol&) = delete;

  // ---- Requests: as in transport.h. False: too many are open, try again.
  Result<bool> post_send(SendRequest& request);
  Result<bool> post_recv(RecvRequest& request);
  void release(RecvRequest& request);

  // ---- Input
  // A header has arrived. Returns where its payload goes: valid until end(), interrupted(), or close(). No pieces: it
  // is dropped, or there is none.
  Result<std::span<const Piece>> begin(const Frame& frame, size_t rail = 0);
  // The payload of the rail's last header is complete.
  void end(size_t rail = 0);
  // The rest of the payload does not come over this rail. The peer will send all of it again.
  void interrupted(size_t rail);
  bool large_expected() const { return cleared_receives_ > 0; }

  // ---- Output
  bool has_control() const { return control_at_ < control_.size(); }
  bool has_messages() const { return !ready_.empty(); }
  bool has_output(size_t rail = 0) const { return has_control() || has_messages() || has_goodbye(rail); }
  // Takes the next header without payload; these go first. False: there is none.
  bool next_control(Frame& header);
  // With several rails: a header from next_control() has reached the peer.
  void control_arrived(const Frame& header);
  // Bytes that may go and are not taken yet: of all messages, and of the oldest one. And whether the oldest one must
  // stay whole.
  uint64_t ready_bytes() const { return ready_bytes_; }
  uint64_t front_bytes() const;
  bool front_is_whole() const;
  // Takes at most `most` bytes, at least 1, of the oldest message that may go; those that must stay whole as a whole.
  // False: there is none. arrived() must follow for all of it, in any order.
  bool next_fragment(uint64_t most, Fragment& fragment);
  // The bytes of the fragment need not be kept any longer.
  void arrived(const Fragment& fragment);
  // The last frames over a rail: this rank's goodbye after close(), and the answer to the peer's.
  bool has_goodbye(size_t rail) const { return in_[rail].owes_goodbye || in_[rail].owes_answer; }
  bool next_goodbye(size_t rail, Frame& header);

  // ---- Life cycle
  // This rank waits for the peer: for data, or for permission to send.
  bool awaiting() const { return receives_.size() + waiting_.size() + arriving_ > 0; }
  // Messages may go, or are on their way.
  bool sending() const { return on_their_way_ > 0 || !ready_.empty(); }
  // Over any rail, or over this one.
  bool peer_left() const { return peer_left_; }
  bool is_closed() const { return closed_; }
  bool peer_left(size_t rail) const { return in_[rail].goodbye_received; }
  bool goodbye_answered(size_t rail) const { return in_[rail].goodbye_received || in_[rail].goodbye_seen; }
  // Whether this message, or its beginning, arrived before its receive was posted.
  bool has_early(const MessageTag& tag) { return early_.find(tag) != nullptr; }
  // Drops all requests. Data that arrives from now on is dropped. With `goodbye`, a goodbye is the last frame of every
  // rail. A rail still finishes a message that it has partly sent.
  void close(bool goodbye);

 private:
  struct Incoming {                  // over one rail
    bool active = false;             // a payload arrives: end() must do something
    RecvRequest* receive = nullptr;  // null: no receive was posted when it began
    Frame frame;
    Piece buffer;               // from the pool; unused where the data goes straight into the receive's pieces
    std::vector<Piece> pieces;  // where a part of a message goes
    bool goodbye_received = false;
    bool goodbye_seen = false;
    bool owes_goodbye = false;
    bool owes_answer = false;
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
  Result<Payload> handle_message(const Frame& frame, Incoming& in);
  Result<Payload> goodbye(const Frame& frame, Incoming& in);
  Result<Payload> begin_eager(const Frame& frame, Incoming& in);
  Result<Payload> begin_data(const Frame& frame, Incoming& in);
  Result<Payload> begin_part(const Frame& frame, Incoming& in, RecvRequest& receive);
  Result<std::byte*> take_buffer(uint64_t bytes);
  Assembly& assembly_of(RecvRequest& receive);
  Status cleared(const Frame& frame);
  Status requested(const Frame& frame);
  Result<Payload> begin_payload(const Frame& frame, Incoming& in, RecvRequest* receive);
  void set_active(Incoming& in, const Frame& frame, RecvRequest* receive);
  void end_part(const Incoming& in);
  void take_back(RecvRequest& receive);
  // `sent`: this rank sends. `received`: the peer sends.
  Error sent_differs(const SendRequest& request, const MessageTag& expected, uint64_t bytes) const;
  Error received_differs(const MessageTag& sent, uint64_t bytes, const RecvRequest& request) const;
  std::string name_of(bool peer) const;
  Status accept_early(const Early& early, RecvRequest& request);
  void complete(RecvRequest& request, std::byte* buffer);

  void put_control(FrameType type, const MessageTag& tag, uint64_t bytes);
  void clear_to_send(RecvRequest& request);
  void make_ready(SendRequest& request, FrameType type);
  void give_credit_back(uint64_t bytes);
  uint32_t take_owed_credit();

  const PeerLimits limits_;
  BufferPool& pool_;
  Agreement* const agreement_;
  const int32_t peer_;

  TagMap<RecvRequest*> receives_;  // posted, no data yet
  TagMap<Early> early_;
  TagMap<Announced> requests_;  // kRequests without a receive
  uint64_t early_cost_ = 0;     // credit that the peer uses
  uint64_t owed_ = 0;           // credit to give back
  size_t cleared_receives_ = 0;
  size_t arriving_ = 0;       // posted receives that left `receives_` and are not done
  std::vector<Incoming> in_;  // by rail
  std::deque<Assembly> assemblies_;
  std::vector<Assembly*> free_assemblies_;

  TagMap<SendRequest*> waiting_;     // sends that wait for kClear
  TagMap<Announced> clears_;         // kClears without a send
  std::vector<SendRequest*> ready_;  // a heap: oldest tag first
  uint64_t credit_;
  std::vector<Frame> control_;
  size_t control_at_ = 0;  // those before it were taken
  uint64_t ready_bytes_ = 0;
  size_t on_their_way_ = 0;  // messages of which something was taken and not everything has arrived

  bool closed_ = false;
  bool peer_left_ = false;
};

}  // namespace trestle
