// CopyBatch: joins many copies on one stream into few launches. Copies that continue each other become one, copies that
// form rows become one launch, and others travel many per launch. Long copies go to the driver, one by one.
//
// Owned by the object that submits to the stream; one thread at a time. Nothing is allocated. Until flush() it keeps
// some copies back. The copies of one batch may happen in any order, so no destination may overlap another one, nor the
// source of another copy.
#pragma once

#include <array>
#include <cstdint>

#include "device/kernels.h"

namespace trestle {

class CopyBatch {
 public:
  // Copies of at least `long_bytes` are the driver's.
  CopyBatch(Device& device, DeviceKernels& kernels, StreamHandle* stream, uint64_t long_bytes = kLongBytes)
      : device_(device), kernels_(kernels), stream_(stream), long_bytes_(long_bytes) {}

  // The most copies and launches that one call submits.
  static constexpr uint32_t kMostSubmitted = 3;

  // Nothing is copied if dst is src.
  Status add(std::byte* dst, const std::byte* src, uint64_t bytes);
  // Submits what was kept back.
  Status flush();
  // Copies and launches that were submitted so far. It wraps around.
  uint32_t submitted() const { return submitted_; }

  // From here on the driver copies: its copy engines leave the multiprocessors to others, and beginning a copy costs
  // little beside it. Copies that cross PCIe take much longer.
  static constexpr uint64_t kLongBytes = uint64_t{1} << 20;
  static constexpr uint64_t kLongPcieBytes = uint64_t{256} << 10;

 private:
  // Copies of equal length at equal distances.
  struct Rows {
    CopyRun first;
    uint64_t count = 0;
    uint64_t dst_stride = 0;
    uint64_t src_stride = 0;
  };

  Status take_joined();
  bool go_as_rows() const;
  bool takes(const CopyRun& run);
  Status end_rows();
  Status put(const CopyRun& run);
  Status launch_runs();

  Device& device_;
  DeviceKernels& kernels_;
  StreamHandle* const stream_;
  const uint64_t long_bytes_;
  CopyRun joined_;  // the last copies, which continue each other; no bytes: none
  Rows rows_;       // those before them
  std::array<CopyRun, kernels::kMostCudaRuns> runs_;
  uint32_t count_ = 0;
  uint32_t submitted_ = 0;
};

}  // namespace trestle
