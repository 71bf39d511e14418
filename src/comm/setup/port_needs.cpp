#include "comm/setup/port_needs.h"

#include <algorithm>
#include <map>

namespace trestle {
namespace {

std::string counted(int32_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace

std::string port_needs_text(const PortNeeds& needs) {
  const int32_t has = needs.range.high - needs.range.low + 1;
  return "TRESTLE_PORT_RANGE has " + counted(has, "port") + ", and this communicator needs " +
         std::to_string(needs.ports()) + " at each interface of this host: " + std::to_string(needs.data) +
         " for data" + (needs.mesh ? " and 1 for the control mesh" : "") + " of each rank, and " +
         counted(needs.ranks, "rank") + (needs.ranks == 1 ? " is" : " are") +
         " here; each further communicator needs as many, and a process that has called trestleGetUniqueId 1 more";
}

int32_t most_at_one_interface(const std::vector<std::vector<NamedInterface>>& transports) {
  std::map<std::string, int32_t> at;
  int32_t most = 0;
  for (const std::vector<NamedInterface>& interfaces : transports) {
    for (const NamedInterface& one : interfaces) most = std::max(most, ++at[one.name]);
  }
  return most;
}

}  // namespace trestle
