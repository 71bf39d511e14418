// DeviceKernels: the kernels of kernels/cuda, loaded onto one device. All calls enqueue on a stream (device.h).
//
// Shared by all users of the device, which must outlive it. Any thread. Everything is loaded when it is made, because
// the driver may wait for all work of the device when it loads code. The contracts of sources, order and rounding are
// those of the kernels for the CPU (kernels/reduce.h, scale.h): equal bits, but for the bits of a NaN that
// an addition or a multiplication makes.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "device/device.h"
#include "kernels/cuda/board.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/reduce.h"

namespace trestle {

struct CopyRun {
  std::byte* dst = nullptr;
  const std::byte* src = nullptr;
  uint64_t bytes = 0;
};

class DeviceKernels {
 public:
  // kInvalidUsage: this build has no kernels. Slow.
  static Result<std::unique_ptr<DeviceKernels>> create(Device& device);
  DeviceKernels(const DeviceKernels&) = delete;
  DeviceKernels& operator=(const DeviceKernels&) = delete;
  // Everything that was enqueued must be done.
  ~DeviceKernels();

  // At most kernels::kMostCudaSources sources (kInvalidUsage). One source that is not divided is copied, bit by bit; if
  // it is the destination, nothing is launched.
  Status reduce(std::byte* dst, std::span<const std::byte* const> sources, uint64_t elements, const ReduceSpec& spec,
                StreamHandle* stream);
  Status scale(std::byte* dst, const std::byte* src, uint64_t elements, DataType type, const void* factor,
               StreamHandle* stream);
  // `rows` rows of row_bytes bytes, which begin at multiples of the strides.
  Status copy_rows(std::byte* dst, uint64_t dst_stride, const std::byte* src, uint64_t src_stride, uint64_t row_bytes,
                   uint64_t rows, StreamHandle* stream);
  // At most kernels::kMostCudaRuns copies (CHECKed), in one launch. None may write what another one reads or writes.
  Status copy_runs(std::span<const CopyRun> runs, StreamHandle* stream);
  // A call of the board of devices (kernels/cuda/board.h), whose elements are of this type. op: of a sum, built in;
  // else `call` counts bytes. The kernel waits for those of the other ranks. blocks: at most board_capacity() among all
  // that may wait on the device at the same time.
  Status board(const kernels::CudaBoardCall& call, DataType type, std::optional<ReduceOp> op, uint32_t blocks,
               StreamHandle* stream);
  // Blocks of the board's kernels that run on the device at the same time.
  uint32_t board_capacity() const { return board_capacity_; }

 private:
  struct Kernel {
    KernelHandle* handle = nullptr;
    uint32_t most_blocks = 0;  // that run at the same time
  };
  struct OfType {
    std::array<std::array<Kernel, kernels::kCudaSourceVariants>, kReduceOps> reduce;
    Kernel scale;
    std::array<Kernel, kReduceOps> board;
  };

  explicit DeviceKernels(Device& device) : device_(device) {}
  Status load_all();
  Result<ModuleHandle*> load(std::string_view image);
  Status load_type(DataType type);
  Status load_moves();
  Result<Kernel> find(ModuleHandle* code, const std::string& name, uint32_t threads = kernels::kThreadsPerBlock);
  Result<Kernel> find_board(ModuleHandle* code, const std::string& name);
  template <class Parameters>
  Status launch(const Kernel& kernel, LaunchShape shape, Parameters& parameters, StreamHandle* stream);

  Device& device_;
  std::vector<ModuleHandle*> code_;
  std::array<OfType, kDataTypes> types_;
  Kernel copy_rows_;
  Kernel copy_runs_;
  Kernel board_copy_;
  uint32_t board_capacity_ = UINT32_MAX;
};

}  // namespace trestle
