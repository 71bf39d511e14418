// Builds without CUDA say that they have none.
#include <gtest/gtest.h>

#include "device/device.h"
#include "kernels/cuda/images.h"

namespace trestle {
namespace {

TEST(DevicesNotBuilt, SayWhy) {
  const auto devices = open_devices();
  ASSERT_FALSE(devices.ok());
  EXPECT_EQ(devices.error().code, Code::kInvalidUsage);
  EXPECT_NE(devices.error().message.find("TRESTLE_CUDA"), std::string::npos);
  EXPECT_TRUE(kernels::cuda_images().empty());
}

}  // namespace
}  // namespace trestle
