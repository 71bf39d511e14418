#include <algorithm>

#include "sched/calibrate/calibration.h"

namespace trestle {
namespace {

// In a row. One short exchange alone is too short for the clock, and the ranks start at different times.
constexpr int kShortTimes = 8;
constexpr int kTries = 3;  // the fastest one gives the time of a long exchange
constexpr uint64_t kUnitBytes = 64 * 1024;
constexpr int64_t kLeast_ns = 4'000'000;
// Of a long exchange. Longer than the bursts that shapers and switches let pass.
constexpr int64_t kLong_ns = 50'000'000;
constexpr int64_t kAll_ns = 3'000'000'000;
constexpr int64_t kMostRounds = 9;
constexpr int64_t kFewestRounds = 3;

int64_t median(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Measurement {
 public:
  Measurement(CalibrationProbe& probe, const Topology& topology) : probe_(probe), count_(topology.dimensions.size()) {}

  Result<Calibration> run() {
    result_.dimensions.resize(count_);
    const int64_t rounds = TRY(choose_sizes());
    // One row per round: short and alone of each dimension, then all together.
    std::vector<int64_t> times;
    for (int64_t round = 0; round < rounds; ++round) {
      for (size_t d = 0; d < count_; ++d) {
        times.push_back(TRY(probe_.exchange(only(d, kShortCalibrationBytes, kShortTimes))) / kShortTimes);
        times.push_back(TRY(probe_.exchange(only(d, result_.dimensions[d].bytes, 1))));
      }
      times.push_back(TRY(probe_.exchange(all())));
    }
    TRY(probe_.largest(times));
    const auto median_of = [&](size_t column) {
      std::vector<int64_t> values;
      for (size_t at = column; at < times.size(); at += 2 * count_ + 1) values.push_back(times[at]);
      return std::max<int64_t>(1, median(std::move(values)));
    };
    for (size_t d = 0; d < count_; ++d) {
      result_.dimensions[d].step_ns = median_of(2 * d);
      result_.dimensions[d].alone_ns = median_of(2 * d + 1);
    }
    result_.together_ns = median_of(2 * count_);
    return std::move(result_);
  }

 private:
  ExchangeRequest only(size_t dimension, uint64_t bytes, int times) const {
    ExchangeRequest request{std::vector<uint64_t>(count_), times};
    request.bytes[dimension] = bytes;
    return request;
  }
  ExchangeRequest all() const {
    ExchangeRequest request;
    for (const DimensionCalibration& each : result_.dimensions) request.bytes.push_back(each.bytes);
    return request;
  }

  // Sets the bytes of the long exchanges and returns the number of rounds. A shaper lets the first bytes pass fast, so
  // the second guess comes from exchanges as long as the first guess. The exchanges before that also create
  // connections, buffers and plans.
  Result<int64_t> choose_sizes() {
    for (size_t d = 0; d < count_; ++d) {
      TRY(probe_.exchange(only(d, kShortCalibrationBytes, 1)));
      result_.dimensions[d].bytes = kUnitBytes;
    }
    set_bytes(TRY(unit_times(kTries)));
    const std::vector<int64_t> unit_ns = TRY(unit_times(1));
    set_bytes(unit_ns);
    TRY(probe_.exchange(all()));
    int64_t round_ns = 1;
    for (size_t d = 0; d < count_; ++d) {
      round_ns += 2 * unit_ns[d] * static_cast<int64_t>(result_.dimensions[d].bytes / kUnitBytes);
    }
    return std::clamp(kAll_ns / round_ns, kFewestRounds, kMostRounds);
  }

  // The time of kUnitBytes in an exchange of the present length, per dimension: the fastest of `tries`, on the slowest
  // rank.
  Result<std::vector<int64_t>> unit_times(int tries) {
    std::vector<int64_t> times;
    for (int i = 0; i < tries; ++i) {
      for (size_t d = 0; d < count_; ++d) {
        const uint64_t bytes = result_.dimensions[d].bytes;
        times.push_back(TRY(probe_.exchange(only(d, bytes, 1))) / static_cast<int64_t>(bytes / kUnitBytes));
      }
    }
    TRY(probe_.largest(times));
    for (size_t at = count_; at < times.size(); ++at) times[at % count_] = std::min(times[at % count_], times[at]);
    times.resize(count_);
    for (int64_t& time_ns : times) time_ns = std::clamp<int64_t>(time_ns, 1, int64_t{1} << 40);
    return times;
  }

  // Makes all dimensions take about equally long: kLong_ns, or less if the fastest one would exceed
  // kMostCalibrationBytes.
  void set_bytes(const std::vector<int64_t>& unit_ns) {
    constexpr int64_t kMostUnits = kMostCalibrationBytes / kUnitBytes;
    const int64_t fastest_ns = *std::min_element(unit_ns.begin(), unit_ns.end());
    const int64_t wanted_ns = std::clamp(kMostUnits * fastest_ns, kLeast_ns, kLong_ns);
    for (size_t d = 0; d < count_; ++d) {
      const int64_t units = std::clamp<int64_t>(wanted_ns / unit_ns[d], 1, kMostUnits);
      result_.dimensions[d].bytes = static_cast<uint64_t>(units) * kUnitBytes;
    }
  }

  CalibrationProbe& probe_;
  const size_t count_;
  Calibration result_;
};

}  // namespace

Result<Calibration> measure_calibration(CalibrationProbe& probe, const Topology& topology) {
  return Measurement(probe, topology).run();
}

}  // namespace trestle
