// HostShares: how much of a message to a peer's device goes through host memory, while the rest of it takes the peer
// path (memory/peer_paths.h). Two paths at once carry more than the better one, where they are different wires: NVLink
// between the devices, PCIe between each of them and the host (FlexLink, arXiv:2510.15882).
//
// The part through the host grows while it arrives before the rest, and shrinks when it arrives after it, or when the
// message has waited longer for its copy to the host than the rest took then. So both wires are busy, and neither
// delays the other for long. Rails between hosts are divided by their rates instead (transport/message/shares.h). That
// needs rails that are loaded now and then; a path that is given a tenth of all data never shows more than that. A path
// that delays messages even with the smallest part gets none, but for one probe now and then, and the more a probe
// delays, the rarer they are.
//
// Owned by an engine, used under the rank's progress lock; reports() by any thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "memory/peer_paths.h"
#include "transport/message/goodput.h"
#include "transport/message/rail_book.h"
#include "transport/transport.h"

namespace trestle {

class HostShares {
 public:
  // Messages to the peers that paths.divides() names are divided.
  HostShares(const PeerPaths& paths, int32_t ranks, int64_t now_ns);

  bool divides(int32_t peer) const { return peers_.contains(peer); }
  // Of the next message to a peer that divides(): a multiple of kDividedUnitBytes, at most most_through_host().
  uint64_t bytes_through_host(int32_t peer, uint64_t bytes, int64_t now_ns) const;

  // A message that is under way. Its part through the host begins first, if it has one.
  struct Sent {
    Goodput::Mark direct;
    Goodput::Mark host;
    int64_t waited_ns = 0;  // for the copy to the host, when all else was ready
  };
  Goodput::Mark send_through_host(int32_t peer, uint64_t bytes, int64_t now_ns);
  Goodput::Mark send_directly(int32_t peer, uint64_t bytes, int64_t now_ns);
  // The peer's device has read it. times: when. Shares change only if both are known.
  void read(int32_t peer, const Sent& sent, const ReadTimes& times, int64_t now_ns);

  // Nothing is sent any more.
  void close(int64_t now_ns) { book_.close(now_ns); }
  // Two rows per peer. Any thread.
  std::vector<RailReport> reports() const { return book_.read(); }

 private:
  struct Path {
    Path(RailBook& book, int32_t peer, const char* name, int64_t now_ns) : record(book.add(peer, name, 2, now_ns)) {
      record.connected(now_ns);
    }
    RailRecord& record;
    Goodput goodput;
    int64_t read_ns = 0;  // the last time, which never goes back
  };
  struct Peer {
    Path direct;
    Path host;
    uint64_t parts = 0;        // of kParts of a message, through the host
    uint64_t under_way = 0;    // messages
    uint64_t old = 0;          // of them, those that were divided before `parts` changed
    int64_t lag_ns = 0;        // of the part through the host behind the rest, when that was looked at last
    uint64_t until_probe = 0;  // messages, while there are no parts
    int64_t no_probe_before_ns = 0;
    int64_t delays_per_probe = 0;
  };

  static Goodput::Mark send(Path& path, uint64_t bytes, int64_t now_ns);
  static void read_part(Path& path, const Goodput::Mark& mark, int64_t at_ns);
  static void adjust(Peer& peer, int64_t lag_ns, int64_t message_ns, int64_t now_ns);

  RailBook book_;
  std::map<int32_t, Peer> peers_;
};

}  // namespace trestle
