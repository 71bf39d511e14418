// The field of trestleConfig_t for each variable that has one; the other variables are process-wide. Internal to base
// (config_print.cpp) and tests; constant.
#pragma once

#include <array>
#include <string_view>

namespace trestle {

struct ConfigField {
  std::string_view variable;
  std::string_view field;
};

inline constexpr std::array kConfigFields = std::to_array<ConfigField>({
    {"TRESTLE_TIMEOUT", "timeoutMs"},
    {"TRESTLE_DIMS", "dims"},
    {"TRESTLE_TRANSPORT", "transport"},
    {"TRESTLE_ALGO", "algo"},
    {"TRESTLE_SCHED", "sched"},
    {"TRESTLE_CHUNKS", "chunks"},
    {"TRESTLE_TOPO_FILE", "topoFile"},
    {"TRESTLE_HOSTID", "hostId"},
    {"TRESTLE_INTRA", "intra"},
    {"TRESTLE_CALIBRATE", "calibrate"},
    {"TRESTLE_CALIBRATION_DIR", "calibrationDir"},
    {"TRESTLE_SECRET", "secret"},
    {"TRESTLE_JOB", "job"},
    {"TRESTLE_COMM_ID", "commId"},
    {"TRESTLE_STORE", "store"},
    {"TRESTLE_SOCKET_IFNAME", "socketIfname"},
    {"TRESTLE_SOCKET_FAMILY", "socketFamily"},
    {"TRESTLE_PORT_RANGE", "portRange"},
    {"TRESTLE_CONGESTION", "congestion"},
    {"TRESTLE_HEARTBEAT", "heartbeatMs"},
    {"TRESTLE_SEGMENT", "segmentBytes"},
    {"TRESTLE_EXPRESS_BYTES", "expressBytes"},
    {"TRESTLE_DEVICE_EXPRESS_BYTES", "deviceExpressBytes"},
    {"TRESTLE_EAGER", "eagerBytes"},
    {"TRESTLE_STAGING", "stagingBytes"},
    {"TRESTLE_INFLIGHT", "inflight"},
    {"TRESTLE_EXPRESS", "express"},
    {"TRESTLE_SHM_MAP", "shmMap"},
    {"TRESTLE_CHECK_PLANS", "checkPlans"},
    {"TRESTLE_CHECK", "check"},
    {"TRESTLE_SPIN", "spinUs"},
    {"TRESTLE_RAILS", "rails"},
    {"TRESTLE_RAIL_TIMEOUT", "railTimeoutMs"},
    {"TRESTLE_DEVICE", "device"},
    {"TRESTLE_PEER_ACCESS", "peerAccess"},
    {"TRESTLE_HOST_PATH", "hostPath"},
    {"TRESTLE_DEVICE_EXPRESS_PROCESSES", "deviceExpressProcesses"},
});

// "": the variable is the process's, not a communicator's.
constexpr std::string_view field_of(std::string_view variable) {
  for (const ConfigField& row : kConfigFields) {
    if (row.variable == variable) return row.field;
  }
  return {};
}

}  // namespace trestle
