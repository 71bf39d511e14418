// The compiled kernels of kernels/cuda, which are part of the library: one image for each element type
// ("reduce_float"), one for copies and conversions ("move"), and one that occupies a stream ("hold", for measurements
// only). Any thread; the bytes stay for ever.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace trestle::kernels {

struct CudaImage {
  std::string_view name;
  const std::byte* bytes;  // a fatbin, which knows its own length
};

// None in builds without CUDA.
std::span<const CudaImage> cuda_images();

}  // namespace trestle::kernels
