#include "comm/setup/wiring.h"

#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "base/fork.h"
#include "base/host.h"
#include "base/log.h"
#include "comm/setup/device_wiring.h"
#include "comm/setup/port_needs.h"
#include "comm/setup/topology_agreement.h"
#include "comm/setup/version_line.h"
#include "engine/run/progress.h"
#include "express/board.h"
#include "rendezvous/giving_up.h"
#include "transport/catalog.h"
#include "transport/rails/choice.h"
#include "transport/rails/inventory.h"
#include "transport/rails/rails_text.h"

namespace trestle {

namespace {

constexpr const char* kBoardAddress = "board";

RankInfo own_info(const Bootstrap& bootstrap, const CommunicatorSettings& settings) {
  RankInfo info;
  info.rank = bootstrap.rank();
  info.place.hostname = host_name();
  info.place.host_id = settings.config.host_id.empty() ? host_identity() : settings.config.host_id;
  info.place.process_id = process_token();
  info.place.machine = boot_id();
  info.place.processors = usable_cpu_mask();
  if (const Status shares = shared_memory_probe(); !shares.ok()) info.place.no_shared_memory = shares.error().message;
  info.pid = static_cast<uint32_t>(::getpid());
  Facts& facts = info.agreed.facts;
  facts.push_back({"Trestle version", version_number()});
  for (const Config::Value& value : agreed_values(settings.config)) facts.push_back({value.name, value.text});
  Result<Fact> rails = rails_fact(settings.config.rails);
  if (rails.ok()) facts.push_back(std::move(rails).value());
  if (!rails.ok()) info.agreed.own = rails.error();
  return info;
}

Result<std::vector<RankInfo>> exchange(Bootstrap& bootstrap, const RankInfo& mine, int64_t deadline_ns) {
  const auto blobs = TRY(bootstrap.all_gather(encode(mine), deadline_ns));
  std::vector<RankInfo> infos;
  for (const std::string& blob : blobs) infos.push_back(TRY(decode_rank_info(blob)));
  return infos;
}

std::vector<RankPlace> places_of(const std::vector<RankInfo>& infos) {
  std::vector<RankPlace> places;
  for (const RankInfo& info : infos) places.push_back(info.place);
  return places;
}

// Bytes in the kernel cannot be overtaken by an older phase. So it holds about a millisecond's worth, if the rate is
// known.
uint64_t unsent_bytes(const Topology& topology, const NamedRails& rails) {
  static constexpr uint64_t kFewest = 16 * 1024;
  static constexpr uint64_t kBytesPerMbpsMs = 125;
  if (!rails.by_topology) return 0;
  uint64_t fastest_mbps = 0;
  for (const Dimension& dimension : topology.dimensions) {
    if (interfaces_text(dimension) == rails.name) fastest_mbps = std::max(fastest_mbps, dimension.bandwidth_mbps);
  }
  return fastest_mbps == 0 ? 0 : std::max(kFewest, fastest_mbps * kBytesPerMbpsMs);
}

EndpointConfig endpoint_config(const Bootstrap& bootstrap, const CommunicatorSettings& settings, const Wiring& wiring) {
  EndpointConfig endpoint;
  endpoint.rank = bootstrap.rank();
  endpoint.ranks = bootstrap.nranks();
  endpoint.job = to_hex(bootstrap.job());
  endpoint.secret = bootstrap.secret();
  endpoint.peer_names = wiring.names;
  endpoint.eager_bytes = static_cast<uint64_t>(settings.config.eager_bytes);
  return endpoint;
}

// Drives as a waiting thread does. False at the exit of the process: nothing is freed then, so nothing has to wait.
bool drive_all_ranks() {
  if (exits()) return false;
  Progress::process().poke(nullptr);
  return true;
}

TransportOptions transport_options(const Bootstrap& bootstrap, const Config& config, const Wiring& wiring,
                                   const NamedRails& rails) {
  TransportOptions options;
  options.loopback.drive_peers = drive_all_ranks;
  options.shm.map_memory = config.map_shared_memory;
  options.shm.registrations = wiring.memory;
  options.tcp.local_ip = bootstrap.local_ip();
  options.tcp.socket_ifname = config.socket_interfaces;
  options.tcp.socket_family = config.socket_family;
  const PortRange ports = config.port_range;
  if (ports.low != 0) options.tcp.port_range = std::to_string(ports.low) + "-" + std::to_string(ports.high);
  options.tcp.congestion = config.congestion_control;
  if (!rails.by_topology) options.tcp.rails = rails.interfaces;
  options.tcp.rail_timeout_ns = config.rail_timeout_ns;
  options.tcp.unsent_bytes = unsent_bytes(wiring.topology, rails);
  return options;
}

// The segment size that the user has set, in whole cache lines; 0: none.
uint64_t asked_segment_bytes(const Config& config) {
  return config.segment_bytes > 0 ? std::max<uint64_t>(64, config.segment_bytes / 64 * 64) : 0;
}

// The first rank of a host that cannot share memory warns for all of them, once per process.
void warn_without_shared_memory(const RankInfo& mine, const TopologyRequest& request, std::vector<RankPlace> places,
                                const Routing& routing) {
  static constinit PerProcess<OncePerKey> warned;
  const auto refused = std::ranges::find_if(places, [&](const RankPlace& place) {
    return place.host_id == mine.place.host_id && !place.no_shared_memory.empty();
  });
  if (refused - places.begin() != mine.rank) return;
  for (RankPlace& place : places) place.no_shared_memory.clear();
  const Result<Topology> otherwise = choose_topology(request, places);
  if (!otherwise.ok()) return;
  const Routing sharing(otherwise.value(), whereabouts(places), 0);
  for (int32_t peer = 0; peer < static_cast<int32_t>(places.size()); ++peer) {
    const TransportKind used = routing.transport(mine.rank, peer);
    if (used == sharing.transport(mine.rank, peer)) continue;
    if (!warned.get().first(mine.place.no_shared_memory)) return;
    LOG(kWarn, kInit, "%s %s; so the ranks of this host use %s, as with TRESTLE_TRANSPORT=%s", rank_name(mine).c_str(),
        mine.place.no_shared_memory.c_str(), to_string(used), to_string(used));
    return;
  }
}

// The interfaces that TRESTLE_RAILS names exist, whether any transport here uses them or not. What else speaks against
// one shows when its transport is made.
Status check_interfaces(const std::string& rails) {
  RailRequest wanted;
  wanted.interfaces = TRY(interfaces_of_all_dimensions(rails));
  if (wanted.interfaces.empty()) return {};
  const auto here = read_interfaces();
  if (!here.ok()) return {};
  const auto choice = choose_rails(here.value(), wanted);
  return choice.ok() || choice.error().code != Code::kInvalidArgument ? Status() : choice.error();
}

class Wirer {
 public:
  Wirer(Bootstrap& bootstrap, const CommunicatorSettings& settings, const HostKin& kin, DevicePlace& device,
        int64_t deadline_ns)
      : bootstrap_(bootstrap), settings_(settings), kin_(kin), device_(device), deadline_ns_(deadline_ns) {}

