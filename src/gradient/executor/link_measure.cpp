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

Status measure(trestleComm_t comm, const CoreMemory& memory, const CoreStream& stream, size_t bytes, Rounds& rounds) {
  const auto checked = [comm](trestleResult_t result) { return core_status(result, comm); };
  CoreRequest whole, halves;
  const size_t count = bytes / sizeof(float);
  TRY(checked(trestleAllReduceInit(memory.get(), memory.get(), count, trestleFloat32, trestleSum, comm, stream.get(),
                                   whole.out())));
  TRY(checked(trestleAllReduceStartInit(memory.get(), memory.get(), count, trestleFloat32, trestleSum, comm,
                                        stream.get(), halves.out())));
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
  CoreMemory memory;
  CoreStream stream;
  size_t bytes = kSmallest;
  for (size_t i = 1; i < kSizes; ++i) bytes *= kFactor;
  TRY(core_status(trestleMemAlloc(memory.out(), bytes), comm));
  TRY(core_status(trestleStreamCreate(stream.out()), comm));
  std::vector<double> seconds;
  bytes = kSmallest;
  for (size_t i = 0; i < kSizes; ++i, bytes *= kFactor) {
    Rounds rounds{};
    TRY(measure(comm, memory, stream, bytes, rounds));
    for (const auto& one : {rounds.all_reduce, rounds.reduce_scatter, rounds.all_gather})
      seconds.push_back(median(one));
  }
  const std::vector<double> means = TRY(agreement.means(std::move(seconds)));
  std::array<std::array<MeasuredMessage, kSizes>, 3> points;
  bytes = kSmallest;
  for (size_t i = 0; i < kSizes; ++i, bytes *= kFactor) {
    for (size_t kind = 0; kind < 3; ++kind) points[kind][i] = {static_cast<double>(bytes), means[3 * i + kind]};
  }
  return GradientLink{fit_cost(points[0]), fit_cost(points[1]), fit_cost(points[2])};
}

}  // namespace trestle
