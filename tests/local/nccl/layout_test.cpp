// Compares the declarations of src/bindings/nccl/interface.h with the installed header of NCCL's. All of it is checked
// by the compiler.
#include "bindings/nccl/interface.h"

#include <gtest/gtest.h>
#include <nccl.h>

namespace {

using trestle::nccl::Config;
using trestle::nccl::Result;
using trestle::nccl::SimInfo;

#define SAME_PLACE(member)                                                   \
  static_assert(offsetof(Config, member) == offsetof(ncclConfig_t, member)); \
  static_assert(sizeof(Config::member) == sizeof(ncclConfig_t::member))

SAME_PLACE(size);
SAME_PLACE(magic);
SAME_PLACE(version);
SAME_PLACE(blocking);
SAME_PLACE(cgaClusterSize);
SAME_PLACE(minCTAs);
SAME_PLACE(maxCTAs);
SAME_PLACE(netName);
SAME_PLACE(splitShare);
SAME_PLACE(trafficClass);
SAME_PLACE(commName);
SAME_PLACE(collnetEnable);
SAME_PLACE(CTAPolicy);
SAME_PLACE(shrinkShare);
SAME_PLACE(nvlsCTAs);
SAME_PLACE(nChannelsPerNetPeer);
SAME_PLACE(nvlinkCentricSched);
static_assert(offsetof(SimInfo, estimatedTime) == offsetof(ncclSimInfo_t, estimatedTime));
static_assert(sizeof(trestleUniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(Result) == sizeof(ncclResult_t) && sizeof(trestleRedOp_t) == sizeof(ncclRedOp_t) &&
              sizeof(trestleDataType_t) == sizeof(ncclDataType_t));

static_assert(static_cast<int>(Result::kSuccess) == ncclSuccess &&
              static_cast<int>(Result::kUnhandledCudaError) == ncclUnhandledCudaError &&
              static_cast<int>(Result::kSystemError) == ncclSystemError &&
              static_cast<int>(Result::kInternalError) == ncclInternalError &&
              static_cast<int>(Result::kInvalidArgument) == ncclInvalidArgument &&
              static_cast<int>(Result::kInvalidUsage) == ncclInvalidUsage &&
              static_cast<int>(Result::kRemoteError) == ncclRemoteError &&
              static_cast<int>(Result::kInProgress) == ncclInProgress);
static_assert(static_cast<int>(trestleSum) == ncclSum && static_cast<int>(trestleProd) == ncclProd &&
              static_cast<int>(trestleMax) == ncclMax && static_cast<int>(trestleMin) == ncclMin &&
              static_cast<int>(trestleAvg) == ncclAvg && static_cast<int>(trestleNumOps) == ncclNumOps);
static_assert(static_cast<int>(trestleInt8) == ncclInt8 && static_cast<int>(trestleUint8) == ncclUint8 &&
              static_cast<int>(trestleInt32) == ncclInt32 && static_cast<int>(trestleUint32) == ncclUint32 &&
              static_cast<int>(trestleInt64) == ncclInt64 && static_cast<int>(trestleUint64) == ncclUint64 &&
              static_cast<int>(trestleFloat16) == ncclFloat16 && static_cast<int>(trestleFloat32) == ncclFloat32 &&
              static_cast<int>(trestleFloat64) == ncclFloat64 && static_cast<int>(trestleBfloat16) == ncclBfloat16 &&
              static_cast<int>(trestleFloat8e4m3) == ncclFloat8e4m3 &&
              static_cast<int>(trestleFloat8e5m2) == ncclFloat8e5m2);
static_assert(static_cast<int>(trestleScalarDevice) == ncclScalarDevice &&
              static_cast<int>(trestleScalarHostImmediate) == ncclScalarHostImmediate);

TEST(NcclLayout, IsThatOfTheInstalledHeader) {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const Config ours;
  EXPECT_EQ(theirs.magic, trestle::nccl::kMagic);
  EXPECT_EQ(theirs.blocking, ours.blocking);
  EXPECT_EQ(theirs.nvlinkCentricSched, ours.nvlinkCentricSched);
  const ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
  EXPECT_EQ(info.magic, trestle::nccl::kSimInfoMagic);
}

}  // namespace
