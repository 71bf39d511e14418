#include "comm/setup/wiring.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/hash.h"
#include "base/host.h"
#include "base/log.h"
#include "sched/model/segments.h"
#include "transport/catalog.h"
#include "transport/shm/board.h"
#include "trestle/trestle.h"

namespace trestle {

namespace {

constexpr const char* kBoardAddress = "board";

// A kind of transport on one interface: a dimension may have an interface of its own.
struct RailKey {
  TransportKind kind = TransportKind::kLoopback;
  std::string interface;
  auto operator<=>(const RailKey&) const = default;
  std::string text() const {
    return interface.empty() ? to_string(kind) : std::string(to_string(kind)) + "@" + interface;
  }
};

RailKey rail_between(const Wiring& wiring, int32_t a, int32_t b) {
  const TransportKind kind = pair_transport(wiring.topology, wiring.infos, a, b);
  if (kind != TransportKind::kTcp || a == b) return {kind, ""};
  return {kind, wiring.topology.dimensions[wiring.topology.outermost_difference(a, b)].interface};
}

RankInfo own_info(const Bootstrap& bootstrap, const CommunicatorSettings& settings) {
  RankInfo info;
  info.rank = bootstrap.rank();
  info.version = TRESTLE_VERSION_CODE;
  info.place.hostname = host_name();
  info.place.host_id = settings.config.host_id.empty() ? host_identity() : settings.config.host_id;
  info.place.process_id = process_token();
  info.place.machine = boot_id();
  info.place.processors = usable_cpu_mask();
  info.pid = static_cast<uint32_t>(::getpid());
  info.configuration_hash = 0;
  Hasher hasher;
  for (const Config::Value& value : agreed_values(settings.config)) {
    info.agreed.emplace_back(value.name, value.text);
    hasher.string(value.name);
    hasher.string(value.text);
  }
  info.configuration_hash = hasher.digest();
  return info;
}

Result<std::vector<RankInfo>> exchange(Bootstrap& bootstrap, const RankInfo& mine, int64_t deadline_ns) {
  const auto blobs = TRY(bootstrap.all_gather(encode(mine), deadline_ns));
  std::vector<RankInfo> infos;
  for (const std::string& blob : blobs) infos.push_back(TRY(decode_rank_info(blob)));
  return infos;
}

std::vector<RankPlace> places(const Wiring& wiring) {
  std::vector<RankPlace> places;
  for (const RankInfo& info : wiring.infos) places.push_back(info.place);
  return places;
}

Result<Topology> choose(const Wiring& wiring, const CommunicatorSettings& settings) {
  return choose_topology({settings.dims, settings.config.topology_file, settings.transport}, places(wiring));
}

// Files may differ between hosts: what they mean must not. Rank 0 appends its calibration, behind a zero byte; it is
// everybody's.
Status agree_on_topology(Bootstrap& bootstrap, const CommunicatorSettings& settings, Wiring& wiring,
                         int64_t deadline_ns) {
  wiring.calibration = calibration_place(settings, wiring.topology, wiring.infos);
  std::string mine = to_json(wiring.topology);
  if (bootstrap.rank() == 0) mine += '\0' + kept_calibration(wiring.calibration, wiring.topology);
  auto texts = TRY(bootstrap.all_gather(mine, deadline_ns));
  const size_t end = texts[0].find('\0');
  if (end == std::string::npos) return Error{Code::kRemoteError, "the topology of " + wiring.names[0] + " is cut off"};
  const std::string calibration = texts[0].substr(end + 1);
  texts[0].resize(end);
  for (size_t r = 1; r < texts.size(); ++r) {
    if (texts[r] == texts[0]) continue;
    return Error{Code::kInvalidUsage, "the topologies of the ranks differ: " + wiring.names[0] + " has " + texts[0] +
                                          ", " + wiring.names[r] + " has " + texts[r]};
  }
  wiring.measure = wiring.calibration.wanted && calibration.empty() && settings.config.calibrate == "full";
  return apply_calibration(calibration, wiring.topology);
}

// What the kernel holds goes before anything of an older phase: about a millisecond's worth, where the rate is known.
uint64_t unsent_bytes(const Wiring& wiring, const RailKey& key) {
  static constexpr uint64_t kFewest = 16 * 1024;
  static constexpr uint64_t kBytesPerMbpsMs = 125;
  if (key.interface.empty()) return 0;
  uint64_t fastest_mbps = 0;
  for (const Dimension& dimension : wiring.topology.dimensions) {
    if (dimension.interface == key.interface) fastest_mbps = std::max(fastest_mbps, dimension.bandwidth_mbps);
  }
  return fastest_mbps == 0 ? 0 : std::max(kFewest, fastest_mbps * kBytesPerMbpsMs);
}

EndpointConfig endpoint_config(const Bootstrap& bootstrap, const CommunicatorSettings& settings, const Wiring& wiring,
                               const RailKey& key) {
  EndpointConfig endpoint;
  endpoint.rank = bootstrap.rank();
  endpoint.ranks = bootstrap.nranks();
  endpoint.job = to_hex(bootstrap.job());
  endpoint.secret = bootstrap.secret();
  endpoint.peer_names = wiring.names;
  endpoint.interface = key.interface;
  endpoint.local_ip = bootstrap.local_ip();
  endpoint.socket_ifname = settings.config.socket_interfaces;
  endpoint.socket_family = settings.config.socket_family;
  const PortRange ports = settings.config.port_range;
  if (ports.low != 0) endpoint.port_range = std::to_string(ports.low) + "-" + std::to_string(ports.high);
  endpoint.congestion = settings.config.congestion_control;
  endpoint.eager_bytes = static_cast<uint64_t>(settings.config.eager_bytes);
  endpoint.unsent_bytes = unsent_bytes(wiring, key);
  endpoint.map_memory = settings.config.map_shared_memory;
  endpoint.registrations = wiring.memory;
  return endpoint;
}

uint64_t segment_size(const Wiring& wiring, const CommunicatorSettings& settings, int32_t a, int32_t b) {
  if (settings.config.segment_bytes > 0) return std::max<uint64_t>(64, settings.config.segment_bytes / 64 * 64);
  const auto row = find_transport(to_string(pair_transport(wiring.topology, wiring.infos, a, b)));
  const uint64_t most = row.ok() ? row.value()->segment_bytes : 64 * 1024;
  const uint8_t dimension = a == b ? 0 : wiring.topology.outermost_difference(a, b);
  return segment_bytes_at(wiring.topology.dimensions[dimension].bandwidth_mbps, most);
}

// All pairs reach each other through memory: small collectives may use the board.
bool share_memory(const Wiring& wiring) {
  const auto ranks = static_cast<int32_t>(wiring.infos.size());
  for (int32_t a = 0; a < ranks; ++a) {
    for (int32_t b = a + 1; b < ranks; ++b) {
      if (pair_transport(wiring.topology, wiring.infos, a, b) == TransportKind::kTcp) return false;
    }
  }
  return ranks > 1;
}

class Wirer {
 public:
  Wirer(Bootstrap& bootstrap, const CommunicatorSettings& settings, int64_t deadline_ns)
      : bootstrap_(bootstrap), settings_(settings), deadline_ns_(deadline_ns) {}

