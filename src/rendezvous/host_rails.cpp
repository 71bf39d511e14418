#include "rendezvous/host_rails.h"

#include <algorithm>
#include <functional>
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
  std::vector<LocalRail> rails = std::move(TRY(choose_rails(interfaces, wanted)).rails);
  const auto leads_out = [](const LocalRail& rail) { return !rail.address.is_loopback(); };
  if (std::ranges::any_of(rails, leads_out)) std::erase_if(rails, std::not_fn(leads_out));
  return rails;
}

// is_rail: connections of the mesh may move there.
Status listen_too(std::vector<RailListener>& listeners, const LocalRail& rail, const PortRange& ports, bool is_rail) {
  Result<Listener> more = listen_to_meet({&rail.address, 1}, ports);
  if (!more.ok()) {
    LOG(kInfo, kBootstrap, "ranks do not meet over %s: %s", rail.interface.c_str(), more.error().message.c_str());
    return more.error();
  }
  listeners.push_back({std::move(more).value()});
  if (!is_rail || rail.address.is_loopback()) return {};
  listeners.back().interface = rail.interface;
  listeners.back().fabric = rail.fabric;
  return {};
}

// Where those that the user has named cannot be used, the ranks meet over others, and the transports say what is wrong.
Result<std::vector<LocalRail>> any_rails(const std::vector<HostInterface>& interfaces,
                                         const HostRailsRequest& request) {
  const auto named = choose(interfaces, nullptr, request.met_at, request);
  if (named.ok() || request.rails.empty()) return named;
  LOG(kInfo, kBootstrap, "ranks do not meet over TRESTLE_RAILS: %s", named.error().message.c_str());
  HostRailsRequest unnamed = request;
  unnamed.rails.clear();
  return choose(interfaces, nullptr, request.met_at, unnamed);
}

}  // namespace

Result<std::vector<LocalRail>> host_rails(const std::vector<HostInterface>& interfaces,
                                          const HostRailsRequest& request) {
  const HostInterface* const met = interface_at(interfaces, request.met_at);
  if (met == nullptr) return std::vector<LocalRail>{};
  return choose(interfaces, met, request.met_at, request);
}

Result<Listener> listen_to_meet(std::span<const SocketAddress> addresses, const PortRange& ports) {
  return listen_tcp(addresses, {ports,
                                "while ranks meet, TRESTLE_PORT_RANGE needs 1 port at each interface for each rank of "
                                "this host, and 1 more for a process that has called trestleGetUniqueId"});
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
      (void)listen_too(listeners, rail, request.ports, leads_there);
    } else if (ip == rail.address) {  // not another address of the interface
      listeners.front().interface = rail.interface;
      listeners.front().fabric = rail.fabric;
    }
  }
  if (is_down) std::rotate(listeners.begin(), listeners.begin() + 1, listeners.end());
  return listeners;
}

Result<std::vector<RailListener>> listen_on_any_rail(const HostRailsRequest& request) {
  const std::vector<HostInterface> interfaces = TRY(read_interfaces());
  Status last = Error{Code::kSystemError, "an interface has the address " + request.met_at.text()};
  std::vector<RailListener> listeners;
  if (interface_at(interfaces, request.met_at) != nullptr) return last.error();
  for (const LocalRail& rail : TRY(any_rails(interfaces, request))) {
    const Status listens = listen_too(listeners, rail, request.ports, true);
    if (!listens.ok()) last = listens;
  }
  if (listeners.empty()) return last.error();
  return listeners;
}

std::string why_only_here(const std::vector<RailListener>& listeners, const HostRailsRequest& request) {
  const auto is_here = [](const RailListener& one) { return one.listener.address.is_loopback(); };
  if (!std::ranges::all_of(listeners, is_here)) return {};
  if (request.met_at.is_known()) return "the ranks meet over loopback";
  RailRequest wanted;
  wanted.filter = request.interfaces;
  const auto interfaces = read_interfaces();
  const auto choice = interfaces.ok() ? choose_rails(interfaces.value(), wanted) : interfaces.error();
  if (!choice.ok()) return choice.error().message;
  if (!choice.value().rails.front().address.is_loopback()) return "the ranks meet over loopback";
  std::string reasons;
  for (const LeftOutInterface& one : choice.value().left_out) reasons += (reasons.empty() ? "" : "; ") + one.text();
  return reasons.empty() ? "it has no interface but loopback" : reasons;
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
