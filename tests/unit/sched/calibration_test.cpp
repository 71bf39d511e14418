// Calibration: a simulated world with known speeds gives these speeds, and impossible values are refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/rng.h"
#include "sched/calibrate/calibration.h"
#include "sched/model/cost.h"

namespace trestle {
namespace calibration_test {
namespace {

Topology grid(const std::vector<int32_t>& sizes) {
  Topology topology;
  for (const int32_t size : sizes) {
    topology.dimensions.emplace_back().size = size;
    topology.dimensions.back().transport = TransportKind::kTcp;
  }
  return topology;
}

// Links that behave like the model: exact times for each exchange, optionally with noise.
class World : public CalibrationProbe {
 public:
  explicit World(Topology truth, uint64_t noise_percent = 0)
      : truth_(std::move(truth)), noise_percent_(noise_percent) {}

  Result<int64_t> exchange(const ExchangeRequest& request) override {
    double link_ns = 0;
    double shared_ns = 0;
    double step_ns = 0;
    for (size_t d = 0; d < request.bytes.size(); ++d) {
      if (request.bytes[d] == 0) continue;
      const auto bytes = static_cast<double>(request.bytes[d]);
      const RailCost rail = rail_cost(truth_, static_cast<uint8_t>(d));
      link_ns = std::max(link_ns, bytes * 8000 / static_cast<double>(rail.bandwidth_mbps));
      shared_ns += bytes * static_cast<double>(truth_.dimensions[d].shared_ps_per_byte) / 1000;
      step_ns = std::max(step_ns, static_cast<double>(rail.latency_ns + rail.message_ns));
    }
    const double once_ns = std::max(link_ns, shared_ns) + step_ns;
    ++exchanges;
    total_ns += once_ns * request.times;
    // Noise only adds time, sometimes much.
    const double late = noise_percent_ == 0 ? 0 : static_cast<double>(rng_.below(noise_percent_)) / 100;
    const double disturbed = noise_percent_ != 0 && rng_.below(5) == 0 ? 30 : 1;
    return static_cast<int64_t>(std::llround(once_ns * request.times * (1 + late) * disturbed));
  }
  Status largest(std::vector<int64_t>&) override { return {}; }

  int exchanges = 0;
  double total_ns = 0;

