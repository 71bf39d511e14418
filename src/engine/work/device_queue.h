// DeviceQueue: a WorkQueue that does work on streams of its own of a GPU, by copies and kernels. The pieces of the work
// are addresses that the device reaches: its own memory, a peer's, or pinned memory of the host. Memory of the host has
// a region that says so; pieces without a region are memory of devices.
//
// Owned by an engine. Threads: see WorkQueue. submit() and poll() only enqueue and look: everything that may allocate,
// register or wait, such as loading code, happens in create(). create(), close() and the destructor are slow as
// device/device.h says; the destructor waits for the streams without a limit.
//
// Lanes (engine/work/device_lane.h): what a GPU does within its memory, what it copies to the host, and what it reads
// from there happen beside each other, in streams of their own. The order of works that touch the same memory is kept
// by waits between the streams (engine/work/flights.h). Works end in any order.
//
// The driver makes a thread wait that launches more than a stream's queue holds, about a thousand. submit() and poll()
// run under the progress lock, so they must not wait there: at most kMostCommands are in a stream at the same time.
// Work behind them, and the rest of a work that needs many, is submitted by poll(). Where streams share the driver's
// queue (many ranks on one GPU), a launch may still wait for room, but never for ever: nothing on these streams waits
// for the host, and what waits for another stream waits for what was submitted before it. So the device empties them
// although nobody drives. Gates are on the callers' streams.
//
// Sleeping: the end of work rings no bell, so a timer wakes the sleeper, who looks (engine/work/look_timer.h). A host
// function behind the work could ring an eventfd instead. But the driver calls host functions of all streams one after
// another: it would wait behind a caller's function that may wait for this very work.
//
// Failure: when the driver refuses a call or the device breaks, all work that has not ended ends with the driver's
// sentence, as soon as nothing runs on the streams any more. Further work ends with the same sentence.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "engine/work/device_launches.h"
#include "engine/work/look_timer.h"
#include "engine/work/work_queue.h"

namespace trestle {

class DeviceQueue : public WorkQueue {
 public:
  // The device must outlive the queue. kernels: those of this device, which may be shared; nullptr: it loads its own.
  // way: how it learns that work has ended; none: the best one. words: of pinned memory for that, which outlive the
  // queue; nullptr: it allocates its own, and frees them. Slow. Error: the driver's, or no descriptors are left.
  using Words = std::array<uint32_t*, kLaneUses>;
  static Result<std::unique_ptr<DeviceQueue>> create(Device& device, std::shared_ptr<DeviceKernels> kernels = nullptr,
                                                     std::optional<GateWay> way = std::nullopt,
                                                     const Words& words = {});
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue() override;

  void submit(Work& work) override;
  bool poll() override;
  int event_fd() const override { return timer_.fd(); }
  bool prepare_sleep() override;
  void finish_sleep() override { timer_.finish(); }
  bool close(int64_t give_up_ns) override;

  // Of one lane.
  static constexpr uint32_t kMostLaunches = DeviceLane::kMostLaunches;

 private:
  static constexpr uint32_t kLaunchesPerPart = 32;  // so that room is found again while a long work is under way
  static constexpr uint32_t kMostWaits = (kLaneUses - 1) * Flights::kMost;

 public:
  // Everything that is in a stream at the same time: launches, those of the part that was begun last, marks and their
  // events, and waits.
  static constexpr uint32_t kMostCommands =
      kMostLaunches + kLaunchesPerPart + DeviceLaunches::kMostBeyond + 2 * DeviceLane::kMostParts + kMostWaits;
  static_assert(kMostCommands < 1000);

 private:
  explicit DeviceQueue(Device& device) : device_(device) {}
  Status prepare(std::shared_ptr<DeviceKernels> kernels, GateWay way, const Words& words);

  bool has_room() const;
  void issue();
  bool issue_part();
  Status launch_part();
  bool others_may_follow(LaneUse use) const;
  void look();
  bool give_back_room();
  bool end_failed();
  bool waits() const { return waiting_first_ != nullptr || !flights_.is_empty(); }
  bool still_runs();
  bool might_find_something();
  void fail(Error error);

  Device& device_;
  std::shared_ptr<DeviceKernels> kernels_;
  DeviceLanes lanes_;
  Flights flights_{lanes_};
  std::optional<DeviceLaunches> launches_;
  LookTimer timer_;

  // Work of which not everything was submitted to the lanes, linked by Work::next.
  Work* waiting_first_ = nullptr;
  Work* waiting_last_ = nullptr;
  bool begun_ = false;  // the first of it: it is the newest of flights_

  std::optional<Error> failure_;
  bool rests_ = false;  // nothing runs on the streams, and nothing will
  bool closed_ = false;
};

}  // namespace trestle