  Result<Wiring> run() {
    RankInfo mine = own_info(bootstrap_, settings_);
    TRY(DeviceWiring::introduce(settings_, mine));
    wiring_.infos = TRY(exchange(bootstrap_, mine, deadline_ns_));
    std::vector<std::string> names;
    for (const RankInfo& info : wiring_.infos) names.push_back(rank_name(info));
    wiring_.names = std::move(names);
    bootstrap_.set_names(wiring_.names);
    TRY(compare_configuration(wiring_.infos));
    const std::vector<RankPlace> places = places_of(wiring_.infos);
    const TopologyRequest request{settings_.dims, settings_.config.topology_file, settings_.transport};
    wiring_.topology = TRY(choose_topology(request, places));
    const std::vector<DimensionRails> said = TRY(parse_rails(settings_.config.rails));
    TRY(check_interfaces(settings_.config.rails));
    const Whereabouts at = whereabouts(places);
    rails_ = TRY(named_rails_of(said, at));
    wiring_.nominal = wiring_.topology;
    RankRails known = at.hosts > 1 ? known_rails() : RankRails{};
    TRY(agree_on_topology(bootstrap_, settings_, std::move(known), wiring_, deadline_ns_));
    wiring_.ranks_per_processor = ranks_per_processor(places);
    wiring_.routing.emplace(wiring_.topology, at, asked_segment_bytes(settings_.config), rails_);
    warn_without_shared_memory(mine, request, places, *wiring_.routing);
    DeviceWiring devices(bootstrap_, settings_, at, wiring_, kin_, device_, deadline_ns_);
    TRY(devices.find_peers());
    TRY(make_transports(mine));
    TRY(make_board(mine, at.processes == 1));
    wiring_.work = TRY(make_work_queue(bootstrap_.rank()));
    TRY(devices.offer(mine, routes_));
    wiring_.infos = TRY(exchange(bootstrap_, mine, deadline_ns_));
    TRY(connect());
    TRY(devices.agree());
    TRY(open_board());
    return std::move(wiring_);
  }

