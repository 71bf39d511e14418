// Topology: the dimensions of a communicator's ranks, and coordinates in them. A value, equal on all ranks.
//
// Dimension 0 in code is "dimension 1" for people: innermost. rank = c_0 + P_0*(c_1 + P_1*(c_2 + ...)).
// A rank's group in dimension d = the ranks that differ from it in coordinate d only, ordered by that coordinate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/transport_kinds.h"

namespace trestle {

enum class DimensionKind : uint8_t { kRing, kFullyConnected, kSwitch };
const char* to_string(DimensionKind kind);

inline constexpr uint64_t kNominalLatency = UINT64_MAX;  // nothing said: nominal of the transport

struct Dimension {
  int32_t size = 1;
  DimensionKind kind = DimensionKind::kSwitch;
  uint64_t bandwidth_mbps = 0;            // per rank, one way, 10^6 bit/s; 0: nominal of the transport
  uint64_t latency_ns = kNominalLatency;  // of one step
  TransportKind transport = TransportKind::kAuto;
  std::string interface;            // "" : any
  std::string shared_resource;      // "" : none; dimensions that name the same resource share it
  uint64_t shared_ps_per_byte = 0;  // cost per byte on that resource, picoseconds
  // Its switches add and multicast: models of a design only (sched/model/cost.h has the formula), the engine does not
  // use it.
  bool in_network_reduction = false;
  bool operator==(const Dimension&) const = default;
};

inline constexpr int kMaxDimensions = 8;
// Stands for "all ranks in one group" where a dimension index is expected (one flat phase).
inline constexpr uint8_t kFlat = 0xff;

struct Topology {
  std::vector<Dimension> dimensions;  // none of size 1, unless there is one rank only
  std::string reason;                 // why it is so, for the table at INFO (not compared, not hashed)

  int32_t ranks() const;
  int32_t coordinate(int32_t rank, uint8_t dimension) const;
  // Group of `rank` in `dimension` (kFlat: all ranks), ordered; my index in it = coordinate (kFlat: rank).
  std::vector<int32_t> group(int32_t rank, uint8_t dimension) const;
  int32_t group_size(uint8_t dimension) const;
  // The outermost dimension in which two ranks differ; kFlat: none.
  uint8_t outermost_difference(int32_t a, int32_t b) const;
  // The transport between two ranks: of the outermost dimension in which they differ.
  TransportKind transport_between(int32_t a, int32_t b) const;
};

uint64_t hash(const Topology& topology);
// A small table / the JSON form of a topology file (round trip).
std::string to_text(const Topology& topology);
std::string to_json(const Topology& topology);

// "4x2" -> sizes. Errors say what is wrong and where.
Result<std::vector<int32_t>> parse_dims(const std::string& text);
// `source` names the file in errors; errors name line and field.
Result<Topology> parse_topology(const std::string& json, const std::string& source);
Result<Topology> read_topology_file(const std::string& path);

// What each rank tells the others about where it is.
struct RankPlace {
  std::string hostname;
  std::string host_id;       // equal = same host: TRESTLE_HOSTID, or hostname + boot id + network namespace
  uint64_t process_id = 0;   // equal host_id and process token = same process
  std::string machine = {};  // equal = the same processors: the boot id, which containers share
  std::vector<uint64_t> processors = {};  // usable_cpu_mask(); empty: not known
};

struct TopologyRequest {
  std::string dims;       // "" : none given
  std::string topo_file;  // "" : none given; its dimensions win over dims only if dims is empty (both: an error)
  // "auto" or a list per dimension (those of size 1 count), innermost first; the last entry holds for the dimensions
  // beyond, so one entry serves all. "auto" keeps what a topology file says.
  std::string transport;
};

// The dimensions of a communicator of places.size() ranks: from the request, else ranks per host x hosts from the
// places (equal counts of consecutive ranks on every host, else one flat dimension). Dimensions of size 1 are dropped
// (said in reason). Errors: product is not the number of ranks, more than kMaxDimensions, more transports than
// dimensions, a transport that cannot join two ranks (shm across hosts).
Result<Topology> choose_topology(const TopologyRequest& request, const std::vector<RankPlace>& places);

// Where ranks outnumber the processors of their machine: dimensions of which neither a file nor a measurement has said
// a bandwidth or a resource share these, and a step waits for its turn. It is told in
// `reason`; base/transport_kinds.cpp and shared_processors.cpp have the figures. Nothing changes where every rank has a
// processor, or where processors are not known.
void share_processors(const std::vector<RankPlace>& places, Topology& topology);
// Of the machine where ranks outnumber processors most: how many have to share one, rounded up. 1 where every rank has
// a processor, or where processors are not known.
int32_t ranks_per_processor(const std::vector<RankPlace>& places);

}  // namespace trestle
