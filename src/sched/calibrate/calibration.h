// Calibration: what the links of a communicator's ranks really do, and the cost model's numbers that say the same.
//
// Measured are exchanges: every rank sends to the next of its group and receives from the previous one, in all groups
// of a dimension at once. measure_calibration() decides what is exchanged, how often, and what the numbers of all ranks
// mean together; a CalibrationProbe does it, through the library itself. fit_calibration() is pure. Whoever calls them
// owns the probe and is the only thread of it. Everything is integers that all ranks share, so every rank has the same
// result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// Medians, over the rounds, of the time of the slowest rank.
struct DimensionCalibration {
  int64_t step_ns = 0;   // one exchange of kShortCalibrationBytes
  uint64_t bytes = 0;    // of a long exchange, per rank and way; chosen so that all dimensions take about as long
  int64_t alone_ns = 0;  // one long exchange, all other dimensions idle
};

struct Calibration {
  std::vector<DimensionCalibration> dimensions;
  int64_t together_ns = 0;  // the long exchanges of all dimensions at the same time
};

// One long or short exchange.
struct ExchangeRequest {
  std::vector<uint64_t> bytes;  // per dimension, per rank and way; 0: none
  int times = 1;                // one after the other
};

// What measuring needs from a communicator of the topology; all ranks call the same in the same order.
class CalibrationProbe {
 public:
  virtual ~CalibrationProbe() = default;
  // Waits for all ranks, then does it. This rank's nanoseconds for all `times`.
  virtual Result<int64_t> exchange(const ExchangeRequest& request) = 0;
  // Each value becomes the largest of all ranks.
  virtual Status largest(std::vector<int64_t>& values) = 0;
};

inline constexpr uint64_t kShortCalibrationBytes = 64;
inline constexpr uint64_t kMostCalibrationBytes = uint64_t{8} << 20;  // of a long exchange

// Interleaved rounds of short, long and common exchanges; how many and how large follows from agreed times alone:
// about three seconds, on slow links three rounds of 64 KiB. Errors: the probe's.
Result<Calibration> measure_calibration(CalibrationProbe& probe, const Topology& topology);

// The topology with bandwidths and latencies that predict the exchanges in the library's model (sched/model/cost.h):
//   bandwidth = (bytes - short bytes) / (alone - step)
//   latency   = step - short bytes / bandwidth - overhead per message
// and, if all together take longer than the longest alone, one resource that all dimensions share. A byte costs the
// same fraction of its time on the link in every dimension, so that the resource is busy for exactly the common time
// and never delays a dimension that is alone:
//   cost per byte = time per byte on the link * min(1, together / sum of the times alone)
// Errors (kInvalidArgument): times or sizes that are not positive, another number of dimensions.
Result<Topology> fit_calibration(const Calibration& calibration, const Topology& topology);

// What the topology's numbers predict for the common exchange, nanoseconds. For tables and tests.
uint64_t predicted_together_ns(const Topology& topology, const Calibration& calibration);

}  // namespace trestle
