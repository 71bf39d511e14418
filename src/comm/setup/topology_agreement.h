// The exchange in which the ranks of a communicator agree on its topology.
//
// Files may differ between hosts, but their meaning must not. The exchange also carries the facts that only some ranks
// know: the link speeds that rank 0 has kept, and the rates that each rank knows of its rails. So all ranks use the
// same numbers.
//
// Used while a communicator is created, on the creating thread. Decoding trusts nothing.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "comm/setup/settings.h"
#include "rendezvous/bootstrap.h"
#include "topology/topology.h"

namespace trestle {

struct Wiring;

// The most that a rank may tell of a link, 10^6 bit/s; as much as a topology file may say.
inline constexpr uint64_t kMostMbps = 1'000'000'000;

// What a rank brings along.
struct TopologyOffer {
  std::string topology;     // to_json(): equal on all ranks
  std::string calibration;  // rank 0: the topology file that kept_calibration() has found; "": none
  RankRails rails;          // of dimensions without a stated bandwidth
  bool operator==(const TopologyOffer&) const = default;
};
std::string encode(const TopologyOffer& offer);
// kRemoteError; callers add the rank's name.
Result<TopologyOffer> decode_topology_offer(const std::string& bytes);

// Completes wiring.topology, in which choose_topology() has left out what is not known: by a calibration, or else by
// the processors that ranks share and the rates of their rails. Sets wiring.calibration, wiring.used and wiring.measure;
// if link speeds are to be measured, nothing is filled in. wiring.infos and wiring.names must be there. `rails`: what this rank
// knows of its rails.
Status agree_on_topology(Bootstrap& bootstrap, const CommunicatorSettings& settings, RankRails rails, Wiring& wiring,
                         int64_t deadline_ns);

}  // namespace trestle
