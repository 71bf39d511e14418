// The kernels of the fake driver: the CPU's, over the same parameters and in the same parts.
#include <cstring>

#include "kernels/cuda/board.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/reduce.h"
#include "kernels/scale.h"
#include "unit/device/fake_state.h"

namespace trestle::fake {
namespace {

using kernels::kPackBytes;
using kernels::PackedRange;

bool is_aligned(const void* address, uint64_t boundary) {
  return reinterpret_cast<uintptr_t>(address) % boundary == 0;
}

// Of the kernel that runs.
CUcontext running = nullptr;

// Calls part(first, count) for the elements before the packs, in them and after them, and finds packs of which a buffer
// is not aligned. Without packs there is one part.
template <class Part>
void for_parts(const PackedRange& range, uint64_t element_bytes, const std::vector<const void*>& buffers, Part part) {
  const uint64_t in_packs = range.packs * range.pack_bytes / element_bytes;
  if (range.head + in_packs > range.elements) misused("packs beyond the end");
  for (const void* const buffer : buffers) {
    is_elsewhere(running, buffer);
    const auto* const first = static_cast<const char*>(buffer) + range.head * element_bytes;
    if (range.packs > 0 && !is_aligned(first, range.pack_bytes)) misused("a pack that is not aligned");
    if (range.elements_are_aligned != 0 && !is_aligned(buffer, element_bytes)) misused("an element is not aligned");
  }
  part(0, range.head);
  part(range.head, in_packs);
  part(range.head + in_packs, range.elements - range.head - in_packs);
}

const std::byte* bytes_at(const void* buffer, uint64_t offset) {
  return static_cast<const std::byte*>(buffer) + offset;
}
std::byte* bytes_at(void* buffer, uint64_t offset) {
  return static_cast<std::byte*>(buffer) + offset;
}

void run_reduce(const kernels::CudaReduce& work, DataType type, const std::string& name) {
  const std::string operation = name.substr(0, name.find('_'));
  const std::string known = name.substr(name.find('_') + 1);
  if (known != "any" && known != std::to_string(work.source_count)) misused(name + " with other sources");
  const uint64_t size = size_of(type);
  std::vector<const void*> buffers(work.sources, work.sources + work.source_count);
  buffers.push_back(work.dst);
  for_parts(work.range, size, buffers, [&](uint64_t first, uint64_t count) {
    if (count == 0) return;
    std::vector<const std::byte*> sources;
    std::vector<uint8_t> sums;
    for (uint32_t s = 0; s < work.source_count; ++s) {
      sources.push_back(bytes_at(work.sources[s], first * size));
      sums.push_back(work.sums[s / 32] >> s % 32 & 1);
    }
    reduce(bytes_at(work.dst, first * size), sources, count,
           {type, parse_reduce_op(operation).value(), work.average_over, false, sums.data()});
  });
}

void run_scale(const kernels::CudaScale& work, DataType type) {
  const uint64_t size = size_of(type);
  for_parts(work.range, size, {work.dst, work.src}, [&](uint64_t first, uint64_t count) {
    if (count == 0) return;
    scale(bytes_at(work.dst, first * size), bytes_at(work.src, first * size), count, type, work.factor);
  });
}

void run_copy(const kernels::CudaCopy& work) {
  for (uint64_t row = 0; row < work.rows; ++row) {
    const std::byte* const src = bytes_at(work.src, row * work.src_stride);
    std::byte* const dst = bytes_at(work.dst, row * work.dst_stride);
    for_parts(work.range, 1, {dst, src},
              [&](uint64_t first, uint64_t count) { std::memcpy(dst + first, src + first, count); });
  }
}

void run_copies(const kernels::CudaCopyRuns& work) {
  if (work.count > kernels::kMostCudaRuns) misused("more runs than a launch takes");
  for (uint32_t i = 0; i < work.count; ++i) {
    const kernels::CudaRun& run = work.runs[i];
    for_parts(run.range, 1, {run.dst, run.src}, [&](uint64_t first, uint64_t count) {
      std::memcpy(bytes_at(run.dst, first), bytes_at(run.src, first), count);
    });
    if (run.range.elements != 0 && state().peer_kernels_broken && is_elsewhere(running, run.src))
      *bytes_at(run.dst, run.range.elements - 1) ^= std::byte{1};
    if (run.range.elements != 0 && state().peer_writes_broken && is_elsewhere(running, run.dst))
      *bytes_at(run.dst, 0) ^= std::byte{1};
  }
}

const std::string kReduceImage = "reduce_";

bool is_reduction(const Kernel& kernel) {
  return kernel.image.compare(0, kReduceImage.size(), kReduceImage) == 0;
}

}  // namespace

size_t parameter_bytes(const Kernel& kernel) {
  if (is_of_board(kernel)) return sizeof(kernels::CudaBoardCall);
  if (is_reduction(kernel)) return kernel.name == "scale" ? sizeof(kernels::CudaScale) : sizeof(kernels::CudaReduce);
  if (kernel.image != "move") return 0;
  if (kernel.name == "copy_rows") return sizeof(kernels::CudaCopy);
  return kernel.name == "copy_runs" ? sizeof(kernels::CudaCopyRuns) : 0;
}

void run_kernel(CUcontext context, const Kernel& kernel, const void* parameters) {
  running = context;
  if (is_reduction(kernel)) {
    const DataType type = parse_data_type(kernel.image.substr(kReduceImage.size())).value();
    if (kernel.name == "scale") return run_scale(*static_cast<const kernels::CudaScale*>(parameters), type);
    return run_reduce(*static_cast<const kernels::CudaReduce*>(parameters), type, kernel.name);
  }
  if (kernel.name == "copy_rows") return run_copy(*static_cast<const kernels::CudaCopy*>(parameters));
  run_copies(*static_cast<const kernels::CudaCopyRuns*>(parameters));
}

}  // namespace trestle::fake
