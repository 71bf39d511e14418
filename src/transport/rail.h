// The contract of rails: what carries messages between this rank and its peers, below the message layer
// (transport/message/). One object per rail of a rank: for tcp the connections over one interface.
//
// Division of work. The message layer knows requests: it matches, gives credit, clears, cuts messages into fragments,
// and decides what goes next over which rail. A rail knows connections: it makes them, moves bytes, and notices their
// end. A rail never keeps a message waiting in a queue of its own. When it can write, it asks what to send next
// (RailEvents), so an older message always overtakes those that no rail has begun, and a rail that writes faster takes
// more. Where the message layer says so (RailPeer::in_order), frames leave in the order in which the rail got them.
//
// Ownership and threads: a RailTransport owns its rails and calls them under the rank's progress lock. A rail calls its
// events only from inside such a call. Nothing blocks except close().
//
// Errors. Those of the events continue the peer's name ("sent ..."), except those of kInvalidUsage, which are whole
// sentences. The rail adds the name, and returns only whole sentences. An error that a rail returns ends the transport.
// The end of a connection with one peer is an event, and no error of the rail.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/frame.h"
#include "transport/transport.h"

namespace trestle {

// What the message layer tells a rail about a peer.
struct RailPeer {
  bool has_output = false;        // there is something that this rail is to send
  bool sending = false;           // messages may go, or are on their way
  bool awaited = false;           // this rank waits for the peer: for data, or for permission to send
  bool expects_large = false;     // a large message is about to come
  bool left = false;              // said goodbye over this rail
  bool goodbye_answered = false;  // it has said goodbye too, or has read this rank's
  bool in_order = false;          // its frames must leave in the order in which they were asked for
  bool unsettled = false;         // the end of the last connection is not agreed on: no other one may begin
};

// What a rail sends next: a message, or a part of one.
struct Fragment {
  Frame header;
  // header.length bytes of them, after the first `skip`. Valid until written(), or until the connection has ended.
  std::span<const ConstPiece> pieces;
  uint64_t skip = 0;
  SendRequest* request = nullptr;  // for the message layer
};

class RailEvents {
 public:
  virtual ~RailEvents() = default;

  virtual RailPeer peer(int32_t rank) const = 0;
  // How many bytes the rail should at most have taken and not sent yet: nothing overtakes them, not even an
  // acknowledgement. 0: not known; the rail may know better.
  virtual uint64_t hold_bytes(int32_t /*rank*/) const { return 0; }
  // "rank 3 (host a, pid 12)", for sentences.
  virtual const std::string& name(int32_t rank) const = 0;

  // A connection is made. From now on the rail asks for what may go.
  virtual void connected(int32_t rank) = 0;
  // The peer has ended the connection. Success: in order, or other rails go on.
  virtual Status ended(int32_t rank) = 0;
  // The connection has failed, or none could be made. `why` is a whole sentence. Success: other rails go on. Otherwise
  // an error for the rail to return.
  virtual Status lost(int32_t rank, const Error& why) = 0;

  // ---- what to send: the rail can write to the peer
  // A header without payload. False: there is none. Such headers go before all messages that are not begun, unless
  // frames must leave in order.
  virtual bool next_control(int32_t rank, Frame& header) = 0;
  // False: nothing may go over this rail now.
  virtual bool next_fragment(int32_t rank, Fragment& fragment) = 0;
  // All its bytes are on their way.
  virtual void written(int32_t rank, const Fragment& fragment) = 0;

  // ---- what has come, in the order in which the peer sent it over this rail
  // A header. Returns where the header.length bytes of its payload go, valid until end() or until the connection has
  // ended. No pieces: they are dropped.
  virtual Result<std::span<const Piece>> begin(int32_t rank, const Frame& header) = 0;
  // The payload of the last header is complete. Also called where there is none.
  virtual Status end(int32_t rank) = 0;
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
  // Why it carries nothing now, whatever the peers do ("eth1 is down"); "": it may. Takes a system call.
  virtual std::string fault() const { return {}; }

  // Begins a connection, unless there is one or one is being made.
  virtual Status reach(int32_t rank) = 0;
  // Ends the connection with the peer, and attempts to make one, at once and without an event. Frames that were asked
  // for and are not written are forgotten, and nothing that comes later over the old connection is read.
  virtual void drop(int32_t rank) = 0;
  // Whether the connection that reach() asked for still waits to be begun, behind those with other peers. Meanwhile no
  // time limit of the attempt counts.
  virtual bool in_line(int32_t) const { return false; }
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

  // From now on the events have only goodbyes left to send, and drop what comes. With linger_ms > 0 the rail sends the
  // goodbyes, and waits at most linger_ms for the answers. Then it ends all connections. Idempotent.
  virtual void close(int linger_ms) = 0;

 protected:
  RailEvents* events_ = nullptr;
};

}  // namespace trestle
