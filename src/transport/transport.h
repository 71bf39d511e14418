// The contract of transports. One object per (communicator, rank, carrier); it reaches all peers of that carrier
// (docs/architecture.md, Words).
//
// Ownership and threads: the rank's engine owns it and calls it under the rank's progress lock: one caller at a time,
// from changing threads. Nothing here blocks except close(). Transports never reduce and know nothing of steps: they
// carry messages.
//
// Messages. A message = (peer, tag, bytes). Each tag is used once per peer and direction in the life of a communicator;
// sends and receives with the same tag match, in whatever order the two sides post them. Any number may be open at the
// same time, and no message ever waits behind another one that its receiver has not posted (no head-of-line blocking):
// above the eager limit a sender waits for clear-to-send, which the receiver's transport issues when its receive is
// posted; eager data is bounded per peer and always drained. Both sides give the same number of bytes. If the counts of
// their callers disagree, the side that sees the difference reports an error of kInvalidUsage that names both ranks
// (different_sizes() in agreement.h).
//
// Completion. A send is done when its pieces may be overwritten: the peer has read them (mapped), or they were copied
// out. A receive with a destination is done when the data is there. A receive without a destination (a *view*) is done
// when the data may be read where it is (the peer's memory, a ring, a pool) until release(). If it is read in the
// sender's memory, the send is done after release(). Requests belong to the caller and must not move or die from the
// accepted post until done (view: until release()), or until close().
//
// Memory of devices. Transports never touch its bytes. In a process they hand it out as views (loopback). To another
// process it goes only along a device path (set_device_path()): the message's one piece lies in the sender's outbox,
// and the receive is done with a view of it as the receiver's process has opened it, also if it has a destination. A
// second piece, or the only one, may lie in the sender's outbox of host memory, which the receiver's device reads as
// well. Only a short message there may be copied instead.
//
// Agreement. Every message carries the check of the operation that its sender runs. A transport tells its Agreement
// (transport/agreement.h) of everything with a tag that arrives, before anything else is done with it; a check that
// differs is an error of kInvalidUsage. A send whose tag is a notice (is_notice) has no bytes and no receive: it is
// done at once, waits for nothing, and all that happens on its arrival is that the Agreement hears of it. To a peer
// that has left it goes nowhere, without an error.
//
// Errors: a dead or lying peer, a failed system call: progress() or a post returns it, with a sentence that names the
// peer; the communicator then fails as a whole (sticky). After close() nothing completes, and the transport does not
// touch requests or buffers any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/counter.h"
#include "base/operation_number.h"
#include "base/result.h"
#include "transport/rail_report.h"

