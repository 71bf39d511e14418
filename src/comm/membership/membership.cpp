#include "comm/membership/membership.h"

#include <utility>

#include "base/log.h"
#include "comm/membership/log_lines.h"
#include "sched/model/cost.h"
#include "topology/calibration_file.h"

namespace trestle {

namespace {

// "0 1 2 3", or "0 1 .. 255" for many ranks.
std::string ranks_text(const std::vector<int32_t>& ranks) {
  constexpr size_t kMostShown = 16;
  std::string text;
  for (size_t i = 0; i < ranks.size(); ++i) {
    if (i == kMostShown && ranks.size() > kMostShown + 1) return text + " .. " + std::to_string(ranks.back());
    text += (i == 0 ? "" : " ") + std::to_string(ranks[i]);
  }
  return text;
}

// "1500 ns per step and 80000 Mb/s"
std::string costs_text(const RailCost& cost) {
  return std::to_string(cost.latency_ns) + " ns per step and " + std::to_string(cost.bandwidth_mbps) + " Mb/s";
}

}  // namespace

Membership::Membership(const Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring& wiring, HostKin kin)
    : rank_(bootstrap.rank()),
      ranks_(bootstrap.nranks()),
      ranks_per_processor_(wiring.ranks_per_processor),
      settings_(settings),
      name_(settings.name.empty() ? to_hex(bootstrap.job()).substr(0, 8) : settings.name),
      job_(bootstrap.job()),
      kin_(std::move(kin)),
      secret_(bootstrap.secret()),
      local_ip_(bootstrap.local_ip()),
      topology_(std::move(wiring.topology)),
      nominal_(std::move(wiring.nominal)),
      names_(wiring.names),
      routing_(*std::move(wiring.routing)),
      peer_paths_(std::move(wiring.peer_paths)),
      device_links_(std::move(wiring.device_links)) {}

Topology Membership::topology_for(MemoryPlace place, bool nominal) const {
  const Topology& host = nominal ? nominal_ : topology_;
  if (place == MemoryPlace::kHost) return host;
  return device_topology(host, nominal ? DeviceLinks() : device_links_);
}

void Membership::set_measured(const Topology& measured) {
  fill_nominal(topology_, measured);
  topology_.reason += "; link speeds as measured";
}

// Rank 0 logs the dimensions and the reason for them. At GRAPH every rank logs its place in them, and the costs that
// selection uses.
void Membership::log_topology(bool has_board) const {
  const bool graph = log_enabled(LogLevel::kInfo, Subsystem::kGraph);
  if (rank_ == 0 && (graph || log_enabled(LogLevel::kInfo, Subsystem::kInit))) log_lines(to_text(topology_));
  if (!graph) return;
  const Topology on_devices = topology_for(MemoryPlace::kDevice, false);
  for (uint8_t d = 0; ranks_ > 1 && d < topology_.dimensions.size(); ++d) {
    std::string assumed = costs_text(rail_cost(topology_, d));
    if (settings_.config.device >= 0) {
      const std::vector<DeviceLink>& links = device_links_.by_dimension;
      const DeviceLink link = d < links.size() ? links[d] : DeviceLink{};
      assumed += ", on device memory " + costs_text(rail_cost(on_devices, d)) + " (" + to_string(link.way) +
                 (link.outbox ? ", through an outbox)" : ")");
    }
    log_message(LogLevel::kInfo, "%s: dimension %d: place %d among ranks %s; selection assumes %s", own_name().c_str(),
                d + 1, topology_.coordinate(rank_, d), ranks_text(topology_.group(rank_, d)).c_str(), assumed.c_str());
  }
  log_message(LogLevel::kInfo, "%s: %s", own_name().c_str(),
              has_board ? "small collectives use a board of memory that all ranks share"
                        : "small collectives use no board of memory and run as all others");
}

}  // namespace trestle
