// What a user asks of simulated rails, as text: "eth1:latency=50us,jitter=5us,burst=16K,down@0.5". Pure
// functions, any thread. Errors (kInvalidArgument) are one sentence that quotes the wrong part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sim/network.h"

namespace trestle {

struct SimRailRequest {
  std::string interface;
  std::optional<uint64_t> latency_ns;
  std::optional<uint64_t> most_jitter_ns;
  std::optional<uint64_t> burst_bytes;
  std::vector<SimRailFault> changes;  // their dimension and rail are open
};

// NAME:ITEM,ITEM,... with the items latency=TIME, jitter=TIME (0 to this, at random), burst=BYTES, down@TIME, up@TIME,
// drop@TIME, pass@TIME and rate@TIME=FRACTION (of the rail's own rate). Times as in parse_duration_ns(), from the
// beginning, bytes as in parse_bytes().
Result<SimRailRequest> parse_sim_rail(const std::string& text);

// Applies each request to every rail of that name. An unknown name is an error that lists those that exist.
Status use_sim_rails(const std::vector<SimRailRequest>& requests, std::vector<SimLink>& links, SimFaults& faults);

}  // namespace trestle