namespace trestle {

struct Region;  // memory/region.h

// Bits of MessageTag::check that travel.
inline constexpr int kCheckBits = 48;

struct MessageTag {
  uint64_t operation = 0;  // number of the operation in the communicator (base/operation_number.h)
  uint32_t phase = 0;      // chunk * stages + stage
  uint32_t message = 0;    // number of the message from this sender to this receiver in the phase
  uint64_t offset = 0;     // bytes, of the segment in the message
  // The check of the operation that the sender of the message (or the poster of the receive) runs
  // (transport/agreement.h): kCheckBits, and above them zeros. Does not count when tags are compared.
  uint64_t check = 0;
  // Does not count either. Where only the two ends know how long a message is: the bytes of all its segments together.
  // So the first segment shows a difference; else ends with different numbers of segments would wait for each other.
  // Such a message is the only one of its pair in the operation (phase and message are 0), so headers carry this number
  // in their place.
  uint64_t whole = 0;
  bool operator==(const MessageTag& other) const {
    return operation == other.operation && phase == other.phase && message == other.message && offset == other.offset;
  }
};

// Whether the ends of a message mean different sizes. `bytes` are those of the segment at either end.
constexpr bool sizes_differ(const MessageTag& sent, uint64_t sent_bytes, const MessageTag& expected,
                            uint64_t expected_bytes) {
  return sent_bytes != expected_bytes || sent.whole != expected.whole;
}

// The phase of messages that only say what their sender runs.
inline constexpr uint32_t kNoticePhase = UINT32_MAX;
constexpr bool is_notice(const MessageTag& tag) {
  return tag.phase == kNoticePhase;
}
struct MessageTagHash {
  size_t operator()(const MessageTag& tag) const {
    uint64_t h = tag.operation * 0x9e3779b97f4a7c15ull ^ tag.offset * 0xc2b2ae3d27d4eb4full;
    h ^= (static_cast<uint64_t>(tag.phase) << 32 | tag.message) * 0xbf58476d1ce4e5b9ull;
    return static_cast<size_t>(h ^ (h >> 29));
  }
};

// Bytes of a region; `region` is nullptr for memory that only this rank reaches. Views for a device, and of memory of
// a rank of this process, have a region; others have none. The region outlives the request.
struct ConstPiece {
  const std::byte* data = nullptr;
  size_t bytes = 0;
  const Region* region = nullptr;
};
struct Piece {
  std::byte* data = nullptr;
  size_t bytes = 0;
  const Region* region = nullptr;
};

enum class RequestState : uint8_t { kIdle, kPending, kDone };

// What a transport keeps in a request while it is posted; only the transport touches it.
struct TransportPrivate {
  void* pointer[2] = {nullptr, nullptr};
  uint64_t word[4] = {0, 0, 0, 0};
};

// When the receiver's device had read a message of memory of devices: the part that lies in such memory, and the part
// that lies in host memory. CLOCK_MONOTONIC; 0: there is none, or it is not known.
struct ReadTimes {
  int64_t device_ns = 0;
  int64_t host_ns = 0;
};

struct SendRequest {
  int32_t peer = 0;  // rank in the communicator
  MessageTag tag;
  uint32_t turn = 0;  // its phase's place in its dimension: of an operation's messages that may go, the lowest first
  std::span<const ConstPiece> pieces;  // at most kMaxPieces
  size_t bytes = 0;                    // their sum; may be 0
  uint32_t step = 0;                   // of its phase: a transport that can choose may let earlier ones go first
  RequestState state = RequestState::kIdle;
  bool* touched = nullptr;  // see RecvRequest
  bool mapped = false;  // set by a post that was taken, only by shared memory: the peer reads the pieces where they lie
  ReadTimes read;       // RecvRequest::read of the peer, when it is done, where the transport can tell
  TransportPrivate transport;
};

struct RecvRequest {
  int32_t peer = 0;
  MessageTag tag;
  std::span<const Piece> pieces;  // empty: a view is wanted
  size_t bytes = 0;               // may be 0
  RequestState state = RequestState::kIdle;
  // Only simulated transports set it, when the state becomes kDone. So the engine advances only the phases that can go
  // on, of many.
  bool* touched = nullptr;
  // Done view: where the data is, in order; their sum is `bytes`. Capacity is kept between uses. Of a receive with a
  // destination it is empty, unless the message lies in memory of a device (DevicePath): then nothing was written to
  // `pieces`.
  std::vector<ConstPiece> view;
  ReadTimes read;  // set before release()
  TransportPrivate transport;
};

inline constexpr size_t kMaxPieces = 256;

// What all transports of a communicator need to know. A value that only one kind of transport reads is an option of
// its own (transport/catalog.h).
struct EndpointConfig {
  int32_t rank = 0;
  int32_t ranks = 1;
  std::string job;                // the communicator's id, hexadecimal: names in-process boards, appears in messages
  std::vector<std::byte> secret;  // key for the mutual proof; empty: none (a warning was given where that matters)
  std::vector<std::string> peer_names;  // "rank 3 (host a, pid 12)", for sentences; filled before set_peers
  std::string
      interface;  // of kinds that have interfaces: those to use, as in TRESTLE_RAILS; "" : the transport's choice
  std::optional<uint64_t> eager_bytes;  // TRESTLE_EAGER: 0 is only empty messages; unset: the transport's choice
};

// Two ranks of different processes whose devices read each other's outboxes (memory/outbox.h): both of memory of
// devices, or both of host memory.
struct DevicePath {
  uint64_t own_id = 0;             // Region::share of this rank's outbox
  const Region* outbox = nullptr;  // of the peer, as this process has opened it; Region::share as the peer says
};

class Agreement;

class Transport {
 public:
  virtual ~Transport() = default;

