#include "cli/calibrate/calibrate.h"

#include <algorithm>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "cli/calibrate/calibrate_text.h"
#include "cli/job.h"
#include "cli/plan/info.h"
#include "cli/write_file.h"
#include "sched/calibrate/calibration.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/select/select.h"
#include "topology/calibration_file.h"

namespace trestle {
namespace {

class JobProbe : public CalibrationProbe {
 public:
  explicit JobProbe(const Job& job)
      : job_(job), sent_(kMostCalibrationBytes), received_(job.topology().dimensions.size()) {}

  Result<int64_t> exchange(const ExchangeRequest& request) override {
    TRY(job_.barrier());
    const int64_t begin_ns = monotonic_clock().now_ns();
    for (int i = 0; i < request.times; ++i) TRY(exchange_once(request));
    return monotonic_clock().now_ns() - begin_ns;
  }
  Status largest(std::vector<int64_t>& values) override { return job_.largest(values); }

 private:
  Status exchange_once(const ExchangeRequest& request) {
    const trestleComm_t comm = job_.comm();
    TRY(said(trestleGroupStart(), comm));
    for (uint8_t d = 0; d < request.bytes.size(); ++d) {
      const uint64_t bytes = request.bytes[d];
      if (bytes == 0) continue;
      received_[d].resize(kMostCalibrationBytes);
      const std::vector<int32_t> members = job_.topology().group(job_.rank(), d);
      const auto me = static_cast<size_t>(job_.topology().coordinate(job_.rank(), d));
      const int32_t next = members[(me + 1) % members.size()];
      const int32_t previous = members[(me + members.size() - 1) % members.size()];
      // If a call fails, the end of the group fails too, so only that result is read.
      trestleSend(sent_.data(), bytes, trestleUint8, next, comm, nullptr);
      trestleRecv(received_[d].data(), bytes, trestleUint8, previous, comm, nullptr);
    }
    TRY(said(trestleGroupEnd(), comm));
    return job_.synchronize();
  }

  const Job& job_;
  const std::vector<std::byte> sent_;
  std::vector<std::vector<std::byte>> received_;  // by dimension
};

// The places of the ranks, with the same contents that the library exchanges when it makes a communicator. Each process
// is one rank of the job.
Result<std::vector<RankPlace>> gather_places(const Config& config) {
  int ranks = 0;
  TRY(said(trestleLauncherInfo(nullptr, &ranks, nullptr), nullptr));
  if (ranks < 2)
    return Error{
        Code::kInvalidUsage,
        "calibrate runs on every rank of a job, e.g. trestle run -n 8 -- trestle calibrate: one rank alone has "
        "no links"};
  const Job job = TRY(Job::join(flat_topology(ranks)));
  const std::string identity = config.host_id.empty() ? host_identity() : config.host_id;
  const std::vector<std::string> identities = TRY(job.all_gather(identity.substr(0, 1000)));
  const std::vector<std::string> names = TRY(job.all_gather(host_name().substr(0, 1000)));
  std::vector<RankPlace> places;
  for (size_t r = 0; r < identities.size(); ++r) places.push_back({names[r], identities[r], r + 1});
  return places;
}

// Writes out the nominal numbers, so that numbers from an earlier calibration have no effect.
Topology with_nominal(Topology topology) {
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const RailCost rail = rail_cost(topology, static_cast<uint8_t>(d));
    topology.dimensions[d].bandwidth_mbps = rail.bandwidth_mbps;
    topology.dimensions[d].latency_ns = rail.latency_ns;
  }
  return topology;
}

// The size of the test all-reduce. It is the same before and after the calibration.
uint64_t test_bytes(const Topology& fitted) {
  constexpr uint64_t kWanted_ns = 50'000'000;
  for (uint64_t bytes = uint64_t{8} << 20; bytes > (uint64_t{64} << 10); bytes /= 2) {
    SelectionRequest request;
    request.bytes = bytes;
    request.element_bytes = sizeof(float);
    const auto schedule = select_schedule(request, fitted, {});
    if (schedule.ok() && predict_ns(schedule.value(), fitted) <= kWanted_ns) return bytes;
  }
  return uint64_t{64} << 10;
}

Result<int64_t> time_all_reduce(const Job& job, std::vector<float>& data) {
  TRY(job.barrier());
  const int64_t begin_ns = monotonic_clock().now_ns();
  TRY(said(trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, job.comm(), nullptr),
           job.comm()));
  TRY(job.synchronize());
  return monotonic_clock().now_ns() - begin_ns;
}