 private:
  // The options of a transport over these rails.
  struct Choice {
    EndpointConfig endpoint;
    TransportOptions options;
  };
  Choice choice(TransportKind kind, const NamedRails& rails) const {
    Choice chosen{endpoint_config(bootstrap_, settings_, wiring_),
                  transport_options(bootstrap_, settings_.config, wiring_, rails)};
    chosen.options.shm.kin = kin_;
    // A transport that proves nothing needs no key.
    if (!facts_of(kind).authenticated) chosen.endpoint.secret.clear();
    if (rails.by_topology) chosen.endpoint.interface = rails.interfaces;
    return chosen;
  }

  // A transport that TRESTLE_RAILS names may be missing because a rank cannot share memory.
  Result<std::vector<NamedRails>> named_rails_of(const std::vector<DimensionRails>& said, const Whereabouts& at) const {
    auto rails = named_rails(wiring_.topology, said, first_entry(wiring_.topology, at, said));
    if (rails.ok()) return rails;
    for (const RankInfo& info : wiring_.infos) {
      const std::string& refused = info.place.no_shared_memory;
      if (!refused.empty())
        return Error{Code::kSystemError, rank_name(info) + " " + refused + "; " + rails.error().message};
    }
    return rails;
  }

  // What this rank knows of its rails in dimensions whose bandwidth nothing says. Wrong names show when the transport
  // is made.
  RankRails known_rails() const {
    RankRails known;
    for (size_t d = 0; d < rails_.size(); ++d) {
      std::vector<DimensionRail>& rails = known.emplace_back();
      const Dimension& dimension = wiring_.topology.dimensions[d];
      if (dimension.bandwidth_mbps != 0) continue;
      for (const NamedInterface& one : interfaces_of(dimension.transport, rails_[d]))
        rails.push_back({one.name, one.rate_bps / 1'000'000});
    }
    return known;
  }

  // The interfaces that a transport over these rails would use; empty: none are known.
  std::vector<NamedInterface> interfaces_of(TransportKind kind, const NamedRails& rails) const {
    const auto row = find_transport(to_string(kind));
    if (!row.ok() || row.value()->interfaces == nullptr) return {};
    const Choice chosen = choice(kind, rails);
    auto found = row.value()->interfaces(chosen.endpoint, chosen.options);
    return found.ok() ? std::move(found).value() : std::vector<NamedInterface>{};
  }

  std::string port_needs() const {
    PortNeeds needs{settings_.config.port_range, 0, 0, bootstrap_.listens()};
    if (needs.range.low == 0) return {};
    const std::string& here = wiring_.infos[static_cast<size_t>(bootstrap_.rank())].place.host_id;
    for (const RankInfo& info : wiring_.infos) needs.ranks += info.place.host_id == here ? 1 : 0;
    std::vector<std::vector<NamedInterface>> of_transports;
    for (const Carrier& carrier : routes_.carriers)
      of_transports.push_back(interfaces_of(carrier.kind, rails_of(carrier)));
    needs.data = most_at_one_interface(of_transports);
    // The mesh wanted to listen, too, even if it found no port.
    const auto several = [](const std::vector<NamedInterface>& interfaces) { return interfaces.size() > 1; };
    const bool alone = needs.ranks == bootstrap_.nranks();
    needs.mesh = needs.mesh || (!alone && std::ranges::any_of(of_transports, several));
    return port_needs_text(needs);
  }

