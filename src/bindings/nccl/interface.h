// What the C interface of NCCL 2.28 to 2.30 fixes in numbers and layouts: result codes, and the structs that callers
// fill in.
//
// These are own declarations of the interface's facts. Members have NCCL's names, so that a test can compare them with
// a header of NCCL's. Types that are equal in both libraries are Trestle's here: ncclComm_t is trestleComm_t,
// ncclUniqueId is trestleUniqueId, and types and operators have the same numbers. Constants; any thread.
#pragma once

#include <climits>
#include <cstddef>
#include <cstdint>

#include "trestle/trestle.h"

namespace trestle::nccl {

// The interface that this library has, as ncclGetVersion says it: 2.30.7.
inline constexpr int kVersion = 23007;

// ncclResult_t.
enum class Result : int {
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
  kTimeout = 8,  // since 2.30
  kNumResults = 9
};

inline constexpr int kUndefinedInt = INT_MIN;
inline constexpr uint32_t kMagic = 0xcafebeef;

// ncclConfig_t of 2.30. Append-only: `size` says how much of it the caller has.
struct Config {
  size_t size = 0;
  uint32_t magic = 0;
  uint32_t version = 0;
  int blocking = kUndefinedInt;
  int cgaClusterSize = kUndefinedInt;
  int minCTAs = kUndefinedInt;
  int maxCTAs = kUndefinedInt;
  const char* netName = nullptr;
  int splitShare = kUndefinedInt;
  int trafficClass = kUndefinedInt;
  const char* commName = nullptr;
  int collnetEnable = kUndefinedInt;
  int CTAPolicy = kUndefinedInt;
  int shrinkShare = kUndefinedInt;
  int nvlsCTAs = kUndefinedInt;
  int nChannelsPerNetPeer = kUndefinedInt;
  int nvlinkCentricSched = kUndefinedInt;
  int graphUsageMode = kUndefinedInt;
  int numRmaCtx = kUndefinedInt;
  int maxP2pPeers = kUndefinedInt;
  int graphStreamOrdering = kUndefinedInt;
};
static_assert(sizeof(Config) == 96);

inline constexpr uint32_t kSimInfoMagic = 0x74685283;

// ncclSimInfo_t.
struct SimInfo {
  size_t size;
  uint32_t magic;
  uint32_t version;
  float estimatedTime;  // microseconds
};

// ncclCommProperties_t of 2.30. Append-only.
struct CommProperties {
  size_t size;
  uint32_t magic;
  uint32_t version;
  int rank;
  int nRanks;
  int cudaDev;
  int nvmlDev;
  bool deviceApiSupport;
  bool multimemSupport;
  int ginType;
  int nLsaTeams;
  bool hostRmaSupport;
  int railedGinType;
};

// ncclTeam_t: ranks at equal distances in the communicator.
struct Team {
  int nRanks;
  int rank;
  int stride;
};

// ncclMultimemHandle_t.
struct MultimemHandle {
  void* mcBasePtr;
};

static_assert(sizeof(trestleUniqueId) == 128);
static_assert(sizeof(trestleDataType_t) == sizeof(int) && sizeof(trestleRedOp_t) == sizeof(int));

}  // namespace trestle::nccl

// Begins the definition of ncclNAME and of its twin pncclNAME, which tools call that put their own ncclNAME in front.
// As in NCCL the twin is the function itself, and ncclNAME is a weak alias of it.
#define NCCL_API(type, name, parameters)                                                                    \
  extern "C" __attribute__((visibility("default"))) type pnccl##name parameters;                            \
  extern "C" __attribute__((visibility("default"), weak, alias("pnccl" #name))) type nccl##name parameters; \
  extern "C" type pnccl##name parameters