  // Before the first post or progress(); outlives the transport's use. Without one nothing is compared.
  void set_agreement(Agreement* agreement) { agreement_ = agreement; }

  // Memory for data that it holds: what it shares with peers and what it keeps for early messages. Any thread.
  const ByteMeter& memory() const { return memory_; }

  // The NUMA node that its hardware is at; -1: not known, or it uses none. Any thread.
  int numa_node() const { return numa_node_; }

  // How many rails this rank has, over which a message may be divided. After set_peers().
  virtual size_t rails() const { return 1; }

  // The state of the rails to each peer: by peer, then by rail. Only of transports that have rails, and of peers that
  // they have reached, or that have reached them. Any thread, also after close(); waits for nothing.
  virtual std::vector<RailReport> rail_reports() const { return {}; }

  // What peers need to reach this rank; valid after creation. May be empty. At most 512 bytes.
  virtual std::string address() const = 0;
  // Addresses of all ranks (own one included; "" for ranks this transport will not be asked to reach). Connections are
  // made at first use.
  virtual Status set_peers(const std::vector<std::string>& addresses, const std::vector<std::string>& peer_names) = 0;

  // Whether messages may take device paths. The same at both ends.
  virtual bool has_device_paths() const { return false; }
  // Before the first message to or from the peer, if there are any: once for devices, and once more for host memory.
  // The region outlives the transport.
  virtual void set_device_path(int32_t /*peer*/, const DevicePath& /*path*/) {}

  // true: accepted (the state is kPending or already kDone); false: try again later, nothing was taken.
  virtual Result<bool> post_send(SendRequest& request) = 0;
  virtual Result<bool> post_recv(RecvRequest& request) = 0;
  // Ends the reading of a done view.
  virtual void release(RecvRequest& request) = 0;

  // Moves everything that can move now; completes requests. True if anything moved.
  virtual Result<bool> progress() = 0;
  // Makes the next progress() look at everything, also at what most rounds skip for the sake of speed. A thread that
  // drives this rank rarely calls it. Without it, connecting peers would wait for hundreds of rounds.
  virtual void look_everywhere() {}

  // Sleeping. event_fd() becomes readable when progress() might do something, or on_arrival()'s function is called; -1:
  // there are no events but those calls. prepare_sleep() announces to peers that a wake-up is needed and
  // returns false if there is already something to do (then do not sleep); finish_sleep() takes it back.
  virtual int event_fd() const = 0;
  // All transports of this kind that this rank has, of any number of communicators, have one event_fd(). Then no epoll
  // may watch it: the kernel allows 500 that watch one socket.
  virtual bool shares_events() const { return false; }
  virtual bool prepare_sleep() = 0;
  // ring: wakes the thread that sleeps; called by other threads, under locks, when they have brought something. Before
  // the first sleep; empty: nothing is called any more.
  virtual void on_arrival(std::function<void()> /*ring*/) {}
  virtual void finish_sleep() = 0;

  // Ends everything at once: see the top. Idempotent. Messages that were done on the sending side still reach a living
  // peer (linger: at most `linger_ms`, waiting for the peer to take them; 0: drop).
  virtual void close(int linger_ms) = 0;

 protected:
  Agreement* agreement_ = nullptr;
  ByteMeter memory_;
  int numa_node_ = -1;  // constant once it is made
};

}  // namespace trestle
