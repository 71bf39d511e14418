#include "transport/rails/choice.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

namespace trestle {
namespace {

// What engines of containers and virtual machines call the interfaces that they make.
constexpr std::string_view kContainerNames[] = {"docker", "br-",    "virbr", "cni",   "flannel", "cali", "weave",
                                                "cilium", "podman", "lxcbr", "lxdbr", "vnet",    "kube-"};

bool starts_with_any(std::string_view name) {
  return std::ranges::any_of(kContainerNames, [&](std::string_view start) { return name.starts_with(start); });
}

std::string listed(const std::vector<HostInterface>& interfaces) {
  std::string list;
  for (const HostInterface& interface : interfaces) {
    list += (list.empty() ? "" : ", ") + interface.name;
    if (!interface.addresses.empty()) list += " (" + format_host(interface.addresses.front().address) + ")";
  }
  return list.empty() ? "none" : list;
}

// fc00::/7: a site's own addresses. An interface may have one beside a global one.
bool is_of_a_site(const SocketAddress& address) {
  if (address.family() != AddressFamily::kIpv6) return false;
  return (reinterpret_cast<const sockaddr_in6&>(address.storage).sin6_addr.s6_addr[0] & 0xfe) == 0xfc;
}

bool is_link_local_v4(const SocketAddress& address) {
  return format_host(address).starts_with("169.254.");
}

// Smaller is better. All hosts should choose alike, whichever interface they were reached over.
int place_of(const SocketAddress& address, const HostAddress& met_at) {
  if (met_at == address) return 0;
  if (address.is_loopback() || is_link_local_v4(address)) return 4;
  const bool met_over_v6 = met_at.family() == AddressFamily::kIpv6;
  if ((address.family() == AddressFamily::kIpv6) != met_over_v6) return 3;
  return is_of_a_site(address) == is_of_a_site(met_at.address()) ? 1 : 2;
}

const NamedInterface* named_in(const RailRequest& request, const std::string& name) {
  const auto found = std::ranges::find(request.interfaces, name, &NamedInterface::name);
  return found == request.interfaces.end() ? nullptr : &*found;
}

bool is_of(AddressFamily family, const InterfaceAddress& one) {
  return family == AddressFamily::kAny || family == one.address.family();
}

// By the names, else by the filter.
bool is_allowed(const HostInterface& interface, const InterfaceAddress& one, const RailRequest& request) {
  if (!is_of(request.family, one)) return false;
  return request.interfaces.empty() ? interface_matches(request.filter, interface.name, one.label)
                                    : named_in(request, interface.name) != nullptr;
}

const InterfaceAddress* usable_address(const HostInterface& interface, const RailRequest& request) {
  const InterfaceAddress* best = nullptr;
  for (const InterfaceAddress& one : interface.addresses) {
    if (!is_allowed(interface, one, request) || is_link_local_v6(one.address)) continue;
    const bool better =
        best == nullptr || place_of(one.address, request.met_at) < place_of(best->address, request.met_at);
    if (better) best = &one;
  }
  return best;
}

std::string why_no_address(const HostInterface& interface, AddressFamily family) {
  if (interface.addresses.empty()) return "has no address";
  const auto wanted = [&](const InterfaceAddress& one) { return is_of(family, one); };
  if (std::ranges::any_of(interface.addresses, wanted)) return "has only link-local addresses";
  return family == AddressFamily::kIpv4 ? "has no IPv4 address" : "has no IPv6 address";
}

// Why an interface that the user has not named is no rail; "": no reason. `at`: its address that counts, if it has one.
std::string why_not_by_itself(const HostInterface& interface, const InterfaceAddress* at) {
  const InterfaceFacts& facts = interface.facts;
  if (interface.loopback) return "loopback";
  if (!facts.bridge_of.empty()) return "a port of the bridge " + facts.bridge_of;
  if (facts.bridge && !facts.hardware_port) return "a bridge of containers";
  if (!facts.hardware && !facts.hardware_port && starts_with_any(interface.name))
    return facts.bridge ? "a bridge of containers" : "belongs to containers, by its name";
  if (facts.tunnel) return "a tunnel";
  if (at != nullptr && is_link_local_v4(at->address)) return "has a link-local address";
  return "";
}

class Chooser {
 public:
  Chooser(const std::vector<HostInterface>& interfaces, const RailRequest& request)
      : interfaces_(interfaces), request_(request) {}

  Result<RailChoice> run() {
    TRY(check_names());
    for (const HostInterface& interface : interfaces_) judge(interface, false);
    if (choice_.rails.empty() && request_.interfaces.empty()) take_loopback();
    if (choice_.rails.empty()) return nothing_left();
    if (!request_.interfaces.empty()) sort_as_named();
    number_places();
    return std::move(choice_);
  }

 private:
  const NamedInterface* named(const std::string& name) const { return named_in(request_, name); }
  bool passes_filter(const HostInterface& interface) const {
    const auto passes = [&](const InterfaceAddress& one) {
      return interface_matches(request_.filter, interface.name, one.label);
    };
    return interface.addresses.empty() ? interface_matches(request_.filter, interface.name)
                                       : std::ranges::any_of(interface.addresses, passes);
  }
  bool filter_asks() const {
    return request_.filter.find_first_not_of('=') != std::string::npos && !request_.filter.starts_with('^');
  }

  Status check_names() const {
    for (const NamedInterface& wanted : request_.interfaces) {
      if (std::ranges::find(interfaces_, wanted.name, &HostInterface::name) != interfaces_.end()) continue;
      return Error{Code::kInvalidArgument,
                   request_.named_by + " names '" + wanted.name +
                       "', which is no interface of this host; there are: " + listed(interfaces_)};
    }
    const auto passes = [this](const HostInterface& interface) { return passes_filter(interface); };
    if (!request_.interfaces.empty() || std::ranges::any_of(interfaces_, passes)) return {};
    return Error{Code::kInvalidArgument, "no network interface matches TRESTLE_SOCKET_IFNAME '" + request_.filter +
                                             "'; there are: " + listed(interfaces_)};
  }

