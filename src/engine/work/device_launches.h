// DeviceLaunches: cuts one Work at a time into copies and launches of kernels, and submits them to a stream.
//
// Owned by a DeviceQueue. All calls enqueue (device/device.h); nothing is allocated.
#pragma once

#include "device/copy_batch.h"
#include "engine/work/runs.h"

namespace trestle {

class DeviceLaunches {
 public:
  // The device, the kernels and the stream must outlive this object.
  DeviceLaunches(Device& device, DeviceKernels& kernels, StreamHandle* stream);

  // Takes a work, which must stay as it is until is_finished() or the next begin(). Error: a device cannot do it, and
  // nothing of it was submitted. kInvalidUsage: a user-defined reduction, or too many sources.
  Status begin(const Work& work);
  // Submits the rest, but fewer than `most` + kMostBeyond copies and launches. Error: the driver's; the work must be
  // given up.
  Status go_on(uint32_t most);
  static constexpr uint32_t kMostBeyond = CopyBatch::kMostSubmitted;
  bool is_finished() const { return work_ == nullptr; }
  // Copies and launches so far, of all work. It wraps around.
  uint32_t submitted() const { return launched_ + copies_.submitted(); }

 private:
  Status do_next();
  Status do_run();

  DeviceKernels& kernels_;
  StreamHandle* const stream_;
  CopyBatch copies_;
  Runs runs_;
  const Work* work_ = nullptr;
  ReduceSpec spec_;
  bool copies_only_ = false;
  uint32_t launched_ = 0;
};

}  // namespace trestle
