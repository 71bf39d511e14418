// Where a rank listens while the ranks meet, and what it says of itself.
#include <algorithm>

#include "base/host.h"
#include "rendezvous/meeting.h"
#include "rendezvous/rank_info.h"
#include "trestle/trestle.h"

namespace trestle {

Result<std::vector<Listener>> listen_on_each_rail(const BootstrapConfig& config, std::string& left_out) {
  RailRequest request;
  request.filter = config.interfaces;
  request.family = TRY(parse_family(config.family));
  const RailChoice choice = TRY(choose_rails(TRY(read_interfaces()), request));
  for (const LeftOutInterface& one : choice.left_out) left_out += (left_out.empty() ? "" : "; ") + one.text();
  std::vector<Listener> listeners;
  Status last;
  for (const LocalRail& rail : choice.rails) {
    Result<Listener> listener = listen_to_meet({&rail.address, 1}, config.port_range);
    if (listener.ok()) {
      listeners.push_back(std::move(listener).value());
    } else {
      last = listener.error();
      left_out += (left_out.empty() ? "" : "; ") + rail.interface + ": " + listener.error().message;
    }
  }
  if (listeners.empty()) return last.error();
  return listeners;
}

Result<std::vector<RailListener>> listen_for_neighbours(const BootstrapConfig& config, const SocketAddress& ip) {
  HostRailsRequest request{config.rails, config.interfaces, config.family, config.port_range, ip};
  if (config.interfaces.empty() && ip.length == 0) return listen_on_any_rail(request);
  RailRequest wanted;
  wanted.filter = config.interfaces;
  wanted.family = TRY(parse_family(config.family));
  wanted.met_at = ip;
  const std::vector<SocketAddress> known{ip};
  const bool named = !config.interfaces.empty();
  Result<Listener> first =
      listen_to_meet(named ? TRY(listening_addresses(TRY(read_interfaces()), wanted)) : known, config.port_range);
  if (first.ok()) {
    request.met_at = first.value().address;
    return listen_on_rails(std::move(first).value(), request);
  }
  if (ip.length == 0 || ip.is_loopback()) return first.error();
  auto others = listen_on_any_rail(request);
  if (!others.ok()) return first.error();
  return others;
}

std::vector<SocketAddress> nearest_first(std::vector<SocketAddress> addresses) {
  const auto interfaces = read_interfaces();
  if (!interfaces.ok()) return addresses;
  const auto is_near = [&](const SocketAddress& address) {
    for (const HostInterface& interface : interfaces.value()) {
      for (const InterfaceAddress& one : interface.addresses) {
        if (one.address.family() != address.family()) continue;
        if (fabric_of(address, one.prefix) == fabric_of(one.address, one.prefix)) return true;
      }
    }
    return false;
  };
  std::stable_partition(addresses.begin(), addresses.end(), is_near);
  return addresses;
}

Status check_reach(const UniqueId& id, const std::string& what) {
  const uint64_t here = own_network();
  if (id.network == 0 || here == 0 || id.network == here) return {};
  return Error{Code::kInvalidUsage, what + " on another host, which can be reached from itself only, at " +
                                        addresses_text(id) +
                                        ": set TRESTLE_SOCKET_IFNAME there to the interface over which other hosts "
                                        "reach it"};
}

JoinRequest own_request(const BootstrapConfig& config, const std::vector<RailListener>& listeners, bool is_local) {
  JoinRequest request;
  request.version = TRESTLE_VERSION_CODE;
  request.nranks = config.nranks;
  request.rank = config.rank;
  request.address = meeting_text(listeners);
  request.name = own_rank_name(config.rank);
  request.lineage = process_lineage();
  request.network = network_identity();
  const HostAddress met_at = is_local ? HostAddress(listeners.front().listener.address) : HostAddress();
  request.only_here = why_only_here(listeners, {config.rails, config.interfaces, config.family, {}, met_at});
  return request;
}

}  // namespace trestle
