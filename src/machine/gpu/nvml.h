// NVML: the management library of NVIDIA's driver, as a table that is filled at run time. Internal to src/machine/gpu.
//
// The few functions and types that are needed are declared here, so no header of CUDA's toolkit is. Names of types are
// ours; layouts and numbers are those of the library's interface, which keeps them for a name with its version (_v2).
// NVML opens no GPU and makes no context.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace trestle {

using NvmlDevice = struct NvmlDeviceBehind*;  // the library's
using NvmlAnswer = int;

inline constexpr NvmlAnswer kNvmlSuccess = 0;
inline constexpr NvmlAnswer kNvmlInvalidArgument = 2;  // such as a link that the GPU does not have
inline constexpr NvmlAnswer kNvmlNotSupported = 3;
inline constexpr NvmlAnswer kNvmlUnknown = 999;

struct NvmlPci {
  std::array<char, 16> short_text;
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_and_vendor;
  unsigned subsystem;
  std::array<char, 32> text;
};
static_assert(sizeof(NvmlPci) == 68);

struct NvmlMemory {
  unsigned long long total;  // bytes
  unsigned long long free;
  unsigned long long used;
};

// A value that is requested by its number. For values of one link, `scope` is the link.
struct NvmlField {
  unsigned field;
  unsigned scope;
  long long timestamp;
  long long latency_us;
  int type;
  NvmlAnswer answer;
  union {
    unsigned number;
    unsigned long long large_number;
  } value;
};
static_assert(sizeof(NvmlField) == 40);

inline constexpr unsigned kNvmlCommonLinkSpeed = 90;  // 10^6 byte/s, one way, of the links that are up
inline constexpr unsigned kNvmlLinkSpeed = 164;       // 10^6 byte/s, one way, of the link that `scope` names
inline constexpr int kNvmlTypeUnsigned = 1;           // `number` has the value

inline constexpr int kNvmlRemoteGpu = 0;     // at the other end of a link
inline constexpr int kNvmlRemoteSwitch = 2;  // an NVSwitch

inline constexpr int kNvmlPeersByNvlink = 2;  // what is asked of a pair: can they reach each other's memory by NVLink
inline constexpr int kNvmlPeersOk = 0;
inline constexpr int kNvmlPeersUnknown = 6;

// Every function that is called, with its arguments.
#define TRESTLE_NVML_NEEDED(X)                              \
  X(nvmlInit_v2, ())                                        \
  X(nvmlShutdown, ())                                       \
  X(nvmlDeviceGetCount_v2, (unsigned*))                     \
  X(nvmlDeviceGetHandleByIndex_v2, (unsigned, NvmlDevice*)) \
  X(nvmlDeviceGetPciInfo_v3, (NvmlDevice, NvmlPci*))
#define TRESTLE_NVML_OPTIONAL(X)                                           \
  X(nvmlDeviceGetName, (NvmlDevice, char*, unsigned))                      \
  X(nvmlDeviceGetUUID, (NvmlDevice, char*, unsigned))                      \
  X(nvmlDeviceGetMemoryInfo, (NvmlDevice, NvmlMemory*))                    \
  X(nvmlDeviceGetNvLinkState, (NvmlDevice, unsigned, int*))                \
  X(nvmlDeviceGetNvLinkRemoteDeviceType, (NvmlDevice, unsigned, int*))     \
  X(nvmlDeviceGetNvLinkRemotePciInfo_v2, (NvmlDevice, unsigned, NvmlPci*)) \
  X(nvmlDeviceGetFieldValues, (NvmlDevice, int, NvmlField*))               \
  X(nvmlDeviceGetP2PStatus, (NvmlDevice, NvmlDevice, int, int*))

// A member of TRESTLE_NVML_OPTIONAL is null where the library does not have it: drivers of a few years ago lack some.
struct Nvml {
#define TRESTLE_NVML_MEMBER(name, arguments) NvmlAnswer(*name) arguments = nullptr;
  TRESTLE_NVML_NEEDED(TRESTLE_NVML_MEMBER)
  TRESTLE_NVML_OPTIONAL(TRESTLE_NVML_MEMBER)
#undef TRESTLE_NVML_MEMBER
  const char* (*nvmlErrorString)(NvmlAnswer) = nullptr;  // may be null

  // "nvmlInit_v2: Driver Not Loaded".
  std::string failed(NvmlAnswer answer, const char* call) const;
};

// Loads the library, which then stays, and fills in the table. Errors name the library: it is not there, or lacks a
// function that must be.
Result<Nvml> load_nvml(const std::string& library);

}  // namespace trestle