  // "": it is a rail.
  std::string why_not(const HostInterface& interface, bool loopback_counts) const {
    bool asked = named(interface.name) != nullptr;
    if (!asked && !request_.interfaces.empty()) return "not in " + request_.named_by;
    if (!asked && !passes_filter(interface)) return "TRESTLE_SOCKET_IFNAME '" + request_.filter + "' leaves it out";
    asked = asked || (interface.loopback ? loopback_counts : filter_asks());
    if (!interface.up) return "down";
    if (!interface.running) return "up, but without a carrier";
    const InterfaceAddress* at = usable_address(interface, request_);
    if (const std::string reason = asked ? "" : why_not_by_itself(interface, at); !reason.empty()) return reason;
    return at == nullptr ? why_no_address(interface, request_.family) : "";
  }

  void judge(const HostInterface& interface, bool loopback_counts) {
    if (std::string reason = why_not(interface, loopback_counts); !reason.empty()) {
      choice_.left_out.push_back({interface.name, std::move(reason)});
      return;
    }
    const InterfaceAddress& at = *usable_address(interface, request_);
    const NamedInterface* said = named(interface.name);
    LocalRail rail{interface.name,           at.address, fabric_of(at.address, at.prefix),
                   interface.facts.rate_bps, false,      interface.facts.numa_node};
    if (said != nullptr && said->rate_bps != 0) {
      rail.rate_bps = said->rate_bps;
      rail.stated = true;
    }
    choice_.rails.push_back(std::move(rail));
  }

  void take_loopback() {
    choice_.left_out.clear();
    for (const HostInterface& interface : interfaces_) judge(interface, true);
  }

  Error nothing_left() const {
    std::string reasons;
    for (const LeftOutInterface& one : choice_.left_out) {
      // If some are named, the others are no news.
      if (!request_.interfaces.empty() && named(one.interface) == nullptr) continue;
      reasons += (reasons.empty() ? "" : "; ") + one.text();
    }
    const std::string which =
        request_.interfaces.empty() ? "interface of this host" : "interface of " + request_.named_by;
    return Error{Code::kSystemError,
                 "no " + which + " can be a rail: " + (reasons.empty() ? "there is none" : reasons)};
  }

  void sort_as_named() {
    std::ranges::stable_sort(choice_.rails, {}, [this](const LocalRail& rail) { return named(rail.interface); });
  }

  // Numbers the rails of one subnet by name, so that all hosts number them alike.
  void number_places() {
    std::vector<LocalRail*> by_name;
    for (LocalRail& rail : choice_.rails) by_name.push_back(&rail);
    std::ranges::sort(by_name, {}, [](const LocalRail* rail) { return std::string_view(rail->interface); });
    for (size_t i = 0; i < by_name.size(); ++i) {
      for (size_t before = i; before-- > 0;) {
        Fabric next = by_name[before]->fabric;
        const int place = next.place + 1;
        next.place = by_name[i]->fabric.place;
        if (next != by_name[i]->fabric) continue;
        by_name[i]->fabric.place = place;
        break;
      }
    }
  }

  const std::vector<HostInterface>& interfaces_;
  const RailRequest& request_;
  RailChoice choice_;
};

}  // namespace

Result<RailChoice> choose_rails(const std::vector<HostInterface>& interfaces, const RailRequest& request) {
  return Chooser(interfaces, request).run();
}

Result<std::vector<SocketAddress>> listening_addresses(const std::vector<HostInterface>& interfaces,
                                                       const RailRequest& request) {
  for (const HostInterface& interface : interfaces) {
    for (const InterfaceAddress& one : interface.addresses) {
      if (interface.up && request.met_at == one.address && is_allowed(interface, one, request))
        return std::vector{one.address};
    }
  }
  std::vector<SocketAddress> addresses;
  for (const LocalRail& rail : TRY(choose_rails(interfaces, request)).rails) addresses.push_back(rail.address);
  return addresses;
}

bool interface_matches(std::string_view filter, std::string_view name, std::string_view label) {
  const bool negated = filter.starts_with('^');
  if (negated) filter.remove_prefix(1);
  const bool whole = filter.starts_with('=');
  if (whole) filter.remove_prefix(1);
  if (filter.empty()) return true;
  bool listed = false;
  while (!filter.empty()) {
    const size_t comma = std::min(filter.find(','), filter.size());
    const std::string_view item = filter.substr(0, comma);
    const std::string_view called = item.find(':') == std::string_view::npos || label.empty() ? name : label;
    if (!item.empty() && (whole ? called == item : called.starts_with(item))) listed = true;
    filter.remove_prefix(std::min(comma + 1, filter.size()));
  }
  return listed != negated;
}

bool has_rail_at(const std::vector<LocalRail>& rails, const HostAddress& address) {
  return std::ranges::any_of(rails, [&](const LocalRail& rail) { return address == rail.address; });
}

int numa_node_of(const std::vector<LocalRail>& rails) {
  std::map<int, uint64_t> rates;
  for (const LocalRail& rail : rails) {
    if (rail.numa_node >= 0) rates[rail.numa_node] += std::max<uint64_t>(1, rail.rate_bps);
  }
  const auto nearest = std::ranges::max_element(rates, {}, [](const auto& node) { return node.second; });
  return nearest == rates.end() ? -1 : nearest->first;
}

}  // namespace trestle
