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
SingleRail describe(const std::vector<HostInterface>& interfaces, const SocketAddress& address) {
  SingleRail rail;
  rail.published.address = address;
  if (address.is_loopback()) return rail;
  for (const HostInterface& interface : interfaces) {
    for (const InterfaceAddress& one : interface.addresses) {
      if (HostAddress(one.address) != address) continue;
      rail.published.fabric = fabric_of(address, one.prefix);
      rail.published.rate_bps = interface.facts.rate_bps;
      rail.numa_node = interface.facts.numa_node;
    }
  }
  return rail;
}

Result<RailRequest> request_of(const EndpointConfig& config, const TcpTransportOptions& options) {
  RailRequest request;
  request.interfaces = TRY(named_rails(config, options));
  if (!config.interface.empty()) request.named_by = "the topology's interface";
  request.filter = options.socket_ifname;
  request.family = TRY(parse_family(options.socket_family));
  return request;
}

Result<std::unique_ptr<TcpRail>> listening_rail(const std::vector<SocketAddress>& addresses,
                                                const EndpointConfig& config, const TcpTransportOptions& options,
                                                const std::string& bound_to) {
  ListenOptions at;
  at.ports = TRY(parse_port_range(options.port_range));
  at.port_needs = options.port_needs;
  return TcpRail::create(config, options, TRY(listen_tcp(addresses, at)), bound_to);
}

// `chosen`: the only usable one of several that are named, or none.
Result<RailSet> single(const EndpointConfig& config, const TcpTransportOptions& options,
                       const std::vector<LocalRail>& chosen, OwnRails& own) {
  EndpointConfig at = config;
  if (!chosen.empty()) at.interface = chosen[0].interface;
  const std::vector<NamedInterface> named = TRY(named_rails(at, options));
  const std::vector<HostInterface> interfaces = TRY(read_interfaces());
  std::unique_ptr<TcpRail> rail =
      TRY(listening_rail(TRY(single_addresses(interfaces, at, options)), config, options, ""));
  const SingleRail found = describe(interfaces, rail->listens_at());
  own.published.push_back(found.published);
  if (named.size() == 1 && named[0].rate_bps != 0) own.published[0].rate_bps = named[0].rate_bps;
  RailSet set;
  set.numa_node = found.numa_node;
  set.names.push_back(named.empty() ? format_host(rail->listens_at()) : named[0].name);
  set.rails.push_back(std::move(rail));
  return set;
}

Result<RailSet> several(const EndpointConfig& config, const TcpTransportOptions& options,
                        const std::vector<LocalRail>& rails, OwnRails& own) {
  RailSet set;
  set.numa_node = numa_node_of(rails);
  for (const LocalRail& local : rails) {
    const std::string fault = interface_fault(local.interface, local.address);
    if (!fault.empty()) return Error{Code::kSystemError, fault};
    std::unique_ptr<TcpRail> rail = TRY(listening_rail({local.address}, config, options, local.interface));
    own.published.push_back({rail->listens_at(), local.fabric, local.rate_bps});
    LOG(kInfo, kNet, "tcp: rail %s at %s on %s", local.interface.c_str(), format_address(rail->listens_at()).c_str(),
        local.fabric.text().c_str());
    set.names.push_back(local.interface);
    set.rails.push_back(std::move(rail));
  }
  return set;
}

// What is known of the interface that a single rail would listen at.
Result<NamedInterface> single_interface(const std::vector<HostInterface>& interfaces, const EndpointConfig& config,
                                        const TcpTransportOptions& options) {
  const SocketAddress at = TRY(single_addresses(interfaces, config, options)).front();
  const std::vector<NamedInterface> named = TRY(named_rails(config, options));
  NamedInterface found;
  for (const HostInterface& interface : interfaces) {
    const auto is_it = [&](const InterfaceAddress& one) { return HostAddress(one.address) == at; };
    if (std::ranges::any_of(interface.addresses, is_it)) found = {interface.name, interface.facts.rate_bps};
  }
  if (named.size() == 1 && named[0].rate_bps != 0) found.rate_bps = named[0].rate_bps;
  return found;
}

}  // namespace

Result<std::vector<SocketAddress>> single_addresses(const std::vector<HostInterface>& interfaces,
                                                    const EndpointConfig& config, const TcpTransportOptions& options) {
  RailRequest request = TRY(request_of(config, options));
  request.met_at = options.local_ip;
  return listening_addresses(interfaces, request);
}

// Without names several are used only if the ranks have met over one of them: what they met over is known to reach
// them.
Result<RailChoice> choose_tcp_rails(const std::vector<HostInterface>& interfaces, const EndpointConfig& config,
                                    const TcpTransportOptions& options) {
  RailRequest request = TRY(request_of(config, options));
  const bool named = !request.interfaces.empty();
  if (request.interfaces.size() == 1) return RailChoice{};
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
  const std::vector<HostInterface> here = TRY(read_interfaces());
  std::vector<NamedInterface> interfaces;
  const RailChoice choice = TRY(choose_tcp_rails(here, config, options));
  for (const LocalRail& rail : choice.rails) interfaces.push_back({rail.interface, rail.rate_bps});
  if (interfaces.empty()) interfaces.push_back(TRY(single_interface(here, config, options)));
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
