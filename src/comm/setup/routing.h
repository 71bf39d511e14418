// Routing: which transport joins two ranks, on which interface, and in what segments. Every answer is computed when it
// is asked for. It keeps a few bytes per rank, and nothing per pair.
//
// A value; const functions from any thread, unless pairs are counted.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "base/transport_kinds.h"
#include "comm/setup/named_rails.h"
#include "memory/place.h"
#include "topology/topology.h"
#include "topology/whereabouts.h"

namespace trestle {

// What a transport is made for: a kind, and the rails that a dimension may have of its own. Equal on all ranks.
struct Carrier {
  TransportKind kind = TransportKind::kAuto;
  std::string rails = {};  // NamedRails::name
  auto operator<=>(const Carrier&) const = default;
  std::string text() const;  // "shm", "tcp@eth1", "tcp@TRESTLE_RAILS:2"
};

// What one rank needs to reach all others.
struct RankRoutes {
  std::vector<Carrier> carriers;     // each once, in order
  std::vector<uint16_t> carrier_of;  // by rank: its place in `carriers`
};

class Routing {
 public:
  // From agreed facts, so that all ranks get the same answers. The topology as it was when the communicator was made:
  // link speeds that are measured afterwards do not change the segments. segment_bytes: of every message; 0: by kind,
  // place and bandwidth. rails: of every dimension; empty: those that the topology names.
  Routing(Topology topology, Whereabouts at, uint64_t segment_bytes, const std::vector<NamedRails>& rails = {});

  // As the topology says, or chosen by where the two ranks are. A rank reaches itself within its process.
  TransportKind transport(int32_t a, int32_t b) const;
  Carrier carrier(int32_t a, int32_t b) const;
  RankRoutes routes(int32_t rank) const;
  // Preferred bytes of messages of long blocks of a call whose data lies in that place on all ranks.
  uint64_t segment_bytes(int32_t a, int32_t b, MemoryPlace place = MemoryPlace::kHost) const;
  // The least segment_bytes() between members of a group: between neighbours in it, and the first one and the others.
  uint64_t group_segment_bytes(const std::vector<int32_t>& group, MemoryPlace place = MemoryPlace::kHost) const;
  // Messages of this carrier are divided over several rails. Each rank says so of its own transports.
  void divide(const Carrier& carrier) { divided_.push_back(carrier); }
  // Whether messages between the members of the group are divided, as far as this rank knows.
  bool divides(const std::vector<int32_t>& group) const;
  // Whether every two ranks can map the same memory. False for one rank alone.
  bool all_share_memory() const;

  // For tests: adds 1 to *count for every pair that is looked at from now on, on one thread; nullptr: no more.
  void count_pairs(uint64_t* count) { pairs_ = count; }

 private:
  bool has_memory_apart(int32_t span) const;

  Topology topology_;
  Whereabouts at_;
  uint64_t segment_bytes_;
  std::vector<std::string> rails_;  // by dimension: NamedRails::name
  std::vector<Carrier> divided_;
  uint64_t* pairs_ = nullptr;
};

}  // namespace trestle
