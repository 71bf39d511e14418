// The config struct: all fields together, and structs of older and newer headers. config_effects_test.cpp and
// bad_calls_test.cpp test single fields.
#include <gtest/gtest.h>
#include <trestle/compress.h>
#include <trestle/gradient.h>

#include <cstddef>
#include <cstring>

#include "conformance/api_call.h"
#include "support/ranks.h"

namespace api {
namespace config_test {
namespace {

using ranks::succeeded;

// Two ranks add 1 and 1.
void add_ones(const trestleConfig_t& config) {
  trestleComm_t comms[2] = {};
  ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
  float send[2] = {1, 1}, recv[2] = {};
  ASSERT_EQ(trestleGroupStart(), trestleSuccess);
  for (int r = 0; r < 2; ++r) {
    ASSERT_TRUE(succeeded(trestleAllReduce(&send[r], &recv[r], 1, trestleFloat32, trestleSum, comms[r], nullptr)));
  }
  ASSERT_EQ(trestleGroupEnd(), trestleSuccess);
  for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommSynchronize(comm)));
  EXPECT_EQ(recv[0], 2);
  EXPECT_EQ(recv[1], 2);
  for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
}

// Runs in a separate process, because the library reads the environment once and other tests change it before.
void expect_sum(const trestleConfig_t& config) {
  ranks::isolated([&] { add_ones(config); });
}

TEST(ApiConfig, AllFieldsTogetherAreServed) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.hostId = "here";
  config.intra = "fifo";
  config.calibrate = "off";
  config.calibrationDir = "/nonexistent";
  config.secret = "hunter2";
  config.socketIfname = "=lo";
  config.socketFamily = "AF_INET";
  config.congestion = "cubic";
  config.heartbeatMs = 2000;
  config.segmentBytes = 4096;
  config.expressBytes = 0;
  config.deviceExpressBytes = 1024;
  config.eagerBytes = 1024;
  config.stagingBytes = 1 << 20;
  config.inflight = 2;
  config.express = 0;
  config.shmMap = 0;
  config.checkPlans = 1;
  config.check = 0;
  config.spinUs = -1;
  config.peerAccess = 0;
  config.hostPath = "on";
  config.deviceExpressProcesses = "off";
  config.job = "a job";
  expect_sum(config);
}

TEST(ApiConfig, EmptyTextsAreUndefined) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.intra = config.calibrate = config.socketFamily = config.hostPath = "";
  config.portRange = config.deviceExpressProcesses = config.job = "";
  expect_sum(config);
}

// A caller whose header ended at any of these fields. The library must not read beyond it.
TEST(ApiConfig, OldSizesStillWork) {
  for (const size_t size :
       {offsetof(trestleConfig_t, blocking), offsetof(trestleConfig_t, dims), offsetof(trestleConfig_t, hostId),
        offsetof(trestleConfig_t, heartbeatMs), offsetof(trestleConfig_t, inflight), offsetof(trestleConfig_t, spinUs),
        offsetof(trestleConfig_t, device), offsetof(trestleConfig_t, reserved), offsetof(trestleConfig_t, peerAccess),
        offsetof(trestleConfig_t, reserved2), offsetof(trestleConfig_t, deviceExpressBytes),
        offsetof(trestleConfig_t, hostPath), offsetof(trestleConfig_t, deviceExpressProcesses),
        offsetof(trestleConfig_t, job)}) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    std::memset(reinterpret_cast<char*>(&config) + size, 0x5a, sizeof config - size);
    config.size = size;
    expect_sum(config);
  }
}

// A field in padding would have any value in a program whose header ends there, and `size` would not tell.
template <class Struct, class Last>
constexpr bool ends_with(size_t offset, Last Struct::*) {
  return offset + sizeof(Last) == sizeof(Struct);
}
static_assert(ends_with(offsetof(trestleConfig_t, job), &trestleConfig_t::job));
static_assert(ends_with(offsetof(trestleCallConfig_t, reserved), &trestleCallConfig_t::reserved));
static_assert(ends_with(offsetof(trestleGradConfig_t, updateMerged), &trestleGradConfig_t::updateMerged));
static_assert(ends_with(offsetof(trestleGradLoss_t, reserved), &trestleGradLoss_t::reserved));
static_assert(ends_with(offsetof(trestleGradStats_t, compressNs), &trestleGradStats_t::compressNs));
static_assert(ends_with(offsetof(trestleTopKConfig_t, compressWeight), &trestleTopKConfig_t::compressWeight));

TEST(ApiConfig, ReservedFieldsAreZero) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.reserved = 1;
  trestleUniqueId id;
  ASSERT_EQ(trestleGetUniqueId(&id), trestleSuccess);
  trestleComm_t comm = nullptr;
  EXPECT_TRUE(ranks::refused(trestleCommInitRankConfig(&comm, 1, id, 0, &config), trestleInvalidArgument,
                             {"config.reserved is 1: 0"}));
  config.reserved = 0;
  config.reserved2 = -7;
  EXPECT_TRUE(ranks::refused(trestleCommInitRankConfig(&comm, 1, id, 0, &config), trestleInvalidArgument,
                             {"config.reserved2 is -7: 0"}));
  trestleCallConfig_t call = TRESTLE_CALL_CONFIG_INITIALIZER;
  call.reserved = -1;
  EXPECT_TRUE(
      ranks::refused(trestleCallConfigPush(&call), trestleInvalidArgument, {"CallConfigPush: reserved is -1: 0"}));
  call.size = offsetof(trestleCallConfig_t, reserved);  // an older program's padding is not read
  EXPECT_EQ(trestleCallConfigPush(&call), trestleSuccess);
  EXPECT_EQ(trestleCallConfigPop(), trestleSuccess);
}

// A caller whose header has more fields than the library. The library ignores the unknown fields.
TEST(ApiConfig, LargerSizesWork) {
  struct {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    int64_t more = 7;
  } larger;
  larger.config.size = sizeof larger;
  expect_sum(larger.config);
}

}  // namespace
}  // namespace config_test
}  // namespace api
