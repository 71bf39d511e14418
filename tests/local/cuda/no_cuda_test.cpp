// A build without CUDA says so wherever a device is asked for.
#include <gtest/gtest.h>
#include <trestle/cuda.h>

#include "support/ranks.h"

namespace no_cuda_test {
namespace {

using ranks::refused;
using ranks::succeeded;

TEST(NoCuda, EveryWayToADeviceSaysSo) {
  ranks::isolated([] {
    trestleStream_t stream;
    EXPECT_TRUE(refused(trestleStreamWrapCuda(&stream, nullptr), trestleInvalidUsage, {"StreamWrapCuda", "no CUDA"}));
    trestleComm_t comm;
    const int devices[] = {0};
    EXPECT_TRUE(refused(trestleCommInitAll(&comm, 1, devices), trestleInvalidUsage, {"device 0", "no CUDA"}));
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.device = 1;
    EXPECT_TRUE(refused(trestleCommInitAllConfig(&comm, 1, &config), trestleInvalidUsage, {"device 1", "no CUDA"}));
    config.device = -1;
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(&comm, 1, &config)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

}  // namespace
}  // namespace no_cuda_test
