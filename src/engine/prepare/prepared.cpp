#include "engine/prepare/prepared.h"

#include <algorithm>

#include "algorithms/catalog.h"
#include "engine/prepare/average.h"
#include "engine/prepare/binding.h"
#include "engine/prepare/bounces.h"
#include "engine/prepare/prepared_blocks.h"

namespace trestle {

uint64_t vector_elements(const PrepareRequest& request, int32_t ranks) {
  if (has_pairwise_blocks(request.collective)) return 0;  // other ranks do not know what this one has
  const bool per_block = has_block_per_rank(request.collective) && !request.half;
  return per_block ? request.count * ranks : request.count;
}

std::vector<uint64_t> known_block_bytes(const PrepareRequest& request) {
  if (!has_known_blocks(request.collective)) return {};
  std::vector<uint64_t> bytes = known_blocks(*request.blocks, request.collective).counts;
  for (uint64_t& block : bytes) block *= size_of(request.type);
  return bytes;
}

namespace {

Result<std::shared_ptr<const Plan>> find_plan(const PrepareContext& context, uint16_t algorithm,
                                              const PlanRequest& request) {
  if (context.plans != nullptr) return context.plans->get(algorithm, request, context.check_plans);
  return std::make_shared<const Plan>(TRY(build_plan(algorithms()[algorithm], request, context.check_plans)));
}

struct Preparation {
  const PrepareRequest& request;
  const PrepareContext& context;
  Prepared& result;
  ChunkCut cut;
  uint64_t elements;
  uint32_t element_bytes;
  std::vector<ElementRange> shards;  // unequal ones; else empty