  // The rails of this rank for the carrier. For a carrier without rails of its own the transport finds the interfaces.
  NamedRails rails_of(const Carrier& carrier) const {
    const auto found = std::ranges::find(rails_, carrier.rails, &NamedRails::name);
    return found == rails_.end() ? NamedRails{} : *found;
  }

  Status make_transports(RankInfo& mine) {
    routes_ = wiring_.routing->routes(bootstrap_.rank());
    const std::string port_needs = this->port_needs();
    for (const Carrier& carrier : routes_.carriers) {
      const TransportRow* row = TRY(find_transport(to_string(carrier.kind)));
      TRY(row->probe());
      Choice chosen = choice(carrier.kind, rails_of(carrier));
      chosen.options.tcp.port_needs = port_needs;
      chosen.options.shm.carrier = carrier.text();
      wiring_.transports.push_back(TRY(row->create(chosen.endpoint, chosen.options)));
      mine.addresses[carrier.text()] = wiring_.transports.back()->address();
    }
    return {};
  }

  Status make_board(RankInfo& mine, bool one_process) {
    // The board has no algorithms. If the user names some, there is no board.
    if (!settings_.config.express || !settings_.config.algorithm.empty()) return {};
    if (!wiring_.routing->all_share_memory()) return {};
    board_ = TRY(Board::create(endpoint_config(bootstrap_, settings_, wiring_), one_process, kin_));
    mine.addresses[kBoardAddress] = board_->address();
    return {};
  }

  Status connect() {
    for (const uint16_t carrier : routes_.carrier_of) wiring_.router.push_back(wiring_.transports[carrier].get());
    for (size_t t = 0; t < routes_.carriers.size(); ++t) {
      const std::string name = routes_.carriers[t].text();
      std::vector<std::string> addresses(bootstrap_.nranks());
      for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
        if (routes_.carrier_of[r] == t) addresses[r] = wiring_.infos[r].addresses[name];
      }
      TRY(wiring_.transports[t]->set_peers(addresses, wiring_.names));
      if (wiring_.transports[t]->rails() > 1) wiring_.routing->divide(routes_.carriers[t]);
    }
    return {};
  }

  Status open_board() {
    if (!board_) return {};
    std::vector<std::string> addresses;
    for (RankInfo& info : wiring_.infos) addresses.push_back(info.addresses[kBoardAddress]);
    TRY(run_watched(bootstrap_,
                    [&](const ExchangeWatch& watch) { return board_->open(addresses, deadline_ns_, watch); }));
    wiring_.express = std::make_unique<Express>(std::move(board_), bootstrap_.rank(), bootstrap_.nranks(),
                                                std::min<uint64_t>(settings_.config.express_bytes, kBoardPayloadBytes));
    return {};
  }

  Bootstrap& bootstrap_;
  const CommunicatorSettings& settings_;
  const HostKin& kin_;
  DevicePlace& device_;
  const int64_t deadline_ns_;
  Wiring wiring_;
  std::vector<NamedRails> rails_;  // by dimension
  RankRoutes routes_;              // of this rank; its carriers are parallel to wiring_.transports
  std::unique_ptr<Board> board_;
};

}  // namespace

[[gnu::weak]] Result<std::unique_ptr<WorkQueue>> make_work_queue(int32_t) {
  return {nullptr};
}

Result<Wiring> wire(Bootstrap& bootstrap, const CommunicatorSettings& settings, const HostKin& kin, DevicePlace& device,
                    int64_t deadline_ns) {
  return Wirer(bootstrap, settings, kin, device, deadline_ns).run();
}

// Only the control mesh notices a rank that dies now. Here, ranks that gave up because of that only seem late.
Status run_watched(Bootstrap& bootstrap, const std::function<Status(const ExchangeWatch&)>& run) {
  int32_t awaited = -1;
  const ExchangeWatch watch{bootstrap.event_fd(), [&] { return bootstrap.heard(); },
                            [&](int32_t rank) { bootstrap.waits_for(awaited = rank); }};
  Status done = run(watch);
  if (!done.ok() && done.error().code == Code::kTimeout) return bootstrap.blame(awaited, done.error());
  bootstrap.waits_for(-1);
  if (!done.ok()) return bootstrap.cause_of(done.error());
  return done;
}

}  // namespace trestle
