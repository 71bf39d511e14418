// images.h in builds without CUDA.
#include "kernels/cuda/images.h"

namespace trestle::kernels {

std::span<const CudaImage> cuda_images() {
  return {};
}

}  // namespace trestle::kernels
