#include "cli/plan/info.h"

#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "base/host.h"
#include "base/text/value_text.h"
#include "base/types.h"
#include "cli/plan/plan_text.h"
#include "sched/model/predict.h"
#include "sched/select/select.h"
#include "topology/topology.h"

namespace trestle {
namespace {

constexpr int64_t kMostRanks = 1 << 20;

template <class Items, class Text>
std::string join(const Items& items, const char* separator, Text text) {
  std::string joined;
  for (const auto& item : items) joined += (joined.empty() ? "" : separator) + text(item);
  return joined;
}

// Assumes that every host is a machine like this one.
std::vector<RankPlace> places(size_t ranks, size_t per_host) {
  const std::vector<uint64_t> processors = usable_cpu_mask();
  std::vector<RankPlace> places(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    places[r].hostname = places[r].host_id = "host " + std::to_string(r / per_host);
    places[r].process_id = r + 1;
    places[r].machine = places[r].host_id;
    places[r].processors = processors;
  }
  return places;
}

}  // namespace

Result<Topology> topology_of(const TopologyOptions& options, const Config& config) {
  TopologyRequest request = topology_request(config);
  if (!options.dims.empty() || !options.file.empty()) {
    request.dims = options.dims;
    request.topo_file = options.file;
  }
  int64_t ranks = 1;
  int32_t innermost = 1;
  if (!request.topo_file.empty()) {
    const Topology topology = TRY(read_topology_file(request.topo_file));
    ranks = topology.ranks();
    innermost = topology.dimensions.front().size;
  } else if (!request.dims.empty()) {
    const std::vector<int32_t> sizes = TRY(parse_dims(request.dims));
    for (int32_t size : sizes) ranks *= size;
    innermost = sizes.front();
  } else if (options.ranks > 0) {
    innermost = static_cast<int32_t>(std::min<int64_t>(options.ranks, kMostRanks));
  } else {
    return Error{Code::kInvalidArgument,
                 "no dimensions: give --dims, --topo or -n, or set TRESTLE_DIMS or TRESTLE_TOPO_FILE"};
  }
  if (options.ranks > 0) ranks = options.ranks;
  if (ranks > kMostRanks)
    return Error{Code::kInvalidArgument, std::to_string(ranks) + " ranks are too many to describe"};
  // The places of the ranks are not known. Usually dimension 1 is inside a host. If the transports contradict that, all
  // ranks are assumed to be on one host.
  std::vector<RankPlace> where = places(static_cast<size_t>(ranks), static_cast<size_t>(innermost));
  Result<Topology> topology = choose_topology(request, where);
  if (!topology.ok()) {
    where = places(static_cast<size_t>(ranks), static_cast<size_t>(ranks));
    topology = TRY(choose_topology(request, where));
  }
  share_processors(where, topology.value());
  return topology;
}

TopologyRequest topology_request(const Config& config) {
  TopologyRequest request;
  request.dims = join(config.dimensions, "x", [](uint32_t size) { return std::to_string(size); });
  request.topo_file = config.topology_file;
  request.transport = join(config.transports, ",", [](const std::string& name) { return name; });
  return request;
}

SelectionConfig selection_of(const Config& config) {
  SelectionConfig selection;
  selection.algo = config.algorithm;
  selection.policy = config.schedule;
  selection.intra = config.intra;
  selection.chunks = static_cast<uint32_t>(config.chunks);
  selection.in_flight = static_cast<uint32_t>(config.phases_in_flight);
  return selection;
}

namespace {

// Parses "64M", or "1M,4K,4K,0", which has a block per rank, for v-variants whose blocks all ranks know.
Status read_sizes(const std::string& text, const Topology& topology, SelectionRequest& request) {
  if (!has_known_blocks(request.collective) || text.find(',') == std::string::npos) {
    request.bytes = static_cast<uint64_t>(TRY(parse_bytes(text)));
    return {};
  }
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    request.blocks.push_back(static_cast<uint64_t>(TRY(parse_bytes(text.substr(begin, end - begin)))));
    request.bytes += request.blocks.back();
    begin = end + 1;
  }
  if (request.blocks.size() == static_cast<size_t>(topology.ranks())) return {};
  return Error{Code::kInvalidArgument, "'" + text + "' has " + std::to_string(request.blocks.size()) +
                                           " blocks, and there are " + std::to_string(topology.ranks()) + " ranks"};
}

bool whole_elements(const SelectionRequest& request) {
  const auto whole = [&](uint64_t bytes) { return bytes % request.element_bytes == 0; };
  return whole(request.bytes) && std::ranges::all_of(request.blocks, whole);
}

}  // namespace

Result<std::string> describe_plan(const TopologyOptions& options, const Config& config, const std::string& collective,
                                  const std::string& bytes, const std::string& type) {
  const Topology topology = TRY(topology_of(options, config));
  SelectionRequest request;
  request.collective = TRY(parse_collective(collective));
  TRY(read_sizes(bytes, topology, request));
  request.element_bytes = static_cast<uint32_t>(size_of(TRY(parse_data_type(type))));
  if (!whole_elements(request)) {
    return Error{Code::kInvalidArgument, bytes + " bytes are not a whole number of elements of type " + type};
  }
  const SelectionConfig selection = selection_of(config);
  TRY(validate(selection, topology));
  const Schedule schedule = TRY(select_schedule(request, topology, selection));
  std::string text = to_string(schedule, topology);
  if (!text.ends_with('\n')) text += '\n';
  char predicted[64];
  std::snprintf(predicted, sizeof predicted, "predicted time: %.1f us\n",
                static_cast<double>(predict_ns(schedule, topology, request.blocks)) / 1000.0);
  text += predicted;
  const std::vector<PlanCandidate> candidates = TRY(plan_candidates(request, topology, selection));
  if (candidates.empty()) return text;
  text += "\n" + candidates_text(candidates, topology);
  const auto chosen = std::ranges::find(candidates, true, &PlanCandidate::chosen);
  CHECK(chosen != candidates.end(), "a selection that is none of its candidates");
  return text + "\n" + picture_text(*chosen, topology);
}

}  // namespace trestle