  Result<Wiring> run() {
    RankInfo mine = own_info(bootstrap_, settings_);
    wiring_.infos = TRY(exchange(bootstrap_, mine, deadline_ns_));
    for (const RankInfo& info : wiring_.infos) wiring_.names.push_back(rank_name(info));
    bootstrap_.set_names(wiring_.names);
    TRY(compare_configuration(wiring_.infos));
    wiring_.topology = TRY(choose(wiring_, settings_));
    wiring_.nominal = wiring_.topology;
    TRY(agree_on_topology(bootstrap_, settings_, wiring_, deadline_ns_));
    if (!wiring_.measure) share_processors(places(wiring_), wiring_.topology);
    wiring_.ranks_per_processor = ranks_per_processor(places(wiring_));
    TRY(make_transports(mine));
    TRY(make_board(mine));
    wiring_.infos = TRY(exchange(bootstrap_, mine, deadline_ns_));
    TRY(connect());
    TRY(open_board());
    fill_segments();
    const std::string& here = wiring_.infos[bootstrap_.rank()].place.host_id;
    wiring_.local_ranks = static_cast<int32_t>(std::count_if(
        wiring_.infos.begin(), wiring_.infos.end(), [&](const RankInfo& info) { return info.place.host_id == here; }));
    return std::move(wiring_);
  }

