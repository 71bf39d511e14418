#include "rendezvous/host_rails.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "transport/rails/inventory.h"

namespace trestle {
namespace {

std::string interface_at(const std::vector<HostInterface>& interfaces, const std::string& ip) {
  for (const HostInterface& one : interfaces) {
    const auto here = [&ip](const InterfaceAddress& at) { return is_at(at.address, ip); };
    if (!one.loopback && std::any_of(one.addresses.begin(), one.addresses.end(), here)) return one.name;
  }
  return "";
}

// Whether nothing can leave over the listener's interface.
bool is_down(const Listener& listener, const std::vector<LocalRail>& rails) {
  return std::none_of(rails.begin(), rails.end(),
                      [&](const LocalRail& rail) { return is_at(rail.address, format_host(listener.address)); });
}

}  // namespace

bool is_at(const SocketAddress& address, const std::string& ip) {
  return format_host(address) == ip;
}

Result<std::vector<LocalRail>> host_rails(const HostRailsRequest& request) {
  const std::vector<HostInterface> interfaces = TRY(read_interfaces());
  const std::string met = interface_at(interfaces, request.met_at);
  if (met.empty()) return std::vector<LocalRail>{};
  RailRequest wanted;
  wanted.interfaces = TRY(interfaces_of_all_dimensions(request.rails));
  wanted.filter = request.interfaces;
  wanted.family = TRY(parse_family(request.family));
  const auto is_met = [&met](const NamedInterface& one) { return one.name == met; };
  if (!wanted.interfaces.empty() && std::none_of(wanted.interfaces.begin(), wanted.interfaces.end(), is_met))
    wanted.interfaces.insert(wanted.interfaces.begin(), {met, 0});
  return std::move(TRY(choose_rails(interfaces, wanted)).rails);
}

Result<Listener> listen_at(const LocalRail& rail, const PortRange& ports) {
  ListenOptions at;
  at.interface_filter = "=" + rail.interface;
  at.filter_from = "a rail";
  at.family = rail.address.family();
  at.port_low = ports.low;
  at.port_high = ports.high;
  return listen_tcp(at);
}

std::vector<Listener> listen_on_rails(Listener first, const HostRailsRequest& request) {
  std::vector<Listener> listeners;
  const bool local = first.address.is_loopback();
  listeners.push_back(std::move(first));
  if (local) return listeners;
  const auto rails = host_rails(request);
  if (!rails.ok()) {
    LOG(kInfo, kBootstrap, "ranks meet over one interface: %s", rails.error().message.c_str());
    return listeners;
  }
  for (const LocalRail& rail : rails.value()) {
    if (is_at(rail.address, format_host(listeners.front().address))) continue;
    Result<Listener> more = listen_at(rail, request.ports);
    if (more.ok()) {
      listeners.push_back(std::move(more).value());
    } else {
      LOG(kInfo, kBootstrap, "ranks do not meet over %s: %s", rail.interface.c_str(), more.error().message.c_str());
    }
  }
  if (is_down(listeners.front(), rails.value())) std::rotate(listeners.begin(), listeners.begin() + 1, listeners.end());
  return listeners;
}

std::string meeting_text(const std::vector<Listener>& listeners) {
  std::string text;
  for (const Listener& listener : listeners) {
    const std::string next = (text.empty() ? "" : ",") + format_address(listener.address);
    if (text.size() + next.size() > kMostMeetingText) break;
    text += next;
  }
  return text;
}

Result<std::vector<SocketAddress>> parse_meeting_text(std::string_view text) {
  std::vector<SocketAddress> addresses;
  while (true) {
    const size_t comma = text.find(',');
    addresses.push_back(TRY(parse_address(text.substr(0, comma))));
    if (comma == std::string_view::npos) return addresses;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace trestle