  ElementRange own_shard() const {
    const int32_t rank = context.rank;
    return shards.empty() ? nth_range(elements, result.ranks, rank) : shards[static_cast<size_t>(rank)];
  }
};

bool moves_shards(PhaseKind kind) {
  return kind == PhaseKind::kReduceScatter || kind == PhaseKind::kAllGather;
}

Result<std::shared_ptr<const Plan>> plan_for(const Preparation& p, const PhaseChoice& choice, bool in_place) {
  const Topology& topology = *p.context.topology;
  PlanRequest request;
  request.kind = choice.kind;
  request.group_size = topology.group_size(choice.dimension);
  request.me = topology.coordinate(p.context.rank, choice.dimension);
  request.root = topology.coordinate(p.request.root, choice.dimension);
  request.in_place = in_place;
  return find_plan(p.context, choice.algorithm, request);
}

// The state of a chunk between its phases, as this rank sees it.
struct ChunkState {
  std::vector<ElementRange> units;  // of V, by rank
  uint32_t split = 0;               // dimensions whose coordinate the resident data shares with this rank
  bool all_split = false;           // after a flat reduce-scatter, or as the input of an all-gather
  Placement place;                  // where the resident data lies
};

// A phase that divides the data (reduce-scatter) or joins it (all-gather): blocks are sets of units.
PreparedPhase shard_phase(const Preparation& p, const PhaseChoice& choice, const ChunkState& before,
                          const Placement& in, const Placement& out, uint32_t fixed, uint32_t turned) {
  const Topology& topology = *p.context.topology;
  const int32_t me = topology.coordinate(p.context.rank, choice.dimension);
  const int32_t n = topology.group_size(choice.dimension);
  PreparedPhase phase;
  phase.choice = choice;
  phase.peers = topology.group(p.context.rank, choice.dimension);
  const bool scatter = choice.kind == PhaseKind::kReduceScatter;
  TableBuilder input(in), output(out);
  for (int32_t i = 0; i < n; ++i) {
    const int32_t j = i ^ static_cast<int32_t>(turned);
    uint64_t elements = 0;
    const bool in_input = scatter || j == me;
    const bool in_output = !scatter || j == me;
    if (in_input) input.open_block();
    if (in_output) output.open_block();
    for (int32_t unit : block_units(topology, p.context.rank, choice.dimension, fixed, j)) {
      elements += before.units[unit].count;
      if (in_input && p.context.data) input.add(unit, before.units[unit]);
      if (in_output && p.context.data) output.add(unit, before.units[unit]);
    }
    phase.logical_bytes.push_back(elements * p.element_bytes);
  }
  phase.input = input.take();
  phase.output = output.take();
  return phase;
}

// The blocks of a phase that divides nothing: equal ranges of what the group's ranks all hold of the chunk.
std::vector<std::vector<ElementRange>> whole_blocks(const Preparation& p, const ChunkState& chunk, uint32_t blocks) {
  std::vector<std::vector<ElementRange>> result;
  const auto held = resident_ranges(*p.context.topology, p.context.rank, chunk.split, chunk.units);
  uint64_t elements = 0;
  for (const ElementRange& range : held) elements += range.count;
  for (uint32_t b = 0; b < blocks; ++b) result.push_back(cut_ranges(held, nth_range(elements, blocks, b)));
  return result;
}

// Where the results of a phase over whole data go. A reduce's partial sums may not use the receive buffer, which only
// its root has.
Placement whole_output(Preparation& p, const ChunkState& chunk, const PhaseChoice& choice) {
  const Topology& topology = *p.context.topology;
  const bool root =
      topology.coordinate(p.context.rank, choice.dimension) == topology.coordinate(p.request.root, choice.dimension);
  const bool partial = choice.kind == PhaseKind::kReduce && p.context.rank != p.request.root && root;
  if (!partial) return Placement::direct(BufferId::kRecv, p.element_bytes);
  const auto held = resident_ranges(topology, p.context.rank, chunk.split, chunk.units);
  if (held.empty()) return Placement::staged(p.element_bytes, p.result.staging_bytes, 0);
  const uint64_t elements = held.back().offset + held.back().count - held.front().offset;
  const uint64_t begin = p.result.staging_bytes;
  p.result.staging_bytes += (elements * p.element_bytes + 63) / 64 * 64;
  return Placement::staged(p.element_bytes, begin, held.front().offset);
}

// A phase over whole data (all-reduce, broadcast, reduce). A rank that has no part in it has a plan without
// steps.
Result<PreparedPhase> prepare_whole_phase(Preparation& p, ChunkState& chunk, const PhaseChoice& choice,
                                          uint32_t rooted) {
  const Topology& topology = *p.context.topology;
  PreparedPhase phase;
  phase.choice = choice;
  phase.peers = topology.group(p.context.rank, choice.dimension);
  if (!takes_part(topology, rooted, p.context.rank, p.request.root)) {
    Plan idle;
    idle.kind = choice.kind;
    idle.group_size = topology.group_size(choice.dimension);
    idle.me = topology.coordinate(p.context.rank, choice.dimension);
    idle.root = topology.coordinate(p.request.root, choice.dimension);
    idle.blocks = 0;
    phase.plan = std::make_shared<const Plan>(std::move(idle));
    return phase;
  }
  const Placement out = whole_output(p, chunk, choice);
  phase.plan = TRY(plan_for(p, choice, chunk.place.same_memory(out, p.request.in_place)));
  TableBuilder input(chunk.place), output(out);
  const auto blocks = whole_blocks(p, chunk, phase.plan->blocks);
  for (uint32_t i = 0; i < blocks.size(); ++i) {
    const std::vector<ElementRange>& block = blocks[i ^ phase.plan->turned];
    const bool in_input = input_blocks(*phase.plan) != 0;
    const bool in_output = output_blocks(*phase.plan) != 0;
    if (in_input) input.open_block();
    if (in_output) output.open_block();
    uint64_t elements = 0;
    for (const ElementRange& range : block) {
      elements += range.count;
      if (in_input) input.add(0, range);
      if (in_output) output.add(0, range);
    }
    phase.logical_bytes.push_back(elements * p.element_bytes);
  }
  phase.input = input.take();
  phase.output = output.take();
  chunk.place = out;
  return phase;
}

// A phase that moves a block per rank (all-to-all, gather, scatter and their v-variants).
Result<PreparedPhase> prepare_block_phase(const Preparation& p, const ChunkState& chunk, const PhaseChoice& choice) {
  PreparedPhase phase;
  phase.choice = choice;
  phase.peers = p.context.topology->group(p.context.rank, choice.dimension);
  phase.plan = TRY(plan_for(p, choice, p.request.in_place));
  lay_out_blocks(phase, p.request, p.context.rank, chunk.units);
  return phase;
}

// An all-to-all on one dimension of several: blocks are sets of units, as the others left them. Results go to the
// receive buffer and to staging in turn, so that the last ones end where the caller wants them; `left`: phases that
// follow.
Result<PreparedPhase> prepare_regrouping_phase(Preparation& p, ChunkState& chunk, const PhaseChoice& choice,
                                               size_t left) {
  const Topology& topology = *p.context.topology;
  Placement out = Placement::direct(BufferId::kRecv, p.element_bytes);
  if (left % 2 == 1) {
    out = Placement::packed(p.element_bytes, p.result.staging_bytes);
    for (int32_t unit = 0; unit < p.result.ranks; ++unit) {
      p.result.staging_bytes += out.append(unit, chunk.units[static_cast<size_t>(unit)]);
    }
    p.result.staging_bytes = (p.result.staging_bytes + 63) / 64 * 64;
  }
  PreparedPhase phase;
  phase.choice = choice;
  phase.peers = topology.group(p.context.rank, choice.dimension);
  phase.plan = TRY(plan_for(p, choice, chunk.place.same_memory(out, p.request.in_place)));
  TableBuilder input(chunk.place), output(out);
  const uint32_t parts = parts_of(*phase.plan);
  for (int32_t j = 0; j < topology.group_size(choice.dimension); ++j) {
    const auto units = block_units(topology, p.context.rank, choice.dimension, 0, j);
    for (uint32_t part = 0; part < parts; ++part) {
      input.open_block();
      output.open_block();
      uint64_t elements = 0;
      for (const auto& [unit, range] : part_of_units(units, chunk.units, parts, part)) {
        elements += range.count;
        if (p.context.data) input.add(unit, range);
        if (p.context.data) output.add(unit, range);
      }
      phase.logical_bytes.push_back(elements * p.element_bytes);
    }
  }
  phase.input = input.take();
  phase.output = output.take();
  chunk.place = out;
  return phase;
}

// Where the results of a phase go, and where later phases find them.
Placement output_placement(Preparation& p, const ChunkState& chunk, const PhaseChoice& choice, bool last,
                           uint32_t fixed_after) {
  const CollectiveRow& row = row_of(p.request.collective);
  const bool own_shard_only = !row.all_gather_phases && !p.request.half;
  if (row.received.extent == BufferExtent::kList) {
    return Placement::displaced(BufferId::kRecv, p.element_bytes, p.shards, p.request.blocks->received.starts);
  }
  if (!own_shard_only) return Placement::direct(BufferId::kRecv, p.element_bytes);
  if (last) return Placement::shard(BufferId::kRecv, p.element_bytes, p.own_shard());
  Placement staged = Placement::packed(p.element_bytes, p.result.staging_bytes);
  for (int32_t unit : block_units(*p.context.topology, p.context.rank, choice.dimension, fixed_after,
                                  p.context.topology->coordinate(p.context.rank, choice.dimension))) {
    p.result.staging_bytes += staged.append(unit, chunk.units[unit]);
  }
  p.result.staging_bytes = (p.result.staging_bytes + 63) / 64 * 64;
  return staged;
}

// Whether the shards are what the caller has: nothing comes before their all-gather.
bool begins_with_shards(Collective collective) {
  const CollectiveRow& row = row_of(collective);
  return row.all_gather_phases && !row.reduce_scatter_phases;
}

Placement first_input(const Preparation& p) {
  if (begins_with_shards(p.request.collective)) {
    if (p.request.half) return Placement::direct(BufferId::kRecv, p.element_bytes);
    return Placement::shard(BufferId::kSend, p.element_bytes, p.own_shard());
  }
  return Placement::direct(BufferId::kSend, p.element_bytes);
}

Result<PreparedPhase> prepare_shard_phase(Preparation& p, ChunkState& chunk, const PhaseChoice& choice, bool last) {
  const bool scatter = choice.kind == PhaseKind::kReduceScatter;
  const uint32_t bit = choice.dimension == kFlat ? ~0u : 1u << choice.dimension;
  const uint32_t fixed = scatter ? chunk.split : chunk.split & ~bit;
  const Placement in = chunk.place;
  const Placement out = output_placement(p, chunk, choice, last, scatter ? fixed | bit : fixed);
  const bool same_memory = in.same_memory(out, p.request.in_place);
  const std::shared_ptr<const Plan> plan = TRY(plan_for(p, choice, same_memory));
  PreparedPhase phase = shard_phase(p, choice, chunk, in, out, fixed, plan->turned);
  phase.plan = plan;
  chunk.split = scatter ? chunk.split | bit : fixed;
  chunk.place = out;
  return phase;
}

Scatter scatter_of(const std::vector<ElementRange>& units, uint32_t element_bytes) {
  Scatter scatter{0, UINT64_MAX};
  for (const ElementRange& unit : units) {
    if (unit.count == 0) continue;
    ++scatter.units;
    scatter.shortest_bytes = std::min<uint64_t>(scatter.shortest_bytes, unit.count * element_bytes);
  }
  return scatter;
}

ChunkCut cut_of(Collective collective) {
  return has_block_per_rank(collective) ? ChunkCut::kCanonical : ChunkCut::kContiguous;
}

std::vector<ElementRange> units_of(const Preparation& p, uint32_t chunk) {
  if (has_pairwise_blocks(p.request.collective)) return {};  // known to two ranks each
  const auto cut = [&] {
    if (!p.shards.empty()) return chunk_units(p.result.schedule, chunk, p.shards, p.element_bytes);
    return chunk_units(p.result.schedule, chunk, *p.context.topology, p.elements, p.element_bytes, p.cut);
  };
  if (p.context.shared == nullptr) return cut();
  const auto [known, fresh] = p.context.shared->units.try_emplace(chunk);
  if (fresh) known->second = cut();
  return known->second;
}

// Another build may number its algorithms otherwise: their names are what has to be the same.
uint64_t hash_with_names(const Schedule& schedule, SharedPreparation* shared) {
  if (shared != nullptr && shared->schedule_hash) return *shared->schedule_hash;
  Hasher hasher;
  hasher.integer(hash(schedule));
  for (const ChunkSchedule& chunk : schedule.chunks) {
    for (const PhaseChoice& phase : chunk.phases) hasher.string(algorithms()[phase.algorithm].name);
  }
  if (shared != nullptr) shared->schedule_hash = hasher.digest();
  return hasher.digest();
}

// How many segments of its steps are in flight, and where those of a device lie.
void bind_window(PreparedPhase& phase, const PrepareRequest& request, const PrepareContext& context) {
  phase.turn_bytes = 2 * bytes_in_a_step(*context.topology, phase.choice.dimension);
  phase.segments_in_flight =
      context.in_flight == nullptr ? context.segments_in_flight : context.in_flight(context.self, phase.peers);
  if (request.place == MemoryPlace::kDevice)
    add_bounces(phase, {context.peer_paths, request.open_to_devices}, phase.segments_in_flight, context.bounce_bytes);
}

Status prepare_chunk(Preparation& p, uint32_t index) {
  const ChunkSchedule& schedule = p.result.schedule.chunks[index];
  ChunkState chunk;
  chunk.units = units_of(p, index);
  chunk.place = first_input(p);
  if (begins_with_shards(p.request.collective)) chunk.split = ~0u;
  std::vector<PreparedPhase>& phases = p.result.phases[index];
  for (size_t stage = 0; stage < schedule.phases.size(); ++stage) {
    const PhaseChoice& choice = schedule.phases[stage];
    const bool last = stage + 1 == schedule.phases.size();
    if (moves_shards(choice.kind)) {
      phases.push_back(TRY(prepare_shard_phase(p, chunk, choice, last)));
    } else if (choice.kind == PhaseKind::kAllToAll && choice.dimension != kFlat) {
      phases.push_back(TRY(prepare_regrouping_phase(p, chunk, choice, schedule.phases.size() - 1 - stage)));
    } else if (has_block_per_rank(choice.kind)) {
      phases.push_back(TRY(prepare_block_phase(p, chunk, choice)));
    } else {
      phases.push_back(TRY(prepare_whole_phase(p, chunk, choice, rooted_dimensions(schedule.phases, stage))));
    }
    const SegmentRule rule{p.context.segment_bytes(p.context.self, phases.back().peers),
                           p.context.segments_per_message};
    const bool any_pieces = !p.context.data || rule.per_message != 0;
    bind_steps(phases.back(), rule, any_pieces ? Scatter{} : scatter_of(chunk.units, p.element_bytes),
               p.result.staging_bytes);
    bind_window(phases.back(), p.request, p.context);
  }
  return p.request.op == ReduceOp::kAvg ? mark_average(phases, p.request.type, p.context) : Status();
}

}  // namespace

namespace {

// The input of a pre-multiplied sum is multiplied into the receive buffer where that is as long as the input. This
// makes the call one in place. Otherwise it is multiplied into staging, whether the caller's call is in place or not.
PrepareRequest with_scaled_input(PrepareRequest request, int32_t rank, Prepared& result) {
  if (request.op != kPreMulSum) return request;
  const CollectiveRow& row = row_of(request.collective);
  const bool as_long = row.received.extent == row.sent.extent && (!row.received.at_root_only || request.root == rank);
  const bool whole = as_long || request.half;
  request.in_place = whole;
  result.scaled = whole ? Prepared::Scaled::kIntoRecv : Prepared::Scaled::kIntoStaging;
  return request;
}

}  // namespace

Result<std::shared_ptr<const Prepared>> prepare(const PrepareRequest& asked, const Schedule& schedule,
                                                const PrepareContext& context) {
  if (asked.place == MemoryPlace::kDevice && is_user_defined(asked.op))
    return Error{
        Code::kInvalidUsage,
        "a user-defined reduction function runs on the host and cannot reach memory of a device: use buffers in "
        "host memory, or a built-in operator"};
  auto result = std::make_shared<Prepared>();
  const PrepareRequest request = with_scaled_input(asked, context.rank, *result);
  result->collective = request.collective;
  result->type = request.type;
  result->op = request.op;
  result->custom = request.custom;
  result->root = request.root;
  result->in_place = request.in_place;
  result->place = request.place;
  result->count = request.count;
  result->schedule = schedule;
  result->check = check_of(request, hash_with_names(schedule, context.shared));
  result->ranks = context.topology->ranks();
  result->data = context.data;
  result->phases.resize(schedule.chunks.size());
  for (const ChunkSchedule& chunk : schedule.chunks) {
    result->stages = std::max<uint32_t>(result->stages, chunk.phases.size());
  }
  Preparation p{request,
                context,
                *result,
                cut_of(request.collective),
                vector_elements(request, result->ranks),
                static_cast<uint32_t>(size_of(request.type)),
                {}};
  if (has_known_blocks(request.collective)) {
    p.shards = consecutive_ranges(known_blocks(*request.blocks, request.collective).counts);
  }
  for (uint32_t chunk = 0; chunk < schedule.chunks.size(); ++chunk) TRY(prepare_chunk(p, chunk));
  if (result->scaled == Prepared::Scaled::kIntoStaging) {
    result->scaled_offset = (result->staging_bytes + 63) / 64 * 64;
    result->staging_bytes = result->scaled_offset + p.elements * p.element_bytes;
  }
  count_bounces(*result);
  return std::shared_ptr<const Prepared>(std::move(result));
}

Result<std::shared_ptr<const Prepared>> prepare_point_to_point(const PrepareRequest& request, bool sending,
                                                               const PrepareContext& context) {
  auto result = std::make_shared<Prepared>();
  result->collective = Collective::kSendRecv;
  result->type = request.type;
  result->place = request.place;
  result->count = request.count;
  result->check = message_check(data_place(request));
  result->stages = 1;
  result->ranks = context.topology->ranks();
  const auto kind = sending ? PhaseKind::kSend : PhaseKind::kRecv;
  const Algorithm* direct = TRY(find_algorithm("direct"));
  const auto index = static_cast<uint16_t>(direct - algorithms().data());
  const PlanRequest plan{kind, 2, sending ? 0 : 1, 0, false};
  PreparedPhase phase;
  phase.choice = {kFlat, kind, index};
  phase.plan = TRY(find_plan(context, index, plan));
  phase.peers =
      sending ? std::vector<int32_t>{context.rank, request.peer} : std::vector<int32_t>{request.peer, context.rank};
  const auto element_bytes = static_cast<uint32_t>(size_of(request.type));
  TableBuilder table(Placement::direct(sending ? BufferId::kSend : BufferId::kRecv, element_bytes));
  for (uint32_t b = 0; b < phase.plan->blocks; ++b) {
    const ElementRange part = nth_range(request.count, phase.plan->blocks, b);
    phase.logical_bytes.push_back(part.count * element_bytes);
    table.open_block();
    table.add(static_cast<int32_t>(b), part);
  }
  (sending ? phase.input : phase.output) = table.take();
  bind_steps(phase, {context.segment_bytes(context.self, phase.peers)}, Scatter{}, result->staging_bytes);
  bind_window(phase, request, context);
  result->schedule.bytes = request.count * element_bytes;
  result->schedule.chunks = {{result->schedule.bytes, {phase.choice}}};
  result->schedule.orders = {{kFlat, 1, {{0, 0}}}};
  result->phases.resize(1);
  result->phases[0].push_back(std::move(phase));
  count_bounces(*result);
  return std::shared_ptr<const Prepared>(std::move(result));
}

std::string to_string(const Prepared& prepared) {
  std::string text = to_string(prepared.collective);
  if (!moves_data(prepared.collective)) return text;
  text += " of " + std::to_string(prepared.count) + " " + to_string(prepared.type);
  if (reduces(prepared.collective)) text += std::string(" (") + to_string(prepared.op) + ")";
  return text;
}

}  // namespace trestle