 private:
  const Topology truth_;
  const uint64_t noise_percent_;
  Rng rng_{7};
};

Topology truth_of(const std::vector<uint64_t>& mbps, const std::vector<uint64_t>& latency_ns,
                  const std::vector<uint64_t>& shared_ps) {
  Topology truth = grid(std::vector<int32_t>(mbps.size(), 2));
  for (size_t d = 0; d < mbps.size(); ++d) {
    truth.dimensions[d].bandwidth_mbps = mbps[d];
    truth.dimensions[d].latency_ns = latency_ns[d];
    if (shared_ps.empty()) continue;
    truth.dimensions[d].shared_resource = "cpu";
    truth.dimensions[d].shared_ps_per_byte = shared_ps[d];
  }
  return truth;
}

Topology calibrated(const Topology& truth, uint64_t noise_percent = 0) {
  World world(truth, noise_percent);
  const Topology asked = grid(std::vector<int32_t>(truth.dimensions.size(), 2));
  const auto measured = measure_calibration(world, asked);
  EXPECT_TRUE(measured.ok());
  const auto fitted = fit_calibration(measured.value(), asked);
  EXPECT_TRUE(fitted.ok());
  return fitted.value();
}

void expect_near(uint64_t value, uint64_t expected, double part, const char* what) {
  EXPECT_NEAR(static_cast<double>(value), static_cast<double>(expected), static_cast<double>(expected) * part + 1)
      << what;
}

TEST(Calibration, IndependentLinksComeBack) {
  const Topology truth = truth_of({100'000, 25'000, 200}, {1'000, 20'000, 300'000}, {});
  const Topology fitted = calibrated(truth);
  for (size_t d = 0; d < 3; ++d) {
    expect_near(fitted.dimensions[d].bandwidth_mbps, truth.dimensions[d].bandwidth_mbps, 0.001, "bandwidth");
    expect_near(fitted.dimensions[d].latency_ns, truth.dimensions[d].latency_ns, 0.001, "latency");
    EXPECT_EQ(fitted.dimensions[d].shared_resource, "");
    EXPECT_EQ(fitted.dimensions[d].shared_ps_per_byte, 0u);
  }
}

// 8 Gb/s and 4 Gb/s: 1000 and 2000 ps per byte on the links. A resource takes 0.8 of each, so the common exchange takes
// 1.6 times as long as one alone.
TEST(Calibration, SharedResourceComesBack) {
  const Topology truth = truth_of({8'000, 4'000}, {10'000, 10'000}, {800, 1'600});
  const Topology fitted = calibrated(truth);
  for (size_t d = 0; d < 2; ++d) {
    EXPECT_NE(fitted.dimensions[d].shared_resource, "");
    EXPECT_EQ(fitted.dimensions[d].shared_resource, fitted.dimensions[0].shared_resource);
    expect_near(fitted.dimensions[d].shared_ps_per_byte, truth.dimensions[d].shared_ps_per_byte, 0.01, "shared");
    expect_near(fitted.dimensions[d].bandwidth_mbps, truth.dimensions[d].bandwidth_mbps, 0.001, "bandwidth");
  }
}

TEST(Calibration, DisturbedRoundsDoNotCount) {
  const Topology truth = truth_of({8'000, 4'000}, {10'000, 10'000}, {});
  const Topology fitted = calibrated(truth, 3);
  for (size_t d = 0; d < 2; ++d) {
    expect_near(fitted.dimensions[d].bandwidth_mbps, truth.dimensions[d].bandwidth_mbps, 0.1, "bandwidth");
  }
}

// For any measured values: the predicted times of a dimension alone and of all together equal the measured ones.
TEST(Calibration, PredictsWhatWasMeasured) {
  Rng rng(11);
  for (int i = 0; i < 2000; ++i) {
    Calibration measured;
    int64_t longest_ns = 0;
    int64_t sum_ns = 0;
    const size_t count = 2 + rng.below(4);
    for (size_t d = 0; d < count; ++d) {
      DimensionCalibration& each = measured.dimensions.emplace_back();
      each.step_ns = static_cast<int64_t>(5'000 + rng.below(100'000));
      each.bytes = (1 + rng.below(128)) << 16;
      each.alone_ns = 2'000'000 + static_cast<int64_t>(rng.below(30'000'000));
      longest_ns = std::max(longest_ns, each.alone_ns);
      sum_ns += each.alone_ns - each.step_ns;
    }
    measured.together_ns = longest_ns + static_cast<int64_t>(rng.below(static_cast<uint64_t>(sum_ns - longest_ns) + 1));
    const Topology fitted = fit_calibration(measured, grid(std::vector<int32_t>(count, 2))).value();
    expect_near(predicted_together_ns(fitted, measured), static_cast<uint64_t>(measured.together_ns), 0.06, "together");
    for (size_t d = 0; d < count; ++d) {
      const Dimension& dimension = fitted.dimensions[d];
      EXPECT_LE(static_cast<double>(dimension.shared_ps_per_byte),
                8e6 / static_cast<double>(dimension.bandwidth_mbps) * 1.01 + 1)
          << "alone, a dimension is as fast as its link";
    }
  }
}

TEST(Calibration, OneDimensionSharesWithNobody) {
  const Calibration measured{{{10'000, 1 << 20, 1'000'000}}, 9'000'000};
  const Topology fitted = fit_calibration(measured, grid({4})).value();
  EXPECT_EQ(fitted.dimensions[0].shared_resource, "");
}

TEST(Calibration, TimesThatCannotBeAreRefused) {
  const Calibration good{{{10'000, 1 << 20, 1'000'000}, {10'000, 1 << 20, 1'000'000}}, 1'500'000};
  const Topology topology = grid({2, 2});
  EXPECT_TRUE(fit_calibration(good, topology).ok());
  for (const int64_t wrong : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    Calibration bad = good;
    bad.dimensions[1].step_ns = wrong;
    EXPECT_NE(fit_calibration(bad, topology).error().message.find("dimension 2"), std::string::npos);
    bad = good;
    bad.dimensions[0].alone_ns = wrong;
    EXPECT_NE(fit_calibration(bad, topology).error().message.find("dimension 1"), std::string::npos);
    bad = good;
    bad.together_ns = wrong;
    EXPECT_NE(fit_calibration(bad, topology).error().message.find("together"), std::string::npos);
  }
  Calibration bad = good;
  bad.dimensions[0].bytes = 0;
  EXPECT_FALSE(fit_calibration(bad, topology).ok());
  EXPECT_FALSE(fit_calibration(good, grid({2})).ok());
  EXPECT_FALSE(fit_calibration({{}, 1}, Topology()).ok());
}

// For extreme links the values stay in the range of a topology file, and the measurement ends.
TEST(Calibration, ExtremesAreBounded) {
  for (const uint64_t mbps : {uint64_t{1}, uint64_t{1'000'000'000}}) {
    const Topology truth = truth_of({mbps, mbps}, {0, 1'000'000'000}, {});
    World world(truth);
    const Topology asked = grid({2, 2});
    const Calibration measured = measure_calibration(world, asked).value();
    const Topology fitted = fit_calibration(measured, asked).value();
    for (const Dimension& dimension : fitted.dimensions) {
      EXPECT_GE(dimension.bandwidth_mbps, 1u);
      EXPECT_LE(dimension.bandwidth_mbps, 1'000'000'000u);
      EXPECT_LE(dimension.latency_ns, 1'000'000'000u);
    }
    EXPECT_LE(world.exchanges, 17 + 9 * 5);
  }
}

TEST(Calibration, MeasuringIsShort) {
  for (const uint64_t mbps : {100, 1'000, 25'000, 200'000}) {
    World world(truth_of({mbps, mbps, mbps}, {20'000, 20'000, 20'000}, {}));
    EXPECT_TRUE(measure_calibration(world, grid({2, 2, 2})).ok());
    EXPECT_LT(world.total_ns, 6e9) << mbps;
  }
}

// What two rails carry together was measured, so their given rates may contradict it.
TEST(Calibration, KeepsTheNamesOfRailsButNotTheirRates) {
  Topology asked = grid({2});
  asked.dimensions[0].rails = {{"eth1", 100}, {"eth2", 100}};
  asked.dimensions[0].bandwidth_mbps = 200;
  Calibration calibration;
  calibration.dimensions = {{1000, 1 << 20, 1'000'000}};
  calibration.together_ns = 1'000'000;
  const Topology fitted = fit_calibration(calibration, asked).value();
  EXPECT_NE(fitted.dimensions[0].bandwidth_mbps, 200u);
  EXPECT_EQ(fitted.dimensions[0].rails, (std::vector<DimensionRail>{{"eth1", 0}, {"eth2", 0}}));
}

}  // namespace
}  // namespace calibration_test
}  // namespace trestle
