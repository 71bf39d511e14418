#include "gradient/executor/link_measure.h"

#include <algorithm>
#include <array>

#include "base/clock.h"
#include "gradient/executor/link_fit.h"

namespace trestle {
namespace {

constexpr size_t kSizes = 7;
constexpr size_t kRounds = 7;
constexpr size_t kSmallest = 1024;
constexpr size_t kFactor = 4;
constexpr double kLeastSeconds = 1e-9;  // of a clock's tick

struct Rounds {
  std::array<double, kRounds> all_reduce, reduce_scatter, all_gather;
};

double median(std::array<double, kRounds> seconds) {
  std::ranges::nth_element(seconds, seconds.begin() + kRounds / 2);
  return std::max(seconds[kRounds / 2], kLeastSeconds);
}

double since(int64_t& last_ns) {
  const int64_t now = monotonic_clock().now_ns();
  return static_cast<double>(now - std::exchange(last_ns, now)) / 1e9;
}

// All that a rank may fail to get by itself.
struct Equipment {
  CoreMemory memory;
  CoreStream stream;
  struct Requests {
    CoreRequest whole, halves;
  };
  std::array<Requests, kSizes> requests;
};

size_t bytes_of(size_t size) {
  size_t bytes = kSmallest;
  for (size_t i = 0; i < size; ++i) bytes *= kFactor;
  return bytes;
}

Status equip(trestleComm_t comm, Equipment& all) {
  const auto checked = [comm](trestleResult_t result) { return core_status(result, comm); };
  TRY(checked(trestleMemAlloc(all.memory.out(), bytes_of(kSizes - 1))));
  TRY(checked(trestleStreamCreate(all.stream.out())));
  for (size_t i = 0; i < kSizes; ++i) {
    const size_t count = bytes_of(i) / sizeof(float);
    void* const data = all.memory.get();
    TRY(checked(trestleAllReduceInit(data, data, count, trestleFloat32, trestleSum, comm, all.stream.get(),
                                     all.requests[i].whole.out())));
    TRY(checked(trestleAllReduceStartInit(data, data, count, trestleFloat32, trestleSum, comm, all.stream.get(),
                                          all.requests[i].halves.out())));
  }
  return {};
}

Status measure(trestleComm_t comm, const Equipment& all, size_t size, Rounds& rounds) {
  const auto checked = [comm](trestleResult_t result) { return core_status(result, comm); };
  const CoreStream& stream = all.stream;
  const auto& [whole, halves] = all.requests[size];
  for (size_t round = 0; round < kRounds; ++round) {
    // All ranks begin together.
    TRY(checked(trestleBarrier(comm, stream.get())));
    TRY(checked(trestleStreamSynchronize(stream.get())));
    int64_t at = monotonic_clock().now_ns();
    TRY(checked(trestleRequestStart(whole.get())));
    TRY(checked(trestleRequestWait(whole.get())));
    rounds.all_reduce[round] = since(at);
    TRY(checked(trestleRequestStart(halves.get())));
    TRY(checked(trestleRequestWait(halves.get())));
    rounds.reduce_scatter[round] = since(at);
    TRY(checked(trestleAllReduceFinish(halves.get(), stream.get())));
    TRY(checked(trestleRequestWait(halves.get())));
    rounds.all_gather[round] = since(at);
  }
  return {};
}

}  // namespace

Result<GradientLink> measure_link(trestleComm_t comm, const RankAgreement& agreement) {
  Equipment all;
  TRY(agreement.all_could("GradProfileEnd", equip(comm, all)));
  std::vector<double> seconds;
  for (size_t i = 0; i < kSizes; ++i) {
    Rounds rounds{};
    TRY(agreement.part(measure(comm, all, i, rounds)));
    for (const auto& one : {rounds.all_reduce, rounds.reduce_scatter, rounds.all_gather})
      seconds.push_back(median(one));
  }
  const std::vector<double> means = TRY(agreement.means(std::move(seconds)));
  std::array<std::array<MeasuredMessage, kSizes>, 3> points;
  for (size_t i = 0; i < kSizes; ++i) {
    for (size_t kind = 0; kind < 3; ++kind) points[kind][i] = {static_cast<double>(bytes_of(i)), means[3 * i + kind]};
  }
  return GradientLink{fit_cost_robustly(points[0]), fit_cost_robustly(points[1]), fit_cost_robustly(points[2])};
}

}  // namespace trestle
