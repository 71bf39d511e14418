#include "gradient/executor/link_measure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "base/clock.h"
#include "gradient/executor/link_fit.h"

namespace trestle {
namespace {

constexpr size_t kSizes = 7;
constexpr size_t kRounds = 7;
constexpr size_t kSmallest = 1024;
constexpr size_t kFactor = 4;
constexpr double kLeastSeconds = 1e-9;  // the clock's resolution, so that no message takes no time
// Messages in a row, as a step has them: the next one is copied while one travels.
constexpr size_t kRow = 4;
constexpr size_t kRowBytes = 1 << 20;  // of each

struct Rounds {
  std::array<double, kRounds> all_reduce, reduce_scatter, all_gather;
};
struct RowRounds {
  std::array<double, kRounds> bare, copied;
};

double median(std::array<double, kRounds> seconds) {
  std::ranges::nth_element(seconds, seconds.begin() + kRounds / 2);
  return std::max(seconds[kRounds / 2], kLeastSeconds);
}

double since(int64_t& last_ns) {
  const int64_t now = monotonic_clock().now_ns();
  return static_cast<double>(now - std::exchange(last_ns, now)) / 1e9;
}

// All that one rank alone may fail to get.
struct Equipment {
  CoreMemory memory;
  CoreStream stream;
  struct Requests {
    CoreRequest whole, halves;
  };
  std::array<Requests, kSizes> requests;
  std::array<CoreRequest, kRow> row;
  // Stands for the program's gradients: copied into the memory above, and back.
  std::unique_ptr<std::byte[]> apart;
};

size_t bytes_of(size_t size) {
  size_t bytes = kSmallest;
  for (size_t i = 0; i < size; ++i) bytes *= kFactor;
  return bytes;
}

std::byte* row_memory(const Equipment& all, size_t message) {
  return static_cast<std::byte*>(all.memory.get()) + message * kRowBytes;
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
  static_assert(kRow * kRowBytes == size_t{4} << 20, "they fill the memory");
  all.apart.reset(new (std::nothrow) std::byte[kRow * kRowBytes]());
  if (all.apart == nullptr) return Error{Code::kSystemError, "no memory to measure the links"};
  for (size_t m = 0; m < kRow; ++m) {
    std::byte* const data = row_memory(all, m);
    TRY(checked(trestleAllReduceInit(data, data, kRowBytes / sizeof(float), trestleFloat32, trestleSum, comm,
                                     all.stream.get(), all.row[m].out())));
  }
  return {};
}

Result<double> row_seconds(trestleComm_t comm, Equipment& all, bool copies) {
  const auto checked = [comm](trestleResult_t result) { return core_status(result, comm); };
  TRY(checked(trestleBarrier(comm, all.stream.get())));
  TRY(checked(trestleStreamSynchronize(all.stream.get())));
  int64_t at = monotonic_clock().now_ns();
  for (size_t m = 0; m < kRow; ++m) {
    if (copies) std::memcpy(row_memory(all, m), &all.apart[m * kRowBytes], kRowBytes);
    TRY(checked(trestleRequestStart(all.row[m].get())));
  }
  for (size_t m = 0; m < kRow; ++m) {
    TRY(checked(trestleRequestWait(all.row[m].get())));
    if (copies) std::memcpy(&all.apart[m * kRowBytes], row_memory(all, m), kRowBytes);
  }
  return since(at);
}

Status measure_rows(trestleComm_t comm, Equipment& all, RowRounds& rounds) {
  for (size_t round = 0; round < kRounds; ++round) {
    rounds.bare[round] = TRY(row_seconds(comm, all, false));
    rounds.copied[round] = TRY(row_seconds(comm, all, true));
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
  TRY(agreement.agree("GradProfileEnd", {}, equip(comm, all)));
  std::vector<double> seconds;
  for (size_t i = 0; i < kSizes; ++i) {
    Rounds rounds{};
    TRY(agreement.part(measure(comm, all, i, rounds)));
    for (const auto& one : {rounds.all_reduce, rounds.reduce_scatter, rounds.all_gather})
      seconds.push_back(median(one));
  }
  RowRounds rows{};
  TRY(agreement.part(measure_rows(comm, all, rows)));
  for (const auto& one : {rows.bare, rows.copied}) seconds.push_back(median(one));
  const std::vector<double> means = TRY(agreement.means(std::move(seconds)));
  std::array<std::array<MeasuredMessage, kSizes>, 3> points;
  for (size_t i = 0; i < kSizes; ++i) {
    for (size_t kind = 0; kind < 3; ++kind) points[kind][i] = {static_cast<double>(bytes_of(i)), means[3 * i + kind]};
  }
  const double copies_s = std::max(means[3 * kSizes + 1] - means[3 * kSizes], 0.0);
  return GradientLink{fit_cost_robustly(points[0]), fit_cost_robustly(points[1]), fit_cost_robustly(points[2]),
                      copies_s / (2 * kRow * kRowBytes)};
}

}  // namespace trestle
