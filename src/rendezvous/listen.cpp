// Where a rank listens while the ranks meet, and what it says of itself.
#include <algorithm>

#include "base/host.h"
#include "rendezvous/meeting.h"
#include "rendezvous/rank_info.h"
#include "trestle/trestle.h"

namespace trestle {
namespace {

constexpr const char* kPortNeeds =
    "while ranks meet, TRESTLE_PORT_RANGE needs 1 port at each interface for each rank of this host, and 1 more for a "
    "process that has called trestleGetUniqueId";

}  // namespace

Result<Listener> listen_as_configured(const BootstrapConfig& config) {
  ListenOptions options;
  options.interface_filter = config.interfaces;
  options.family = TRY(parse_family(config.family));
  options.port_low = config.port_range.low;
  options.port_high = config.port_range.high;
  options.port_needs = kPortNeeds;
  return listen_tcp(options);
}

namespace {

// As listen_for_neighbours, at one interface.
Result<Listener> listen_at_one(const BootstrapConfig& config, const SocketAddress& ip) {
  if (!config.interfaces.empty() || ip.length == 0) return listen_as_configured(config);
  SocketAddress address = ip;
  const int low = config.port_range.low;
  const int high = std::max<int>(config.port_range.high, low);
  Error last;
  for (int port = low; port <= high; ++port) {
    address.set_port(static_cast<uint16_t>(port));
    Result<Listener> listener = listen_tcp_at(address);
    if (listener.ok()) return listener;
    last = listener.error();
  }
  if (low == 0) return last;
  return Error{Code::kSystemError, "no free port in TRESTLE_PORT_RANGE " + std::to_string(low) + "-" +
                                       std::to_string(high) + " at " + format_host(ip) + " (" + last.message +
                                       "): " + kPortNeeds};
}

}  // namespace

Result<std::vector<RailListener>> listen_for_neighbours(const BootstrapConfig& config, const SocketAddress& ip) {
  HostRailsRequest request{config.rails, config.interfaces, config.family, config.port_range, ip};
  if (config.interfaces.empty() && ip.length == 0) return listen_on_any_rail(request);
  Result<Listener> first = listen_at_one(config, ip);
  if (first.ok()) {
    request.met_at = first.value().address;
    return listen_on_rails(std::move(first).value(), request);
  }
  if (ip.length == 0 || ip.is_loopback()) return first.error();
  auto others = listen_on_any_rail(request);
  if (!others.ok()) return first.error();
  return others;
}

JoinRequest own_request(const BootstrapConfig& config, const std::vector<RailListener>& listeners) {
  JoinRequest request;
  request.version = TRESTLE_VERSION_CODE;
  request.nranks = config.nranks;
  request.rank = config.rank;
  request.address = meeting_text(listeners);
  request.name = own_rank_name(config.rank);
  request.lineage = process_lineage();
  request.network = network_identity();
  request.only_here = why_only_here(listeners, {config.rails, config.interfaces, config.family, {}, {}});
  return request;
}

}  // namespace trestle
