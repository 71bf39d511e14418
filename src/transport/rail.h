// The contract of rails: what carries messages between this rank and its peers, below the message layer
// (transport/message/). One object per rail of a rank: for tcp the connections over one interface.
//
// Division of work. The message layer knows requests: it matches, gives credit, clears, and decides what goes next. A
// rail knows connections: it makes them, moves bytes, and notices their end. A rail never keeps a message waiting in a
// queue of its own. When it can write, it asks what to send next (RailEvents), so an older message always overtakes
// those that no rail has begun, and a rail that writes faster takes more.
//
// Ownership and threads: a RailTransport owns its rails and calls them under the rank's progress lock. A rail calls its
// events only from inside such a call. Nothing blocks except close().
//
// Errors. Those of the events continue the peer's name ("sent ..."), but for those of kInvalidUsage, which are whole
// sentences. The rail adds the name, and returns whole sentences only. Any error ends the transport.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/message/frame.h"
#include "transport/transport.h"

namespace trestle {

// What the message layer tells a rail about a peer.
struct RailPeer {
  bool has_output = false;        // there is something to send
  bool sending = false;           // messages may go, or are on their way
  bool awaited = false;           // this rank waits for the peer: for data, or for permission to send
  bool expects_large = false;     // a large message is about to come
  bool left = false;              // said goodbye
  bool goodbye_answered = false;  // it has said goodbye too, or has read this rank's
};

class RailEvents {
 public:
  virtual ~RailEvents() = default;

  virtual RailPeer peer(int32_t rank) const = 0;
  // "rank 3 (host a, pid 12)", for sentences.
  virtual const std::string& name(int32_t rank) const = 0;

  // A connection is made. What may go is asked for from now on.
  virtual void connected(int32_t rank) = 0;
  // The connection has ended. Success: the peer has left in order.
  virtual Status ended(int32_t rank) = 0;

  // ---- what to send: the rail can write to the peer
  // A header without payload. False: there is none. Such headers go before all messages that are not begun.
  virtual bool next_control(int32_t rank, Frame& header) = 0;
  // The message that goes next; nullptr: none may go. Its pieces stay until written().
  virtual SendRequest* next_message(int32_t rank, Frame& header) = 0;
  // All bytes of the message are on their way.
  virtual void written(int32_t rank, SendRequest& request) = 0;

  // ---- what has come, in the order in which the peer sent it over this rail
  // A header. Returns where the header.bytes bytes of its payload go, valid until end(). No pieces: they are dropped.
  virtual Result<std::span<const Piece>> begin(int32_t rank, const Frame& header) = 0;
  // The payload of the last header is complete. Also called where there is none.
  virtual void end(int32_t rank) = 0;
};

class Rail {
 public:
  virtual ~Rail() = default;

  // Before anything else; outlives the rail's use.
  void set_events(RailEvents* events) { events_ = events; }

  // What peers need to reach this rank over this rail, as Transport::address().
  virtual std::string address() const = 0;
  // By rank; "": not reachable over this rail.
  virtual Status set_peers(const std::vector<std::string>& addresses) = 0;
  // Of its buffers for data.
  virtual uint64_t memory_bytes() const = 0;

  // Begins a connection, unless there is one or one is being made.
  virtual Status reach(int32_t rank) = 0;
  // Whether the peer takes data at once: it is connected, and nothing that was begun is unfinished.
  virtual bool is_idle(int32_t rank) const = 0;
  // Writes to a connected peer as far as it takes data now. True if anything moved.
  virtual Result<bool> write(int32_t rank) = 0;
  // Reads and writes everything that can move. True if anything moved.
  virtual Result<bool> progress() = 0;

  // As those of Transport.
  virtual void look_everywhere() {}
  virtual int event_fd() const = 0;
  virtual bool prepare_sleep() = 0;
  virtual void finish_sleep() = 0;

  // From now on the events have nothing left to send but goodbyes, and drop what comes. With linger_ms > 0 the rail
  // sends them, and waits at most so long for the answers. Then it ends all connections. Idempotent.
  virtual void close(int linger_ms) = 0;

 protected:
  RailEvents* events_ = nullptr;
};

}  // namespace trestle
