#include <algorithm>

#include "base/wide.h"
#include "sched/calibrate/calibration.h"
#include "sched/model/cost.h"

namespace trestle {
namespace {

// The range that a topology file may have (topology/json_dimensions.cpp). It exceeds all existing hardware.
constexpr uint64_t kMostMbps = 1'000'000'000;
constexpr uint64_t kMostLatency_ns = 1'000'000'000;
constexpr uint64_t kMostPs = 1'000'000'000;
constexpr const char* kResource = "calibrated";

uint64_t divide(Wide above, Wide below, uint64_t least, uint64_t most) {
  const Wide rounded = (above + below / 2) / below;
  return static_cast<uint64_t>(std::clamp<Wide>(rounded, least, most));
}

// The part of a long exchange that moves data: without the time of a short one. At least half, for the case that both
// times hardly differ.
uint64_t data_ns(int64_t whole_ns, int64_t step_ns) {
  return static_cast<uint64_t>(std::max({whole_ns - step_ns, whole_ns / 2, int64_t{1}}));
}

Status check(const Calibration& calibration, const Topology& topology) {
  const size_t count = topology.dimensions.size();
  if (calibration.dimensions.size() != count || count == 0) {
    return Error{Code::kInvalidArgument, "a calibration of " + std::to_string(calibration.dimensions.size()) +
                                             " dimensions for a topology of " + std::to_string(count)};
  }
  constexpr int64_t kMost_ns = int64_t{1} << 50;  // thirteen days
  const auto time_in_range = [&](int64_t time_ns) { return time_ns > 0 && time_ns <= kMost_ns; };
  for (size_t d = 0; d < count; ++d) {
    const DimensionCalibration& each = calibration.dimensions[d];
    if (time_in_range(each.step_ns) && time_in_range(each.alone_ns) && each.bytes > kShortCalibrationBytes) continue;
    return Error{Code::kInvalidArgument,
                 "calibration of dimension " + std::to_string(d + 1) + ": a step of " + std::to_string(each.step_ns) +
                     " ns and " + std::to_string(each.bytes) + " bytes in " + std::to_string(each.alone_ns) +
                     " ns: times must be above 0, and sizes above " + std::to_string(kShortCalibrationBytes)};
  }
  if (time_in_range(calibration.together_ns)) return {};
  return Error{Code::kInvalidArgument, "calibration: all dimensions together in " +
                                           std::to_string(calibration.together_ns) + " ns: must be above 0"};
}

int64_t longest_step_ns(const Calibration& calibration) {
  int64_t longest = 0;
  for (const DimensionCalibration& each : calibration.dimensions) longest = std::max(longest, each.step_ns);
  return longest;
}

}  // namespace

Result<Topology> fit_calibration(const Calibration& calibration, const Topology& topology) {
  TRY(check(calibration, topology));
  Topology fitted = topology;
  std::vector<uint64_t> alone_ns;
  uint64_t sum_ns = 0;
  for (size_t d = 0; d < fitted.dimensions.size(); ++d) {
    const DimensionCalibration& measured = calibration.dimensions[d];
    Dimension& dimension = fitted.dimensions[d];
    const auto step_ns = static_cast<uint64_t>(measured.step_ns);
    const uint64_t overhead_ns = rail_cost(topology, static_cast<uint8_t>(d)).message_ns;
    alone_ns.push_back(data_ns(measured.alone_ns, measured.step_ns));
    sum_ns += alone_ns.back();
    const uint64_t more_bytes = measured.bytes - kShortCalibrationBytes;
    dimension.bandwidth_mbps = divide(Wide{more_bytes} * 8000, alone_ns.back(), 1, kMostMbps);
    // Only the rate of all rails together was measured, not the rate of each.
    for (DimensionRail& rail : dimension.rails) rail.bandwidth_mbps = 0;
    const uint64_t not_waiting_ns = overhead_ns + kShortCalibrationBytes * 8000 / dimension.bandwidth_mbps;
    dimension.latency_ns = std::min(step_ns - std::min(step_ns, not_waiting_ns), kMostLatency_ns);
    dimension.shared_resource.clear();
    dimension.shared_ps_per_byte = 0;
  }
  const uint64_t longest_ns = *std::max_element(alone_ns.begin(), alone_ns.end());
  const uint64_t together_ns = data_ns(calibration.together_ns, longest_step_ns(calibration));
  // A smaller difference is noise. A dimension alone shares its resource with none.
  const bool shares = together_ns > longest_ns + longest_ns / 20;
  if (fitted.dimensions.size() < 2 || !shares) return fitted;
  const uint64_t common_ns = std::min(together_ns, sum_ns);
  for (size_t d = 0; d < fitted.dimensions.size(); ++d) {
    Dimension& dimension = fitted.dimensions[d];
    dimension.shared_resource = kResource;
    dimension.shared_ps_per_byte =
        divide(Wide{alone_ns[d]} * 1000 * common_ns, Wide{calibration.dimensions[d].bytes} * sum_ns, 1, kMostPs);
  }
  return fitted;
}

uint64_t predicted_together_ns(const Topology& topology, const Calibration& calibration) {
  Wide longest_ps = 0;
  Wide shared_ps = 0;
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const uint64_t bytes = calibration.dimensions[d].bytes;
    const RailCost rail = rail_cost(topology, static_cast<uint8_t>(d));
    longest_ps = std::max(longest_ps, Wide{bytes} * 8'000'000 / rail.bandwidth_mbps);
    shared_ps += Wide{bytes} * topology.dimensions[d].shared_ps_per_byte;
  }
  return static_cast<uint64_t>(std::max(longest_ps, shared_ps) / 1000) +
         static_cast<uint64_t>(longest_step_ns(calibration));
}

}  // namespace trestle
