#include "engine/work/device_launches.h"

#include <string>
#include <utility>

#include "base/check.h"

namespace trestle {

namespace {

Status check(const Work& work) {
  const bool is_reduction = work.kind == WorkKind::kReduce;
  if (work.kind == WorkKind::kFold || (is_reduction && is_user_defined(work.spec.op))) {
    return Error{Code::kInvalidUsage,
                 "a user-defined reduction is a function of the host's: it cannot work on a device's memory"};
  }
  if (is_reduction && work.sources.size() > kernels::kMostCudaSources) {
    return Error{Code::kInvalidUsage, "a reduction of " + std::to_string(work.sources.size()) +
                                          " sources at once on a GPU; it takes at most " +
                                          std::to_string(kernels::kMostCudaSources)};
  }
  return {};
}

}  // namespace

DeviceLaunches::DeviceLaunches(Device& device, DeviceKernels& kernels, DeviceLanes& lanes, Flights& flights)
    : kernels_(kernels),
      flights_(flights),
      lanes_([&] {
        const auto lane = [&](LaneUse use, uint64_t long_bytes) {
          StreamHandle* const stream = lanes[static_cast<size_t>(use)]->stream();
          return Lane{stream, CopyBatch(device, kernels, stream, long_bytes)};
        };
        return std::array{lane(LaneUse::kOnDevice, CopyBatch::kLongBytes),
                          lane(LaneUse::kToHost, CopyBatch::kLongPcieBytes),
                          lane(LaneUse::kFromHost, CopyBatch::kLongPcieBytes)};
      }()),
      runs_(kernels::kMostCudaSources) {}

Status DeviceLaunches::begin(const Work& work) {
  work_ = nullptr;
  for (Lane& lane : lanes_) lane.entered = false;
  if (work.destination.empty()) return {};
  TRY(check(work));
  runs_.begin(work);
  spec_ = work.spec;
  if (spec_.op == kPreMulSum) spec_.op = ReduceOp::kSum;  // as find_own_reduce() has it
  // One source that is not divided is copied.
  const bool is_copied = work.kind == WorkKind::kReduce && work.sources.size() == 1 && spec_.average_over == 0;
  copies_only_ = work.kind == WorkKind::kCopy || is_copied;
  work_ = &work;
  return {};
}

uint32_t DeviceLaunches::submitted() const {
  uint32_t all = 0;
  for (const Lane& lane : lanes_) all += lane.submitted();
  return all;
}

uint32_t DeviceLaunches::take_submitted(LaneUse use) {
  Lane& lane = lanes_[static_cast<size_t>(use)];
  const uint32_t before = std::exchange(lane.taken, lane.submitted());
  return lane.taken - before;
}

Status DeviceLaunches::go_on(uint32_t most) {
  const uint32_t before = submitted();
  while (!is_finished() && submitted() - before < most) TRY(do_next());
  return {};
}

Status DeviceLaunches::do_next() {
  // The copies join their runs themselves: the driver refuses a long copy that goes on into the next allocation.
  if (runs_.next(!copies_only_)) return do_run();
  for (Lane& lane : lanes_) {
    if (lane.entered) TRY(lane.copies.flush());
    lane.entered = false;
  }
  work_ = nullptr;
  return {};
}

LaneUse DeviceLaunches::use_of_run() const {
  if (runs_.writes_host()) return LaneUse::kToHost;
  return runs_.reads_host() ? LaneUse::kFromHost : LaneUse::kOnDevice;
}

Status DeviceLaunches::do_run() {
  const std::span<const std::byte* const> sources = runs_.sources();
  const LaneUse use = use_of_run();
  Lane& lane = lanes_[static_cast<size_t>(use)];
  if (!lane.entered) TRY(flights_.enter(use));
  lane.entered = true;
  if (copies_only_) return lane.copies.add(runs_.destination(), sources[0], runs_.bytes());
  ++lane.launched;
  const uint64_t elements = runs_.bytes() / size_of(spec_.type);
  if (work_->kind == WorkKind::kReduce)
    return kernels_.reduce(runs_.destination(), sources, elements, spec_, lane.stream);
  return kernels_.scale(runs_.destination(), sources[0], elements, spec_.type, work_->factor, lane.stream);
}

}  // namespace trestle
