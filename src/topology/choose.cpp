// Chooses the dimensions of a communicator from the request and from the hosts and processes of its ranks.
#include <algorithm>

#include "base/text/value_text.h"
#include "topology/internal.h"
#include "topology/topology.h"
#include "topology/whereabouts.h"

namespace trestle {
namespace {

// The number of ranks per host if every host has the same number of consecutive ranks. Otherwise 0, with the cause in
// `reason`.
int32_t ranks_per_host(const Whereabouts& at, std::string& reason) {
  std::vector<int32_t> runs;
  for (size_t rank = 0; rank < at.host.size(); ++rank) {
    if (rank == 0 || at.host[rank] != at.host[rank - 1]) runs.push_back(0);
    ++runs.back();
  }
  if (runs.size() != static_cast<size_t>(at.hosts)) {
    reason = "ranks of one host are not consecutive, so all ranks are in one dimension";
    return 0;
  }
  if (std::ranges::all_of(runs, [&](int32_t run) { return run == runs[0]; })) return runs[0];
  static constexpr size_t kMostShown = 8;
  reason = "hosts have";
  for (size_t i = 0; i < std::min(runs.size(), kMostShown); ++i) {
    reason.append(i == 0 ? " " : " + ").append(std::to_string(runs[i]));
  }
  if (runs.size() > kMostShown) reason += " + ...";
  reason += " ranks, so all ranks are in one dimension";
  return 0;
}

Topology by_places(const Whereabouts& at) {
  Topology topology;
  const auto ranks = static_cast<int32_t>(at.host.size());
  const int32_t per_host = ranks_per_host(at, topology.reason);
  topology.dimensions.emplace_back().size = per_host == 0 ? ranks : per_host;
  if (per_host == 0) return topology;
  topology.dimensions.emplace_back().size = at.hosts;
  topology.reason = "ranks per host x hosts = " + std::to_string(per_host) + "x" + std::to_string(at.hosts);
  return topology;
}

Result<Topology> requested(const TopologyRequest& request, const Whereabouts& at) {
  if (!request.dims.empty() && !request.topo_file.empty()) {
    return Error{Code::kInvalidArgument, "both dimensions (" + request.dims + ") and a topology file (" +
                                             request.topo_file + ") are given; only one of them may be"};
  }
  Topology topology;
  if (!request.topo_file.empty()) {
    topology.reason = "topology file " + request.topo_file;
    topology.dimensions = TRY(parse_json_dimensions(TRY(read_topology_text(request.topo_file)), request.topo_file));
  } else if (!request.dims.empty()) {
    topology.reason = "dimensions " + request.dims + " as configured";
    for (const int32_t size : TRY(parse_dims(request.dims))) topology.dimensions.emplace_back().size = size;
  } else {
    return by_places(at);
  }
  return topology;
}

// `text` has one entry per dimension. The last one also holds for the dimensions beyond it. "auto" keeps the topology
// file's transport.
Status set_transports(const std::string& text, Topology& topology) {
  if (text.empty()) return {};
  const std::vector<std::string> names = split(text, ',');
  if (names.size() > topology.dimensions.size()) {
    return Error{Code::kInvalidArgument, "transports '" + text + "': " + std::to_string(names.size()) +
                                             " entries, but there are " + std::to_string(topology.dimensions.size()) +
                                             " dimensions (" + topology.reason + ")"};
  }
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    const TransportKind kind = TRY(parse_transport(names[std::min(d, names.size() - 1)]));
    if (kind != TransportKind::kAuto) topology.dimensions[d].transport = kind;
  }
  return {};
}

// The checks below look at every rank only once.

// The first rank that is not at the same place (`at`: hosts, processes or memory) as the first rank of its block; -1:
// there is none.
int32_t first_elsewhere(const Level& level, const std::vector<int32_t>& at) {
  for (size_t rank = 0; rank < at.size(); ++rank) {
    const size_t first = rank - rank % static_cast<size_t>(level.span);
    if (at[rank] != at[first]) return static_cast<int32_t>(rank);
  }
  return -1;
}

TransportKind best_transport(const Level& level, const Whereabouts& at) {
  if (first_elsewhere(level, at.process) < 0) return automatic_transport(Reach::kProcess);
  if (first_elsewhere(level, at.memory) < 0) return automatic_transport(Reach::kHost);
  return all_apart(level, at) ? automatic_transport(Reach::kAnywhere) : TransportKind::kAuto;
}

std::string describe(int32_t rank, const std::vector<RankPlace>& places) {
  return "rank " + std::to_string(rank) + " (host " + places[static_cast<size_t>(rank)].hostname + ")";
}

// A rank that cannot share memory, which the transport needs that was asked for.
Status check_memory(size_t d, TransportKind kind, const std::vector<RankPlace>& places) {
  const auto refused = std::ranges::find_if(places, [](const auto& place) { return !place.no_shared_memory.empty(); });
  if (facts_of(kind).reach != Reach::kHost || refused == places.end()) return {};
  return Error{Code::kSystemError, describe(static_cast<int32_t>(refused - places.begin()), places) + " " +
                                       refused->no_shared_memory + "; dimension " + std::to_string(d + 1) +
                                       " was told to use " + to_string(kind) +
                                       " (TRESTLE_TRANSPORT, or the topology file): auto would use " +
                                       to_string(automatic_transport(Reach::kAnywhere)) + " there"};
}

// Returns an error that names two ranks which the dimension's transport cannot join, if there are any.
Status check_transport(const Level& level, size_t d, TransportKind kind, const Whereabouts& at,
                       const std::vector<RankPlace>& places) {
  const Reach reach = facts_of(kind).reach;
  if (reach == Reach::kAnywhere) return {};
  TRY(check_memory(d, kind, places));
  const bool one_process = reach == Reach::kProcess;
  const std::vector<int32_t>& where = one_process ? at.process : at.host;
  int32_t b = first_elsewhere(level, where);
  if (b < 0) return {};
  int32_t a = b - b % level.span;
  if (a / level.stride == b / level.stride) {
    // These two differ only in inner dimensions. But they are at two places, so the first rank of the next block is at
    // another place than at least one of them.
    const int32_t next = a + level.stride;
    if (where[static_cast<size_t>(next)] == where[static_cast<size_t>(a)]) a = b;
    b = next;
  }
  if (a > b) std::swap(a, b);
  return Error{Code::kInvalidArgument, std::string("transport ") + to_string(kind) + " of dimension " +
                                           std::to_string(d + 1) + " cannot join " + describe(a, places) + " and " +
                                           describe(b, places) +
                                           (one_process ? ": they are not in one process" : ": they are on two hosts")};
}

}  // namespace

Result<Topology> choose_topology(const TopologyRequest& request, const std::vector<RankPlace>& places) {
  CHECK(!places.empty(), "a topology of no ranks");
  const Whereabouts at = whereabouts(places);
  Topology topology = TRY(requested(request, at));
  TRY(set_transports(request.transport, topology));
  TRY(drop_single(topology, topology.reason));
  const auto ranks = static_cast<int32_t>(places.size());
  if (topology.ranks() != ranks) {
    std::string sizes;
    for (const Dimension& d : topology.dimensions)
      sizes.append(sizes.empty() ? "" : "x").append(std::to_string(d.size));
    return Error{Code::kInvalidArgument, topology.reason + ": dimensions " + sizes + " hold " +
                                             std::to_string(topology.ranks()) + " ranks, but the communicator has " +
                                             std::to_string(ranks)};
  }
  for (size_t d = 0; d < topology.dimensions.size(); ++d) {
    Dimension& dimension = topology.dimensions[d];
    const Level level = level_of(topology, d);
    if (dimension.transport == TransportKind::kAuto) dimension.transport = best_transport(level, at);
    TRY(check_transport(level, d, dimension.transport, at, places));
  }
  return topology;
}

}  // namespace trestle
