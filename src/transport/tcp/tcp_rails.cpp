// Which tcp rails a rank has, and which of them lead to which peer.
#include <algorithm>
#include <memory>
#include <utility>

#include "transport/rails/choice.h"
#include "transport/rails/pairing.h"
#include "transport/tcp/tcp_rail.h"

namespace trestle {
namespace {

// What a rank knows of its rails when it reads what a peer has published.
struct OwnRails {
  std::vector<PublishedRail> published;
  std::string name;  // "rank 3"
  OncePerKey logged;
};

void log_unpaired(OwnRails& own, const std::vector<PublishedRail>& theirs, const RailPairs& pairs) {
  for (const UnpairedRail& rail : pairs.unpaired) {
    const SocketAddress& address = (rail.is_mine ? own.published : theirs)[rail.place].address;
    const std::string text = format_host(address) + ": " + rail.reason;
    if (own.logged.first(text)) LOG(kInfo, kNet, "tcp: a rail is left out: %s", text.c_str());
  }
}

Result<std::vector<RailPath>> paths_to(OwnRails& own, int32_t rank, const std::string& text) {
  const std::string name = "rank " + std::to_string(rank);
  Result<std::vector<PublishedRail>> read = parse_published(text);
  if (!read.ok()) return Error{read.error().code, name + " " + read.error().message};
  const std::vector<PublishedRail>& theirs = read.value();
  // Between single rails there is nothing to agree on. Within a host all rails lead over the same memory.
  if ((own.published.size() == 1 && theirs.size() == 1) || are_of_one_host(own.published, theirs))
    return std::vector<RailPath>{{0, format_address(theirs[0].address), 0}};
  const RailPairs pairs = TRY(pair_rails({own.name, own.published}, {name, theirs}));
  log_unpaired(own, theirs, pairs);
  std::vector<RailPath> paths;
  for (const RailPair& pair : pairs.pairs)
    paths.push_back({pair.mine, format_address(theirs[pair.theirs].address), static_cast<double>(pair.rate_bps) / 8});
  return paths;
}

Result<std::vector<NamedInterface>> named_rails(const EndpointConfig& config, const TcpTransportOptions& options) {
  const std::string& text = config.interface.empty() ? options.rails : config.interface;
  const std::vector<DimensionRails> said = TRY(parse_rails(text));
  if (said.size() > 1)
    return Error{Code::kInvalidArgument, "'" + text + "' names the rails of " + std::to_string(said.size()) +
                                             " dimensions where those of one are expected"};
  return rails_of_dimension(said, 0).interfaces;
}

struct SingleRail {
  PublishedRail published;
  int numa_node = -1;
};

// What can be said of the interface that a single rail listens at. Loopback is on no fabric.
SingleRail describe(const SocketAddress& address) {
  SingleRail rail;
  rail.published.address = address;
  const Result<std::vector<HostInterface>> interfaces = read_interfaces();
  if (address.is_loopback() || !interfaces.ok()) return rail;
  for (const HostInterface& interface : interfaces.value()) {
    for (const InterfaceAddress& one : interface.addresses) {
      if (HostAddress(one.address) != address) continue;
      rail.published.fabric = fabric_of(address, one.prefix);
      rail.published.rate_bps = interface.facts.rate_bps;
      rail.numa_node = interface.facts.numa_node;
    }
  }
  return rail;
}

// The endpoint of a single rail. `chosen`: the only usable one of several that are named, or none.
EndpointConfig at_single(const EndpointConfig& config, const std::vector<NamedInterface>& named,
                         const std::vector<LocalRail>& chosen) {
  EndpointConfig at = config;
  if (named.size() == 1) at.interface = named[0].name;
  if (!chosen.empty()) at.interface = chosen[0].interface;
  return at;
}

Result<RailSet> single(const EndpointConfig& config, const TcpTransportOptions& options,
                       const std::vector<LocalRail>& chosen, OwnRails& own) {
  const std::vector<NamedInterface> named = TRY(named_rails(config, options));
  const EndpointConfig at = at_single(config, named, chosen);
  std::unique_ptr<TcpRail> rail = TRY(TcpRail::create(at, options));
  const SingleRail found = describe(rail->listens_at());
  own.published.push_back(found.published);
  if (named.size() == 1 && named[0].rate_bps != 0) own.published[0].rate_bps = named[0].rate_bps;
  RailSet set;
  set.numa_node = found.numa_node;
  set.names.push_back(at.interface.empty() ? format_host(rail->listens_at()) : at.interface);
  set.rails.push_back(std::move(rail));
  return set;
}

Result<RailSet> several(const EndpointConfig& config, const TcpTransportOptions& options,
                        const std::vector<LocalRail>& rails, OwnRails& own) {
  RailSet set;
  set.numa_node = numa_node_of(rails);
  for (const LocalRail& local : rails) {
    EndpointConfig at = config;
    at.interface = local.interface;
    TcpTransportOptions its = options;
    its.socket_family = local.address.family() == AddressFamily::kIpv6 ? "AF_INET6" : "AF_INET";
    its.local_ip = local.address;
    std::unique_ptr<TcpRail> rail = TRY(TcpRail::create(at, its, local.interface));
    own.published.push_back({rail->listens_at(), local.fabric, local.rate_bps});
    LOG(kInfo, kNet, "tcp: rail %s at %s on %s", local.interface.c_str(), format_address(rail->listens_at()).c_str(),
        local.fabric.text().c_str());
    set.names.push_back(local.interface);
    set.rails.push_back(std::move(rail));
  }
  return set;
}

// What is known of the interface that a single rail would listen at.
Result<NamedInterface> single_interface(const EndpointConfig& config, const TcpTransportOptions& options) {
  const std::vector<NamedInterface> named = TRY(named_rails(config, options));
  const ListenOptions at = TRY(listen_options(at_single(config, named, {}), options));
  NamedInterface found;
  found.name = TRY(choose_interfaces(at.interface_filter, at.family)).front().name;
  if (named.size() == 1) found.rate_bps = named[0].rate_bps;
  if (found.rate_bps != 0) return found;
  for (const HostInterface& interface : TRY(read_interfaces())) {
    if (interface.name == found.name) found.rate_bps = interface.facts.rate_bps;
  }
  return found;
}

}  // namespace

// Without names several are used only if the ranks have met over one of them: what they met over is known to reach
// them.
Result<RailChoice> choose_tcp_rails(const std::vector<HostInterface>& interfaces, const EndpointConfig& config,
                                    const TcpTransportOptions& options) {
  RailRequest request;
  request.interfaces = TRY(named_rails(config, options));
  if (!config.interface.empty()) request.named_by = "the topology's interface";
  const bool named = !request.interfaces.empty();
  if (named && request.interfaces.size() == 1) return RailChoice{};
  request.filter = options.socket_ifname;
  request.family = TRY(parse_family(options.socket_family));
  if (!named) request.met_at = options.local_ip;
  Result<RailChoice> choice = choose_rails(interfaces, request);
  if (!choice.ok()) {
    if (named) return choice.error();
    return RailChoice{};
  }
  const std::vector<LocalRail>& rails = choice.value().rails;
  if (!named && (rails.size() < 2 || !has_rail_at(rails, options.local_ip))) return RailChoice{};
  return choice;
}

Result<std::vector<NamedInterface>> tcp_interfaces(const EndpointConfig& config, const TcpTransportOptions& options) {
  std::vector<NamedInterface> interfaces;
  const RailChoice choice = TRY(choose_tcp_rails(TRY(read_interfaces()), config, options));
  for (const LocalRail& rail : choice.rails) interfaces.push_back({rail.interface, rail.rate_bps});
  if (interfaces.empty()) interfaces.push_back(TRY(single_interface(config, options)));
  return interfaces;
}

namespace {

// Interfaces may come and go all the time. After so many looks the error counts.
constexpr int kMostLooks = 8;

bool same_rails(const RailChoice& a, const RailChoice& b) {
  return std::ranges::equal(a.rails, b.rails, {}, &LocalRail::interface, &LocalRail::interface);
}

Result<RailSet> listen_at(const RailChoice& choice, const EndpointConfig& config, const TcpTransportOptions& options) {
  for (const LeftOutInterface& out : choice.left_out) LOG(kInfo, kNet, "tcp: no rail: %s", out.text().c_str());
  const auto own = std::make_shared<OwnRails>();
  own->name = "rank " + std::to_string(config.rank);
  const std::vector<LocalRail>& rails = choice.rails;
  RailSet set = TRY(rails.size() < 2 ? single(config, options, rails, *own) : several(config, options, rails, *own));
  set.address = TRY(publish(own->published));
  set.paths = [own](int32_t rank, const std::string& address) { return paths_to(*own, rank, address); };
  set.options.silence_ns = options.rail_timeout_ns;
  return set;
}

}  // namespace

Result<RailSet> make_tcp_rails(const EndpointConfig& config, const TcpTransportOptions& options,
                               const LookForRails& look) {
  TRY(tcp_probe());
  RailChoice choice = TRY(look());
  for (int looks = 1;; ++looks) {
    Result<RailSet> set = listen_at(choice, config, options);
    if (set.ok() || looks == kMostLooks) return set;
    RailChoice now = TRY(look());
    if (same_rails(choice, now)) return set;
    choice = std::move(now);
  }
}

}  // namespace trestle
