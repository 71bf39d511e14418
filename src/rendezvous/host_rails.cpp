#include "rendezvous/host_rails.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transport/rails/inventory.h"

namespace trestle {
namespace {

// nullptr: none, or loopback.
const HostInterface* interface_at(const std::vector<HostInterface>& interfaces, const HostAddress& ip) {
  for (const HostInterface& one : interfaces) {
    const auto here = [&ip](const InterfaceAddress& at) { return ip == at.address; };
    if (!one.loopback && std::any_of(one.addresses.begin(), one.addresses.end(), here)) return &one;
  }
  return nullptr;
}

// met: the interface of met_at, or nullptr.
Result<std::vector<LocalRail>> choose(const std::vector<HostInterface>& interfaces, const HostInterface* met,
                                      const HostAddress& met_at, const HostRailsRequest& request) {
  RailRequest wanted;
  wanted.met_at = met_at;
  wanted.interfaces = TRY(interfaces_of_all_dimensions(request.rails));
  wanted.filter = request.interfaces;
  wanted.family = TRY(parse_family(request.family));
  const auto is_met = [met](const NamedInterface& one) { return one.name == met->name; };
  if (met != nullptr && !wanted.interfaces.empty() &&
      std::none_of(wanted.interfaces.begin(), wanted.interfaces.end(), is_met))
    wanted.interfaces.insert(wanted.interfaces.begin(), {met->name, 0});
  return std::move(TRY(choose_rails(interfaces, wanted)).rails);
}

// is_rail: connections of the mesh may move there.
void listen_too(std::vector<RailListener>& listeners, const LocalRail& rail, const PortRange& ports, bool is_rail) {
  Result<Listener> more = listen_at(rail, ports);
  if (more.ok()) {
    listeners.push_back({std::move(more).value()});
    if (!is_rail) return;
    listeners.back().interface = rail.interface;
    listeners.back().fabric = rail.fabric;
  } else {
    LOG(kInfo, kBootstrap, "ranks do not meet over %s: %s", rail.interface.c_str(), more.error().message.c_str());
  }
}

}  // namespace

Result<std::vector<LocalRail>> host_rails(const std::vector<HostInterface>& interfaces,
                                          const HostRailsRequest& request) {
  const HostInterface* const met = interface_at(interfaces, request.met_at);
  if (met == nullptr) return std::vector<LocalRail>{};
  return choose(interfaces, met, request.met_at, request);
}

Result<Listener> listen_at(const LocalRail& rail, const PortRange& ports) {
  ListenOptions at;
  at.interface_filter = "=" + rail.interface;
  at.filter_from = "a rail";
  at.family = rail.address.family();
  at.address = rail.address;
  at.port_low = ports.low;
  at.port_high = ports.high;
  return listen_tcp(at);
}

std::vector<RailListener> listen_on_rails(Listener first, HostRailsRequest request) {
  std::vector<RailListener> listeners;
  const HostAddress ip = first.address;
  request.met_at = ip;
  listeners.push_back({std::move(first)});
  const auto interfaces = read_interfaces();
  const HostInterface* const met = interfaces.ok() ? interface_at(interfaces.value(), ip) : nullptr;
  if (met == nullptr) return listeners;
  const auto rails = host_rails(interfaces.value(), request);
  if (!rails.ok()) {
    LOG(kInfo, kBootstrap, "ranks meet over one interface: %s", rails.error().message.c_str());
    return listeners;
  }
  // Ranks may meet over an interface that is no rail, such as a tunnel between sites. Then rails of one name may lead
  // to other hosts on each site. So connections do not move to them.
  const bool is_down = !met->up || !met->running;
  const bool leads_there = is_down || has_rail_at(rails.value(), ip);
  for (const LocalRail& rail : rails.value()) {
    if (rail.interface != met->name) {
      listen_too(listeners, rail, request.ports, leads_there);
    } else if (ip == rail.address) {  // not another address of the interface
      listeners.front().interface = rail.interface;
      listeners.front().fabric = rail.fabric;
    }
  }
  if (is_down) std::rotate(listeners.begin(), listeners.begin() + 1, listeners.end());
  return listeners;
}

std::vector<RailListener> listen_elsewhere(const HostRailsRequest& request) {
  std::vector<RailListener> listeners;
  const auto interfaces = read_interfaces();
  if (!interfaces.ok() || interface_at(interfaces.value(), request.met_at) != nullptr) return listeners;
  const auto rails = choose(interfaces.value(), nullptr, request.met_at, request);
  if (!rails.ok()) return listeners;
  for (const LocalRail& rail : rails.value()) listen_too(listeners, rail, request.ports, true);
  return listeners;
}

std::string meeting_text(const std::vector<RailListener>& listeners) {
  std::string text;
  size_t rails = 0;
  for (const RailListener& one : listeners) {
    std::string next = (text.empty() ? "" : ",") + format_address(one.listener.address);
    if (one.fabric.is_known() && ++rails <= kMostRails) {
      next += "/" + std::to_string(one.fabric.prefix);
      if (one.fabric.place > 1) next += "#" + std::to_string(one.fabric.place);
    }
    if (text.size() + next.size() > kMostMeetingText) break;
    text += next;
  }
  return text;
}

Result<MeetingPlaces> parse_meeting_text(std::string_view text) {
  MeetingPlaces places;
  std::string rails;
  while (true) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t network = item.find('/');
    places.addresses.push_back(TRY(parse_address(item.substr(0, network))));
    if (network != std::string_view::npos) rails += (rails.empty() ? "" : ",") + std::string(item);
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (!rails.empty()) places.rails = TRY(parse_published(rails));
  return places;
}

}  // namespace trestle
