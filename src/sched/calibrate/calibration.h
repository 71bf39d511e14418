// Calibration: measures the links of a communicator's ranks and finds the cost model's numbers that predict the
// measured times.
//
// It measures exchanges: every rank sends to the next rank of its group and receives from the previous one, in all
// groups of a dimension at once. measure_calibration() decides which exchanges are run and how often, and combines the
// times of all ranks. A CalibrationProbe runs them through the library itself. fit_calibration() is pure. The caller
// owns the probe, and only the caller's thread uses it. All decisions are made from integers that all ranks share, so
// every rank gets the same result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "topology/topology.h"

namespace trestle {

// Times are medians over the rounds, of the slowest rank.
struct DimensionCalibration {
  int64_t step_ns = 0;  // one exchange of kShortCalibrationBytes
  // Of a long exchange, per rank and direction. Chosen so that all dimensions take about equally long.
  uint64_t bytes = 0;
  int64_t alone_ns = 0;  // one long exchange while all other dimensions idle
};

struct Calibration {
  std::vector<DimensionCalibration> dimensions;
  int64_t together_ns = 0;  // the long exchanges of all dimensions at the same time
};

// A long or short exchange.
struct ExchangeRequest {
  std::vector<uint64_t> bytes;  // per dimension, per rank and direction; 0: no exchange there
  int times = 1;                // repetitions, one after the other
};

// The functions of a communicator that measuring needs. All ranks make the same calls in the same order.
class CalibrationProbe {
 public:
  virtual ~CalibrationProbe() = default;
  // Waits for all ranks, then runs the exchange. Returns this rank's nanoseconds for all repetitions.
  virtual Result<int64_t> exchange(const ExchangeRequest& request) = 0;
  // Replaces each value by the largest of all ranks.
  virtual Status largest(std::vector<int64_t>& values) = 0;
};

inline constexpr uint64_t kShortCalibrationBytes = 64;
inline constexpr uint64_t kMostCalibrationBytes = uint64_t{8} << 20;  // of a long exchange

// Runs interleaved rounds of short, long and common exchanges. Their number and sizes follow only from times that all
// ranks share. Takes about three seconds; slow links get three rounds of 64 KiB. Errors: the probe's.
Result<Calibration> measure_calibration(CalibrationProbe& probe, const Topology& topology);

// Returns the topology with bandwidths and latencies for which the library's model (sched/model/cost.h) predicts the
// measured exchanges:
//   bandwidth = (bytes - short bytes) / (alone - step)
//   latency   = step - short bytes / bandwidth - overhead per message
// If the common exchange takes longer than the longest single one, all dimensions also share one resource. In every
// dimension a byte costs the same fraction of its time on the link. So the resource is busy for exactly the common time
// and never delays a dimension that is used alone:
//   cost per byte = time per byte on the link * min(1, together / sum of the times alone)
// Errors (kInvalidArgument): times or sizes that are not positive, another number of dimensions.
Result<Topology> fit_calibration(const Calibration& calibration, const Topology& topology);

// The model's time for the common exchange on this topology, in nanoseconds. For tables and tests.
uint64_t predicted_together_ns(const Topology& topology, const Calibration& calibration);

}  // namespace trestle
