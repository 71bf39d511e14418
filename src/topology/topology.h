// Topology: the dimensions of a communicator's ranks, and coordinates in them. A value, equal on all ranks.
//
// Dimension 0 in code is "dimension 1" for users. It is the innermost. rank = c_0 + P_0*(c_1 + P_1*(c_2 + ...)). A
// rank's group in dimension d has the ranks that differ from it at most in coordinate d, ordered by that coordinate.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/transport_kinds.h"

namespace trestle {

inline constexpr uint64_t kPsPerNs = 1000;
inline constexpr uint64_t kPsPerByteAtOneMbps = 8'000'000;  // picoseconds, over a link of 10^6 bit/s

enum class DimensionKind : uint8_t { kRing, kFullyConnected, kSwitch };
const char* to_string(DimensionKind kind);

inline constexpr uint64_t kNominalLatency = UINT64_MAX;  // not given: the transport's nominal latency

// One of several network interfaces that carry a dimension together.
struct DimensionRail {
  std::string interface;        // a whole name, as in `ip link`; the same on every host
  uint64_t bandwidth_mbps = 0;  // one way, 10^6 bit/s; 0: not given
  bool operator==(const DimensionRail&) const = default;
};

// What messages cost whose data does not lie in host memory (topology/device_topology.h).
struct DataCosts {
  uint64_t message_ns = 0;     // processor time, at both ends together
  uint64_t reduce_mbps = 0;    // speed of a reduction, 10^6 bit/s
  uint64_t segment_bytes = 0;  // most bytes of a message of a long block
  bool operator==(const DataCosts&) const = default;
};

struct Dimension {
  int32_t size = 1;
  DimensionKind kind = DimensionKind::kSwitch;
  // Per rank, one way, 10^6 bit/s: of all rails together. 0: the transport's nominal bandwidth.
  uint64_t bandwidth_mbps = 0;
  uint64_t latency_ns = kNominalLatency;  // of one step
  TransportKind transport = TransportKind::kAuto;
  std::string interface;            // "" : any, or `rails`
  std::string shared_resource;      // "" : none; dimensions that name the same resource share it
  uint64_t shared_ps_per_byte = 0;  // cost per byte on that resource, in picoseconds
  // Its switches add and multicast. Only models of a design use this (formula in sched/model/cost.h); the engine does
  // not.
  bool in_network_reduction = false;
  // If all have a bandwidth, their sum is the dimension's. Empty: `interface`.
  std::vector<DimensionRail> rails = {};
  // It joins hosts. Unless it has a bandwidth, its speed is not known, and in the model the processors that the ranks
  // share limit it instead (share_processors).
  bool unknown_network = false;
  // Instead of the transport's nominal costs. No file has them.
  std::optional<DataCosts> data = {};
  bool operator==(const Dimension&) const = default;
};

inline constexpr int kMaxDimensions = 8;
inline constexpr size_t kMaxRailsOfDimension = 16;  // as many as a rank can publish (transport/rails/published.h)
// Stands for "all ranks in one group" where a dimension index is expected (one flat phase).
inline constexpr uint8_t kFlat = 0xff;

struct Topology {
  std::vector<Dimension> dimensions;  // none of size 1, unless there is one rank only
  std::string reason;                 // why these were chosen, for the table at INFO (not compared, not hashed)

  int32_t ranks() const;
  int32_t coordinate(int32_t rank, uint8_t dimension) const;
  // The group of `rank` in `dimension` (kFlat: all ranks), in order. The rank's index in it is its coordinate (kFlat:
  // its number).
  std::vector<int32_t> group(int32_t rank, uint8_t dimension) const;
  int32_t group_size(uint8_t dimension) const;
  // The outermost dimension in which two ranks differ; kFlat: none.
  uint8_t outermost_difference(int32_t a, int32_t b) const;
  // The transport between two ranks: that of the outermost dimension in which they differ.
  TransportKind transport_between(int32_t a, int32_t b) const;
};

// What a rank can send in the latency of a step (the bandwidth-delay product): the most of any dimension for kFlat. By
// the transport's nominal figures where there are no others.
uint64_t bytes_in_a_step(const Topology& topology, uint8_t dimension);

// The interfaces that the topology names for a dimension, in the grammar of TRESTLE_RAILS: "eth1",
// "eth1@25g,eth2@800m".
// "": none.
std::string interfaces_text(const Dimension& dimension);

uint64_t hash(const Topology& topology);
// A small table, and the JSON form of a topology file (parse_topology() reads it back).
std::string to_text(const Topology& topology);
std::string to_json(const Topology& topology);

// Parses "4x2" to sizes. Errors quote the wrong part.
Result<std::vector<int32_t>> parse_dims(const std::string& text);
// `source` names the file in errors; errors name line and field.
Result<Topology> parse_topology(const std::string& json, const std::string& source);
Result<Topology> read_topology_file(const std::string& path);

// The place of a rank, as the rank tells it to the others.
struct RankPlace {
  std::string hostname;
  std::string host_id;                    // equal: same host. TRESTLE_HOSTID, or hostname + boot id + network namespace
  uint64_t process_id = 0;                // equal host_id and process_id: same process
  std::string machine = {};               // equal: same processors. The boot id, which containers share
  std::vector<uint64_t> processors = {};  // usable_cpu_mask(); empty: not known
  std::string no_shared_memory = {};      // "": it can share memory; else why not: "cannot make ..."
};

struct TopologyRequest {
  std::string dims;       // "" : not given
  std::string topo_file;  // "" : not given. A file and dims together are an error
  // "auto", or a list with one entry per dimension (also for those of size 1), innermost first. The last entry also
  // holds for the dimensions beyond it, so one entry is enough for all. "auto" keeps the topology file's transports.
  std::string transport;
};

// Chooses the dimensions of a communicator of places.size() ranks. They come from the request. If it gives none: ranks
// per host times hosts if every host has equally many consecutive ranks, else one flat dimension. Dimensions of size 1
// are dropped, and `reason` says so. Errors: the product is not the number of ranks, more than kMaxDimensions, more
// transports than dimensions, a transport that cannot join two ranks (shm across hosts). Where the request leaves the
// transport open, no process of a host shares memory with others if one of them cannot; kSystemError if the request
// names a transport that would.
Result<Topology> choose_topology(const TopologyRequest& request, const std::vector<RankPlace>& places);

// Adjusts a topology if ranks outnumber the processors of their machine. Dimensions for which neither a file nor a
// measurement gives a bandwidth or a resource then share the processors, and their steps wait for a processor. `reason`
// says so. base/transport_kinds.cpp and shared_processors.cpp have the figures. Nothing changes if every rank has a
// processor or if the processors are not known.
void share_processors(const std::vector<RankPlace>& places, Topology& topology);
// What a rank knows of its rails, by dimension: their bandwidths as far as they are known. Empty: nothing.
using RankRails = std::vector<std::vector<DimensionRail>>;
// Fills in bandwidths that neither a file nor a measurement gives. If every rank knows all its rails of a dimension
// that joins different hosts, the bandwidth is the sum of a rank's rails, for the rank with the lowest sum. Ranks of a
// host that use the same interface in a dimension have equal parts of it. `reason` says so, or which rate is missing
// and how to tell it. rails[r] is rank r's.
void use_known_rates(const std::vector<RankPlace>& places, const std::vector<RankRails>& rails, Topology& topology);
// The number of ranks per processor, rounded up, on the machine where it is largest. 1 if every rank has a processor or
// if the processors are not known.
int32_t ranks_per_processor(const std::vector<RankPlace>& places);

}  // namespace trestle
