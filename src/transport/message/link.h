// Link: the open messages between a rank and one peer, and the protocol between the two, without I/O. Received bytes
// are passed in, and bytes to send are taken out. So tests and fuzzers can drive two of them against each other without
// a socket.
//
// Owned by the tcp transport, which also owns the buffer pool; used under the rank's progress lock. Error messages
// about input continue the peer's name ("sent ..."). Those of the Agreement (kInvalidUsage) are whole sentences.
//
// Flow. A message up to the eager limit is sent at once, if there is credit for it. The receiver keeps at most
// `credit_bytes` of messages that have no receive yet, and returns credit as they are matched. Without credit the
// sender asks (kRequest) and waits for kClear, as a large message does. So messages without a receive never block the
// others. A large receive sends kClear when it is posted. Cleared and eager messages leave in the order of their
// operations, turns and tags.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "transport/agreement.h"
#include "transport/buffer_pool.h"
#include "transport/pieces.h"
#include "transport/tag_map.h"
#include "transport/message/frame.h"
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
  Link(const LinkLimits& limits, uint32_t check_in, uint32_t check_out, BufferPool& pool,
       Agreement* agreement = nullptr, int32_t peer = 0)
      : limits_(limits),
        check_in_(check_in),
        check_out_(check_out),
        pool_(pool),
        agreement_(agreement),
        peer_(peer),
        credit_(limits.credit_bytes) {}
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // ---- Requests: as in transport.h. False: too many are open, try again.
  Result<bool> post_send(SendRequest& request);
  Result<bool> post_recv(RecvRequest& request);
  void release(RecvRequest& request);

  // ---- Input
  // The destination of the payload in progress: fills `vectors` and returns how many; 0 when a header comes next.
  size_t target(std::span<iovec> vectors) const;
  // The first `bytes` of target() were filled.
  Status filled(size_t bytes);
  // Takes bytes that were received behind the target, or without one.
  Status take(std::span<const std::byte> data);
  bool large_expected() const { return cleared_receives_ > 0; }

  // ---- Output
  bool has_output() const { return control_.size() > control_at_ || out_count_ > 0 || !ready_.empty(); }
  // Fills `vectors` with what to write next, in order, and returns how many. Call wrote() before anything else.
  size_t fill_output(std::span<iovec> vectors);
  void wrote(size_t bytes);

  // ---- Life cycle
  // This rank waits for the peer: for data, or for permission to send.
  bool awaiting() const { return receives_.size() + waiting_.size() > 0 || (in_.left > 0 && in_.receive != nullptr); }
  bool sending() const { return out_count_ > 0 || !ready_.empty(); }
  bool peer_left() const { return goodbye_received_; }
  // Whether this message, or its beginning, arrived before its receive was posted.
  bool has_early(const MessageTag& tag) { return early_.find(tag) != nullptr; }
  bool goodbye_answered() const { return goodbye_received_ || goodbye_seen_; }
  // Drops all requests except a frame that is partly sent. Data that arrives from now on is discarded. With `goodbye`,
  // a goodbye is the last frame.
  void close(bool goodbye);

 private:
  struct OutFrame {
    std::array<std::byte, kFrameBytes> header;
    size_t header_at = 0;
    SendRequest* send = nullptr;
    PieceCursor<ConstPiece> rest;
  };
  struct Incoming {
    RecvRequest* receive = nullptr;  // null: no receive is posted yet
    MessageTag tag;
    uint64_t bytes = 0;
    uint64_t left = 0;
    Piece buffer;  // from the pool; unused where the data goes straight into the receive's pieces
    PieceCursor<Piece> rest;
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

  Status handle(const Frame& frame);
  Status handle_message(const Frame& frame);
  Status begin_eager(const Frame& frame);
  Status begin_data(const Frame& frame);
  Status cleared(const Frame& frame);
  Status requested(const Frame& frame);
  Status begin_payload(const Frame& frame, RecvRequest* receive);
  Status took(uint64_t bytes);
  Status end_payload();
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
  void commit_frames();

  const LinkLimits limits_;
  const uint32_t check_in_;
  const uint32_t check_out_;
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
  std::array<std::byte, kFrameBytes> header_{};
  size_t header_bytes_ = 0;

  TagMap<SendRequest*> waiting_;     // sends that wait for kClear
  TagMap<Announced> clears_;         // kClears without a send
  std::vector<SendRequest*> ready_;  // a heap: oldest tag first
  uint64_t credit_;
  std::vector<std::byte> control_;
  size_t control_at_ = 0;
  static constexpr size_t kMostOutFrames = 8;
  std::array<OutFrame, kMostOutFrames> out_;  // a ring of frames, committed to the stream in this order
  size_t out_first_ = 0;
  size_t out_count_ = 0;

  bool closed_ = false;
  bool goodbye_received_ = false;
  bool goodbye_seen_ = false;
};

}  // namespace trestle
