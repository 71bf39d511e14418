// The host side of NCCL's device API: what kernels need that communicate themselves. Trestle has no
// such kernels. Queries tell the truth about that; everything else is refused.
#include <algorithm>
#include <cstring>

#include "bindings/nccl/answers.h"
#include "bindings/nccl/cuda_driver.h"
#include "trestle/cuda.h"

namespace trestle::nccl {

namespace {

constexpr const char* kNoKernels =
    "kernels cannot communicate themselves: call the collectives from the host (CommQueryProperties says "
    "deviceApiSupport false)";

Result size_of(trestleComm_t comm, int* rank, int* ranks) {
  const Result asked = answer(trestleCommUserRank(comm, rank));
  return asked != Result::kSuccess ? asked : answer(trestleCommCount(comm, ranks));
}

// All ranks of the communicator; of no ranks if it cannot be used.
Team world_of(trestleComm_t comm) {
  Team team = {0, 0, 0};
  if (size_of(comm, &team.rank, &team.nRanks) != Result::kSuccess) return {0, 0, 0};
  team.stride = 1;
  return team;
}

// Ranks whose memory kernels could reach: this one alone.
Team alone_in(trestleComm_t comm) {
  return world_of(comm).nRanks == 0 ? Team{0, 0, 0} : Team{1, 0, 1};
}

}  // namespace

NCCL_API(Result, CommQueryProperties, (trestleComm_t comm, CommProperties* props)) {
  constexpr size_t kFirstSize = offsetof(CommProperties, rank);
  if (props == nullptr) return refuse(Result::kInvalidArgument, "CommQueryProperties: props is NULL");
  if (props->magic != kMagic || props->size < kFirstSize) {
    return refuse(Result::kInvalidArgument, "CommQueryProperties: start props from NCCL_COMM_PROPERTIES_INITIALIZER");
  }
  CommProperties known = {};
  const Result asked = size_of(comm, &known.rank, &known.nRanks);
  if (asked != Result::kSuccess) return asked;
  known.size = props->size;
  known.magic = props->magic;
  known.version = props->version;
  const Result device = answer(trestleCommDevice(comm, &known.cudaDev));
  if (device != Result::kSuccess) return device;
  known.nvmlDev = kNoDevice;  // NVML counts in another way
  known.nLsaTeams = known.nRanks;
  std::memcpy(props, &known, std::min(props->size, sizeof known));
  return Result::kSuccess;
}

NCCL_API(Team, TeamWorld, (trestleComm_t comm)) {
  return world_of(comm);
}

NCCL_API(Team, TeamLsa, (trestleComm_t comm)) {
  return alone_in(comm);
}

// The ranks that have the same place in their team of TeamLsa: all of them.
NCCL_API(Team, TeamRail, (trestleComm_t comm)) {
  return world_of(comm);
}

NCCL_API(int, TeamRankToWorld, (trestleComm_t comm, Team team, int rank)) {
  return world_of(comm).rank + (rank - team.rank) * team.stride;
}

NCCL_API(int, TeamRankToLsa, (trestleComm_t comm, Team team, int rank)) {
  return alone_in(comm).rank + (rank - team.rank) * team.stride;
}

NCCL_LACKS(DevCommCreate, (trestleComm_t, const void*, void*), kNoKernels)
NCCL_LACKS(DevCommDestroy, (trestleComm_t, const void*), kNoKernels)
NCCL_LACKS(GetLsaMultimemDevicePointer, (void*, size_t, void**), kNoKernels)
NCCL_LACKS(GetMultimemDevicePointer, (void*, size_t, MultimemHandle, void**), kNoKernels)
NCCL_LACKS(GetLsaDevicePointer, (void*, size_t, int, void**), kNoKernels)
NCCL_LACKS(GetPeerDevicePointer, (void*, size_t, int, void**), kNoKernels)
NCCL_LACKS(LsaBarrierCreateRequirement, (Team, int, void*, void*), kNoKernels)
NCCL_LACKS(GinBarrierCreateRequirement, (trestleComm_t, Team, int, void*, void*), kNoKernels)

// Slots of a buffer that no kernel can have.
NCCL_API(int, LLA2ACalcSlots, (int, int)) {
  return 0;
}

NCCL_LACKS(LLA2ACreateRequirement, (int, int, void*, void*), kNoKernels)

}  // namespace trestle::nccl