 private:
  Status make_transports(RankInfo& mine) {
    keys_.push_back({TransportKind::kLoopback, ""});  // a rank may send to itself
    for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
      if (r != bootstrap_.rank()) keys_.push_back(rail_between(wiring_, bootstrap_.rank(), r));
    }
    std::sort(keys_.begin(), keys_.end());
    keys_.erase(std::unique(keys_.begin(), keys_.end()), keys_.end());
    for (const RailKey& key : keys_) {
      const TransportRow* row = TRY(find_transport(to_string(key.kind)));
      TRY(row->probe());
      wiring_.transports.push_back(TRY(row->create(endpoint_config(bootstrap_, settings_, wiring_, key))));
      mine.addresses[key.text()] = wiring_.transports.back()->address();
    }
    return {};
  }

  Status make_board(RankInfo& mine) {
    // The board has one way to do things: who names algorithms gets those.
    if (!settings_.config.express || !settings_.config.algorithm.empty() || !share_memory(wiring_)) return {};
    board_ = TRY(Board::create(endpoint_config(bootstrap_, settings_, wiring_, {}), one_process()));
    mine.addresses[kBoardAddress] = board_->address();
    return {};
  }

  bool one_process() const {
    return std::all_of(wiring_.infos.begin(), wiring_.infos.end(), [this](const RankInfo& info) {
      return info.place.host_id == wiring_.infos[0].place.host_id &&
             info.place.process_id == wiring_.infos[0].place.process_id;
    });
  }

  Status connect() {
    const int32_t me = bootstrap_.rank();
    wiring_.router.assign(bootstrap_.nranks(), nullptr);
    for (int32_t r = 0; r < bootstrap_.nranks(); ++r) wiring_.rails.push_back(rail_between(wiring_, me, r).text());
    for (size_t t = 0; t < keys_.size(); ++t) {
      std::vector<std::string> addresses(bootstrap_.nranks());
      for (int32_t r = 0; r < bootstrap_.nranks(); ++r) {
        const bool through =
            r == me ? keys_[t].kind == TransportKind::kLoopback : rail_between(wiring_, me, r) == keys_[t];
        if (!through) continue;
        addresses[r] = wiring_.infos[r].addresses[keys_[t].text()];
        wiring_.router[r] = wiring_.transports[t].get();
      }
      TRY(wiring_.transports[t]->set_peers(addresses, wiring_.names));
    }
    return {};
  }

  Status open_board() {
    if (!board_) return {};
    // Who dies now is known to the control mesh only; who gave up because of that is missed here.
    int32_t awaited = -1;
    const BoardWatch watch{bootstrap_.event_fd(), [this] { return bootstrap_.heard(); },
                           [&](int32_t rank) { bootstrap_.waits_for(awaited = rank); }};
    const Status opened = board_->open(wiring_.infos[0].addresses[kBoardAddress], deadline_ns_, watch);
    const bool late = !opened.ok() && opened.error().code == Code::kTimeout;
    if (late) return bootstrap_.blame(awaited, opened.error());
    bootstrap_.waits_for(-1);
    if (!opened.ok()) return bootstrap_.cause_of(opened.error());
    wiring_.express = std::make_unique<Express>(std::move(board_), bootstrap_.rank(), bootstrap_.nranks(),
                                                std::min<uint64_t>(settings_.config.express_bytes, kBoardPayloadBytes));
    return {};
  }

  void fill_segments() {
    const int32_t ranks = bootstrap_.nranks();
    wiring_.segment_bytes.assign(ranks, std::vector<uint64_t>(ranks));
    for (int32_t a = 0; a < ranks; ++a) {
      for (int32_t b = 0; b < ranks; ++b) wiring_.segment_bytes[a][b] = segment_size(wiring_, settings_, a, b);
    }
  }

  Bootstrap& bootstrap_;
  const CommunicatorSettings& settings_;
  const int64_t deadline_ns_;
  Wiring wiring_;
  std::vector<RailKey> keys_;  // parallel to wiring_.transports
  std::unique_ptr<Board> board_;
};

}  // namespace

TransportKind pair_transport(const Topology& topology, const std::vector<RankInfo>& infos, int32_t a, int32_t b) {
  if (a == b) return TransportKind::kLoopback;
  const TransportKind kind = topology.transport_between(a, b);
  if (kind != TransportKind::kAuto) return kind;
  if (infos[a].place.host_id != infos[b].place.host_id) return TransportKind::kTcp;
  return infos[a].place.process_id == infos[b].place.process_id ? TransportKind::kLoopback : TransportKind::kShm;
}

Result<Wiring> wire(Bootstrap& bootstrap, const CommunicatorSettings& settings, int64_t deadline_ns) {
  return Wirer(bootstrap, settings, deadline_ns).run();
}

}  // namespace trestle
