// Reads the config struct of the C API, as far as the caller's header defines it.
#include "api/config.h"

#include <cstddef>
#include <utility>

#include "api/errors.h"
#include "api/versioned.h"

namespace trestle {
namespace {

struct TextField {
  const char* const trestleConfig_t::*member;
  const char* variable;
};
constexpr TextField kTexts[] = {
    {&trestleConfig_t::hostId, "TRESTLE_HOSTID"},
    {&trestleConfig_t::intra, "TRESTLE_INTRA"},
    {&trestleConfig_t::calibrate, "TRESTLE_CALIBRATE"},
    {&trestleConfig_t::calibrationDir, "TRESTLE_CALIBRATION_DIR"},
    {&trestleConfig_t::secret, "TRESTLE_SECRET"},
    {&trestleConfig_t::job, "TRESTLE_JOB"},
    {&trestleConfig_t::commId, "TRESTLE_COMM_ID"},
    {&trestleConfig_t::store, "TRESTLE_STORE"},
    {&trestleConfig_t::socketIfname, "TRESTLE_SOCKET_IFNAME"},
    {&trestleConfig_t::socketFamily, "TRESTLE_SOCKET_FAMILY"},
    {&trestleConfig_t::hostPath, "TRESTLE_HOST_PATH"},
    {&trestleConfig_t::deviceExpressProcesses, "TRESTLE_DEVICE_EXPRESS_PROCESSES"},
    {&trestleConfig_t::portRange, "TRESTLE_PORT_RANGE"},
    {&trestleConfig_t::congestion, "TRESTLE_CONGESTION"},
    {&trestleConfig_t::rails, "TRESTLE_RAILS"},
};

struct SizeField {
  const int64_t trestleConfig_t::*member;
  const char* variable;
  const char* unit;  // appended to the number, in the variable's syntax
};
constexpr SizeField kSizes[] = {
    {&trestleConfig_t::heartbeatMs, "TRESTLE_HEARTBEAT", "ms"},
    {&trestleConfig_t::segmentBytes, "TRESTLE_SEGMENT", ""},
    {&trestleConfig_t::expressBytes, "TRESTLE_EXPRESS_BYTES", ""},
    {&trestleConfig_t::deviceExpressBytes, "TRESTLE_DEVICE_EXPRESS_BYTES", ""},
    {&trestleConfig_t::eagerBytes, "TRESTLE_EAGER", ""},
    {&trestleConfig_t::stagingBytes, "TRESTLE_STAGING", ""},
    {&trestleConfig_t::railTimeoutMs, "TRESTLE_RAIL_TIMEOUT", "ms"},
};

struct NumberField {
  const int trestleConfig_t::*member;
  const char* variable;
};
constexpr NumberField kNumbers[] = {
    {&trestleConfig_t::inflight, "TRESTLE_INFLIGHT"}, {&trestleConfig_t::express, "TRESTLE_EXPRESS"},
    {&trestleConfig_t::shmMap, "TRESTLE_SHM_MAP"},    {&trestleConfig_t::checkPlans, "TRESTLE_CHECK_PLANS"},
    {&trestleConfig_t::check, "TRESTLE_CHECK"},       {&trestleConfig_t::spinUs, "TRESTLE_SPIN"},
    {&trestleConfig_t::device, "TRESTLE_DEVICE"},     {&trestleConfig_t::peerAccess, "TRESTLE_PEER_ACCESS"},
};

constexpr std::pair<const char*, const int trestleConfig_t::*> kReserved[] = {
    {"reserved", &trestleConfig_t::reserved}, {"reserved2", &trestleConfig_t::reserved2}};

// The fields that use the syntax of their variables.
std::vector<SettingsOverride::Value> values_of(const trestleConfig_t& config) {
  std::vector<SettingsOverride::Value> values;
  for (const TextField& row : kTexts) {
    if (!covers(config, config.*row.member)) continue;
    const char* text = config.*row.member;
    if (text != nullptr && *text != '\0') values.push_back({row.variable, text});
  }
  for (const SizeField& row : kSizes) {
    if (!covers(config, config.*row.member) || config.*row.member < 0) continue;
    values.push_back({row.variable, std::to_string(config.*row.member) + row.unit});
  }
  for (const NumberField& row : kNumbers) {
    if (!covers(config, config.*row.member) || config.*row.member == TRESTLE_CONFIG_UNDEF_INT) continue;
    const int number = config.*row.member;
    const bool automatic = row.member == &trestleConfig_t::spinUs && number == -1;
    values.push_back({row.variable, automatic ? "auto" : std::to_string(number)});
  }
  return values;
}

}  // namespace

Result<SettingsOverride> read_config(const trestleConfig_t* config) {
  SettingsOverride result;
  if (config == nullptr) return result;
  TRY(check_head("config.", *config, offsetof(trestleConfig_t, blocking), TRESTLE_CONFIG_MAGIC,
                 "TRESTLE_CONFIG_INITIALIZER"));
  if (covers(*config, config->blocking) && config->blocking != TRESTLE_CONFIG_UNDEF_INT) {
    if (config->blocking != 0 && config->blocking != 1)
      return invalid_argument("config.blocking is " + std::to_string(config->blocking) + ": 0 or 1");
    result.blocking = config->blocking;
  }
  if (covers(*config, config->timeoutMs)) result.timeout_ms = config->timeoutMs;
  if (covers(*config, config->commName)) result.name = config->commName;
  if (covers(*config, config->dims)) result.dims = config->dims;
  if (covers(*config, config->transport)) result.transport = config->transport;
  if (covers(*config, config->algo)) result.algorithm = config->algo;
  if (covers(*config, config->sched)) result.schedule = config->sched;
  if (covers(*config, config->chunks) && config->chunks != TRESTLE_CONFIG_UNDEF_INT) {
    if (config->chunks < 0)
      return invalid_argument("config.chunks is " + std::to_string(config->chunks) + ": 0 or more");
    result.chunks = config->chunks;
  }
  for (const auto& [name, member] : kReserved) {
    if (covers(*config, config->*member) && config->*member != 0)
      return invalid_argument(std::string("config.") + name + " is " + std::to_string(config->*member) + ": 0");
  }
  if (covers(*config, config->topoFile)) result.topology_file = config->topoFile;
  result.values = values_of(*config);
  return result;
}

}  // namespace trestle
