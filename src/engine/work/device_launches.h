// DeviceLaunches: cuts one Work at a time into copies and launches of kernels, and submits them to the lanes of a
// DeviceQueue: each run of its pieces to the lane for what it reads and writes.
//
// Owned by a DeviceQueue. All calls enqueue (device/device.h); nothing is allocated.
#pragma once

#include <array>

#include "device/copy_batch.h"
#include "engine/work/flights.h"
#include "engine/work/runs.h"

namespace trestle {

class DeviceLaunches {
 public:
  // All must outlive this object. flights: hears which lanes a work goes to.
  DeviceLaunches(Device& device, DeviceKernels& kernels, DeviceLanes& lanes, Flights& flights);

  // Takes a work, which must stay as it is until is_finished() or the next begin(). Error: a device cannot do it, and
  // nothing of it was submitted. kInvalidUsage: a user-defined reduction, or too many sources.
  Status begin(const Work& work);
  // Submits the rest, but fewer than `most` + kMostBeyond copies and launches. Error: the driver's; the work must be
  // given up.
  Status go_on(uint32_t most);
  static constexpr uint32_t kMostBeyond = kLaneUses * CopyBatch::kMostSubmitted;
  bool is_finished() const { return work_ == nullptr; }
  // Copies and launches to this lane since the last call for it.
  uint32_t take_submitted(LaneUse use);

 private:
  // What goes to one lane.
  struct Lane {
    StreamHandle* stream;
    CopyBatch copies;
    bool entered = false;  // by the present work
    uint32_t launched = 0;
    uint32_t taken = 0;
    uint32_t submitted() const { return launched + copies.submitted(); }
  };

  uint32_t submitted() const;
  Status do_next();
  Status do_run();
  LaneUse use_of_run() const;

  DeviceKernels& kernels_;
  Flights& flights_;
  std::array<Lane, kLaneUses> lanes_;
  Runs runs_;
  const Work* work_ = nullptr;
  ReduceSpec spec_;
  bool copies_only_ = false;
};

}  // namespace trestle
