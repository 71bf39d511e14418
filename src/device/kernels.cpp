#include "device/kernels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/cuda/images.h"
#include "kernels/elements.h"

namespace trestle {

namespace {

using kernels::kPackBytes;

constexpr uint32_t kMovesTogether = 8;  // packs of a thread at once, as in reduce.cu and move.cu
constexpr uint64_t kMostRowBlocks = 1024;

uint32_t bytes_of(DataType type) {
  return static_cast<uint32_t>(size_of(type));
}

}  // namespace

Result<std::unique_ptr<DeviceKernels>> DeviceKernels::create(Device& device) {
  std::unique_ptr<DeviceKernels> made(new DeviceKernels(device));
  TRY(made->load_all());
  return made;
}

DeviceKernels::~DeviceKernels() {
  // A device that fails has failed its users already.
  for (ModuleHandle* const code : code_) {
    [[maybe_unused]] const Status unloaded = device_.unload(code);
  }
}

Status DeviceKernels::load_all() {
  TRY(load_moves());
  for (size_t type = 0; type < kDataTypes; ++type) TRY(load_type(static_cast<DataType>(type)));
  return {};
}

Result<ModuleHandle*> DeviceKernels::load(std::string_view image) {
  for (const kernels::CudaImage& one : kernels::cuda_images()) {
    if (one.name != image) continue;
    code_.reserve(code_.size() + 1);
    code_.push_back(TRY(device_.load(one.bytes)));
    return code_.back();
  }
  return Error{Code::kInvalidUsage, "this build of Trestle has no kernels for GPUs (TRESTLE_CUDA)"};
}

Result<DeviceKernels::Kernel> DeviceKernels::find(ModuleHandle* code, const std::string& name, uint32_t threads) {
  Kernel kernel;
  kernel.handle = TRY(device_.find_kernel(code, name.c_str()));
  kernel.most_blocks = TRY(device_.resident_blocks(kernel.handle, threads));
  return kernel;
}

Result<DeviceKernels::Kernel> DeviceKernels::find_board(ModuleHandle* code, const std::string& name) {
  Kernel kernel = TRY(find(code, name, kernels::kBoardThreads));
  board_capacity_ = std::min(board_capacity_, kernel.most_blocks);
  return kernel;
}

Status DeviceKernels::load_type(DataType type) {
  OfType& of_type = types_[static_cast<size_t>(type)];
  ModuleHandle* const code = TRY(load(std::string("reduce_") + to_string(type)));
  for (size_t op = 0; op < kReduceOps; ++op) {
    for (uint32_t variant = 0; variant < kernels::kCudaSourceVariants; ++variant) {
      of_type.reduce[op][variant] = TRY(find(code, kernels::reduce_kernel(static_cast<ReduceOp>(op), variant)));
    }
    of_type.board[op] = TRY(find_board(code, kernels::board_kernel(static_cast<ReduceOp>(op))));
  }
  of_type.scale = TRY(find(code, "scale"));
  return {};
}

Status DeviceKernels::load_moves() {
  ModuleHandle* const code = TRY(load("move"));
  copy_rows_ = TRY(find(code, "copy_rows"));
  copy_runs_ = TRY(find(code, "copy_runs"));
  board_copy_ = TRY(find_board(code, "board_copy"));
  return {};
}

template <class Parameters>
Status DeviceKernels::launch(const Kernel& kernel, LaunchShape shape, Parameters& parameters, StreamHandle* stream) {
  const std::array<void*, 1> arguments = {&parameters};
  return device_.launch(kernel.handle, shape, arguments, stream);
}

Status DeviceKernels::reduce(std::byte* dst, std::span<const std::byte* const> sources, uint64_t elements,
                             const ReduceSpec& spec, StreamHandle* stream) {
  CHECK(!sources.empty(), "a reduction needs at least one source");
  if (sources.size() > kernels::kMostCudaSources) {
    return Error{Code::kInvalidUsage, "a reduction of " + std::to_string(sources.size()) +
                                          " sources on a GPU; it takes at most " +
                                          std::to_string(kernels::kMostCudaSources)};
  }
  if (elements == 0) return {};
  if (sources.size() == 1 && spec.average_over == 0) {
    // A copy, as on the CPU: a NaN that is widened and narrowed has other bits.
    const uint64_t bytes = elements * size_of(spec.type);
    return dst == sources[0] ? Status() : copy_rows(dst, bytes, sources[0], bytes, bytes, 1, stream);
  }
  kernels::CudaReduce work;
  std::array<const void*, kernels::kMostCudaSources + 1> buffers;
  std::copy(sources.begin(), sources.end(), buffers.begin());
  std::copy(sources.begin(), sources.end(), work.sources);
  buffers[sources.size()] = dst;
  work.range = kernels::packed_range({buffers.data(), sources.size() + 1}, elements, bytes_of(spec.type));
  work.dst = dst;
  work.source_count = static_cast<uint32_t>(sources.size());
  work.average_over = spec.average_over;
  work.share = kernels::average_factor(spec.average_over, false);
  for (size_t s = 0; s < sources.size() && spec.sums != nullptr; ++s) {
    if (spec.sums[s] != 0) work.sums[s / 32] |= 1u << s % 32;
  }
  const uint32_t variant = kernels::source_variant(work.source_count);
  const Kernel& kernel = types_[static_cast<size_t>(spec.type)].reduce[static_cast<size_t>(spec.op)][variant];
  const uint32_t blocks = kernels::blocks_for(work.range, kPackBytes / bytes_of(spec.type),
                                              kernels::packs_together(variant), kernel.most_blocks);
  return launch(kernel, {blocks, 1, kernels::kThreadsPerBlock}, work, stream);
}

Status DeviceKernels::scale(std::byte* dst, const std::byte* src, uint64_t elements, DataType type, const void* factor,
                            StreamHandle* stream) {
  if (elements == 0) return {};
  kernels::CudaScale work;
  const std::array<const void*, 2> buffers = {dst, src};
  work.range = kernels::packed_range(buffers, elements, bytes_of(type));
  work.dst = dst;
  work.src = src;
  std::memcpy(work.factor, factor, size_of(type));
  const Kernel& kernel = types_[static_cast<size_t>(type)].scale;
  const uint32_t blocks =
      kernels::blocks_for(work.range, kPackBytes / bytes_of(type), kMovesTogether, kernel.most_blocks);
  return launch(kernel, {blocks, 1, kernels::kThreadsPerBlock}, work, stream);
}

Status DeviceKernels::copy_rows(std::byte* dst, uint64_t dst_stride, const std::byte* src, uint64_t src_stride,
                                uint64_t row_bytes, uint64_t rows, StreamHandle* stream) {
  if (row_bytes == 0 || rows == 0) return {};
  kernels::CudaCopy work;
  work.dst = dst;
  work.src = src;
  work.rows = rows;
  work.dst_stride = dst_stride;
  work.src_stride = src_stride;
  work.range = kernels::packed_rows(work, row_bytes);
  const auto row_blocks = static_cast<uint32_t>(std::min(rows, kMostRowBlocks));
  const uint32_t blocks = kernels::blocks_for(work.range, work.range.pack_bytes, kMovesTogether,
                                              std::max(1u, copy_rows_.most_blocks / row_blocks));
  return launch(copy_rows_, {blocks, row_blocks, kernels::kThreadsPerBlock}, work, stream);
}

Status DeviceKernels::copy_runs(std::span<const CopyRun> runs, StreamHandle* stream) {
  CHECK(runs.size() <= kernels::kMostCudaRuns, "more runs than a launch takes");
  if (runs.empty()) return {};
  kernels::CudaCopyRuns work;
  work.count = static_cast<uint32_t>(runs.size());
  const uint32_t most = std::max(1u, copy_runs_.most_blocks / work.count);
  uint32_t blocks = 1;
  for (uint32_t i = 0; i < work.count; ++i) {
    const kernels::PackedRange range = kernels::packed_copy(runs[i].dst, runs[i].src, runs[i].bytes);
    work.runs[i] = {range, runs[i].dst, runs[i].src};
    blocks = std::max(blocks, kernels::blocks_for(range, range.pack_bytes, kMovesTogether, most));
  }
  return launch(copy_runs_, {blocks, work.count, kernels::kThreadsPerBlock}, work, stream);
}

Status DeviceKernels::board(const kernels::CudaBoardCall& call, DataType type, std::optional<ReduceOp> op,
                            uint32_t blocks, StreamHandle* stream) {
  CHECK(!op || is_valid(*op), "the board of devices has built-in operators only");
  const Kernel& kernel = op ? types_[static_cast<size_t>(type)].board[static_cast<size_t>(*op)] : board_copy_;
  kernels::CudaBoardCall work = call;
  return launch(kernel, {blocks, 1, kernels::kBoardThreads}, work, stream);
}

}  // namespace trestle
