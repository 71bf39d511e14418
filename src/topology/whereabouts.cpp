#include "topology/whereabouts.h"

#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace trestle {

Reach Whereabouts::apart(int32_t a, int32_t b) const {
  if (process[static_cast<size_t>(a)] == process[static_cast<size_t>(b)]) return Reach::kProcess;
  return memory[static_cast<size_t>(a)] == memory[static_cast<size_t>(b)] ? Reach::kHost : Reach::kAnywhere;
}

Whereabouts whereabouts(const std::vector<RankPlace>& places) {
  std::unordered_map<std::string_view, int32_t> hosts;
  std::map<std::pair<int32_t, uint64_t>, int32_t> processes;  // by host and process_id
  Whereabouts result;
  for (const RankPlace& place : places) {
    const int32_t host = hosts.try_emplace(place.host_id, static_cast<int32_t>(hosts.size())).first->second;
    result.host.push_back(host);
    const auto process = processes.try_emplace({host, place.process_id}, static_cast<int32_t>(processes.size()));
    result.process.push_back(process.first->second);
  }
  result.hosts = static_cast<int32_t>(hosts.size());
  result.processes = static_cast<int32_t>(processes.size());
  result.memory = result.host;
  std::set<int32_t> refused;  // hosts
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (!places[rank].no_shared_memory.empty()) refused.insert(result.host[rank]);
  }
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (refused.contains(result.host[rank])) result.memory[rank] = result.hosts + result.process[rank];
  }
  return result;
}

Level level_of(const Topology& topology, size_t d) {
  Level level;
  for (size_t i = 0; i <= d; ++i) level = {level.span, level.span * topology.dimensions[i].size};
  return level;
}

bool all_apart(const Level& level, const Whereabouts& at) {
  std::vector<int32_t> last_block(static_cast<size_t>(at.hosts + at.processes), -1);
  for (size_t rank = 0; rank < at.memory.size(); ++rank) {
    const auto block = static_cast<int32_t>(rank) / level.stride;
    int32_t& seen = last_block[static_cast<size_t>(at.memory[rank])];
    const int32_t per_span = level.span / level.stride;
    if (seen >= 0 && seen != block && seen / per_span == block / per_span) return false;
    seen = block;
  }
  return true;
}

}  // namespace trestle
