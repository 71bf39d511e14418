// DeviceQueue: a WorkQueue that does work on a stream of its own of a GPU, by copies and kernels. The pieces of the
// work are addresses that the device reaches: its own memory, a peer's, or pinned memory of the host.
//
// Owned by an engine. Threads: see WorkQueue. submit() and poll() only enqueue and look: everything that may allocate,
// register or wait, such as loading code, happens in create(). create(), close() and the destructor are slow as
// device/device.h says; the destructor waits for the stream without a limit.
//
// The driver makes a thread wait that launches more than a stream's queue holds, about a thousand. submit() and poll()
// run under the progress lock, so they must not wait there: at most kMostCommands are in the stream at the same time.
// Work behind them, and the rest of a work that needs many, is submitted by poll(). Where streams share the driver's
// queue (many ranks on one GPU), a launch may still wait for room, but never for ever: nothing on this stream waits for
// the host or for another stream, so the device empties it although nobody drives. Gates are on the callers' streams.
//
// Sleeping: the end of work rings no bell, so a timer wakes the sleeper, who looks (engine/work/look_timer.h). A host
// function behind the work could ring an eventfd instead. But the driver calls host functions of all streams one after
// another: it would wait behind a caller's function that may wait for this very work.
//
// Failure: when the driver refuses a call or the device breaks, the work that was affected and all work behind it ends
// with the driver's sentence, as soon as nothing runs on the stream any more. Further work ends with the same sentence.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "device/gate.h"
#include "engine/work/device_launches.h"
#include "engine/work/look_timer.h"
#include "engine/work/work_queue.h"

namespace trestle {

class DeviceQueue : public WorkQueue {
 public:
  // The device must outlive the queue. kernels: those of this device, which may be shared; nullptr: it loads its own.
  // way: how it learns that work has ended; none: the best one. Slow. Error: the driver's, or no descriptors are left.
  static Result<std::unique_ptr<DeviceQueue>> create(Device& device, std::shared_ptr<DeviceKernels> kernels = nullptr,
                                                     std::optional<GateWay> way = std::nullopt);
  DeviceQueue(const DeviceQueue&) = delete;
  DeviceQueue& operator=(const DeviceQueue&) = delete;
  ~DeviceQueue() override;

  void submit(Work& work) override;
  bool poll() override;
  int event_fd() const override { return timer_.fd(); }
  bool prepare_sleep() override;
  void finish_sleep() override { timer_.finish(); }
  bool close(int64_t give_up_ns) override;

  // No more is submitted while so many copies and launches are under way.
  static constexpr uint32_t kMostLaunches = 256;

 private:
  static constexpr uint32_t kLaunchesPerPart = 32;  // so that room is found again while a long work is under way
  static constexpr uint32_t kMostParts = 128;

 public:
  // Everything that is in the stream at the same time: launches, those of the part that was begun last, and marks.
  static constexpr uint32_t kMostCommands = kMostLaunches + kLaunchesPerPart + DeviceLaunches::kMostBeyond + kMostParts;
  static_assert(kMostCommands < 1000);

 private:
  // Launches that end when the stream reaches the ticket.
  struct Part {
    uint32_t ticket = 0;
    uint32_t launches = 0;
    bool ends_work = false;
  };

  explicit DeviceQueue(Device& device) : device_(device) {}
  Status prepare(std::shared_ptr<DeviceKernels> kernels, GateWay way);

  bool has_room() const;
  void issue();
  bool issue_part();
  Status launch_part();
  void look();
  bool first_part_ended() const;
  bool end_parts();
  bool end_failed();
  void end_first();
  bool still_runs();
  bool might_find_something();
  void fail(Error error);

  Device& device_;
  std::shared_ptr<DeviceKernels> kernels_;
  StreamHandle* stream_ = nullptr;
  bool has_stream_ = false;
  std::unique_ptr<Mark> mark_;
  std::optional<DeviceLaunches> launches_;
  LookTimer timer_;

  // All work that is not done, linked by Work::next.
  Work* first_ = nullptr;
  Work* last_ = nullptr;
  Work* issued_ = nullptr;  // the first one of which not everything was submitted
  bool begun_ = false;      // by launches_
  // Parts under way, in their order: a ring.
  std::array<Part, kMostParts> parts_;
  uint32_t first_part_ = 0;
  uint32_t part_count_ = 0;
  uint32_t launches_under_way_ = 0;
  uint32_t last_ticket_ = 0;
  uint32_t reached_ = 0;

  std::optional<Error> failure_;
  bool rests_ = false;  // nothing runs on the stream, and nothing will
  bool closed_ = false;
};

}  // namespace trestle