Result<TestAllReduce> summary(const Job& job, size_t count, std::vector<int64_t> times) {
  TestAllReduce result;
  result.bytes = count * sizeof(float);
  double predicted_us = 0;
  TRY(said(trestlePredictTime(job.comm(), trestleCollAllReduce, count, trestleFloat32, &predicted_us), job.comm()));
  result.predicted_ns = static_cast<int64_t>(predicted_us * 1000);
  TRY(job.largest(times));
  std::sort(times.begin(), times.end());
  result.measured_ns = std::max<int64_t>(1, times[times.size() / 2]);
  return result;
}

// Runs both in turn, so that other load on the machines affects both alike. An error if the ranks have fitted different
// numbers.
Status test_all_reduce(CalibrationReport& report) {
  constexpr int kRounds = 7;
  const Job nominal = TRY(Job::join(report.nominal));
  const Job fitted = TRY(Job::join(report.fitted));
  std::vector<float> data(test_bytes(report.fitted) / sizeof(float));
  std::vector<int64_t> before;
  std::vector<int64_t> after;
  for (int round = 0; round <= kRounds; ++round) {
    before.push_back(TRY(time_all_reduce(nominal, data)));
    after.push_back(TRY(time_all_reduce(fitted, data)));
    if (round > 0) continue;  // the first one only warms up
    before.clear();
    after.clear();
  }
  report.before = TRY(summary(nominal, data.size(), before));
  report.after = TRY(summary(fitted, data.size(), after));
  return {};
}

// Writes the result to the file that later jobs on these hosts read.
Result<std::string> keep(const Config& config, const Topology& asked, const std::vector<RankPlace>& places,
                         const Topology& fitted) {
  if (config.calibrate == "off") return std::string("not kept: TRESTLE_CALIBRATE is off\n");
  if (config.calibration_folder.empty()) {
    return Error{Code::kInvalidUsage,
                 "calibrate: no folder to keep the result in; set TRESTLE_CALIBRATION_DIR, or "
                 "TRESTLE_CALIBRATE=off and --out"};
  }
  const uint64_t key = calibration_key(asked, places);
  const std::string path = calibration_path(config.calibration_folder, key);
  TRY(write_calibration(path, key, calibration_origin(places, TRESTLE_VERSION_CODE), fitted));
  LOG(kInfo, kInit,
      "calibration written to %s: communicators made from now on may have other schedules, "
      "so their sums may round differently",
      path.c_str());
  return "kept for jobs on these hosts: " + path + "\n";
}

}  // namespace

Result<std::string> calibrate(const Config& config, const std::string& out) {
  const std::vector<RankPlace> places = TRY(gather_places(config));
  const Topology asked = TRY(choose_topology(topology_request(config), places));
  CalibrationReport report;
  report.nominal = with_nominal(asked);
  int rank = 0;
  {
    const Job job = TRY(Job::join(report.nominal));
    rank = job.rank();
    JobProbe probe(job);
    report.measured = TRY(measure_calibration(probe, report.nominal));
  }
  report.fitted = TRY(fit_calibration(report.measured, asked));
  TRY(test_all_reduce(report));
  if (rank != 0) return std::string();
  std::string text = to_text(report);
  text += TRY(keep(config, asked, places, report.fitted));
  if (out.empty()) return text;
  TRY(write_file(out, to_json(report.fitted)));
  return text + "topology file: " + out + "\n";
}

}  // namespace trestle
