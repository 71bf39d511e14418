#include "bindings/nccl/config.h"

#include <strings.h>

#include <algorithm>
#include <cstring>

#include "bindings/nccl/answers.h"

namespace trestle::nccl {

namespace {

// The first version of the struct, in 2.14, without padding.
constexpr size_t kFirstSize = offsetof(Config, blocking) + sizeof(int);
constexpr size_t kMostSize = size_t{1} << 16;

// A field counts from the version that introduced it. The size alone does not tell, because a new field may lie where
// an older struct had padding.
struct UnusedField {
  const char* name;
  int Config::*member;
  uint32_t since;
};
constexpr UnusedField kUnusedFields[] = {
    {"cgaClusterSize", &Config::cgaClusterSize, 21700},
    {"minCTAs", &Config::minCTAs, 21700},
    {"maxCTAs", &Config::maxCTAs, 21700},
    {"splitShare", &Config::splitShare, 21800},
    {"trafficClass", &Config::trafficClass, 22600},
    {"collnetEnable", &Config::collnetEnable, 22700},
    {"CTAPolicy", &Config::CTAPolicy, 22700},
    {"shrinkShare", &Config::shrinkShare, 22700},
    {"nvlsCTAs", &Config::nvlsCTAs, 22700},
    {"nChannelsPerNetPeer", &Config::nChannelsPerNetPeer, 22800},
    {"nvlinkCentricSched", &Config::nvlinkCentricSched, 22800},
    {"graphUsageMode", &Config::graphUsageMode, 22900},
    {"numRmaCtx", &Config::numRmaCtx, 22900},
    {"maxP2pPeers", &Config::maxP2pPeers, 23000},
    {"graphStreamOrdering", &Config::graphStreamOrdering, 23000},
};

void remark_unused(const char* function, const Config& config) {
  char names[kSentenceBytes] = "";
  for (const UnusedField& field : kUnusedFields) {
    if (config.version < field.since || config.*field.member == kUndefinedInt) continue;
    if (names[0] != '\0') std::strcat(names, ", ");
    std::strcat(names, field.name);  // all names together are shorter than the array
  }
  if (names[0] != '\0') remark("%s: these fields of the configuration have no effect: %s", function, names);
}

Result check_network(const char* function, const Config& config) {
  if (config.version < 21700 || config.netName == nullptr || config.netName[0] == '\0') return Result::kSuccess;
  if (strcasecmp(config.netName, "Socket") == 0) return Result::kSuccess;
  return refuse(Result::kInvalidUsage,
                "%s: netName is '%s': Trestle has Socket only. Leave netName undefined, and set "
                "TRESTLE_TRANSPORT or TRESTLE_RAILS to choose links",
                function, config.netName);
}

}  // namespace

Result read_config(const char* function, const Config* from, trestleConfig_t* to) {
  if (from->size < kFirstSize || from->size > kMostSize || from->magic != kMagic) {
    return refuse(Result::kInvalidArgument,
                  "%s: size or magic of the configuration is wrong: start from "
                  "NCCL_CONFIG_INITIALIZER",
                  function);
  }
  Config config;
  std::memcpy(&config, from, std::min(from->size, sizeof config));
  if (config.blocking != kUndefinedInt && config.blocking != 0 && config.blocking != 1) {
    return refuse(Result::kInvalidArgument, "%s: blocking is %d: 0 or 1", function, config.blocking);
  }
  const Result network = check_network(function, config);
  if (network != Result::kSuccess) return network;
  if (config.blocking != kUndefinedInt) to->blocking = config.blocking;
  if (config.version >= 22700) to->commName = config.commName;
  remark_unused(function, config);
  return Result::kSuccess;
}

}  // namespace trestle::nccl
