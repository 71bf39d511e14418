#include "sched/model/steps_model.h"

#include <algorithm>

#include "base/check.h"
#include "base/wide.h"
#include "sched/model/steps_model_links.h"

namespace trestle {
namespace {

constexpr uint64_t kMostSegmentsOfMessage = 4096;

// bytes * blocks / (divisor * all) * factor / denominator, rounded up. `blocks` of the phase's `all` blocks are
// counted.
uint64_t scaled(PhaseBytes bytes, uint64_t blocks, uint64_t all, uint64_t factor, uint64_t denominator) {
  static constexpr Wide kMost = uint64_t{1} << 48;  // of picoseconds: 281 s
  const Wide above = Wide{bytes.bytes} * blocks;
  const Wide below = Wide{bytes.divisor} * all * denominator;
  if (above > ~Wide{0} / factor / 2) return static_cast<uint64_t>(kMost);
  return static_cast<uint64_t>(std::min(kMost, (above * factor + below - 1) / below));
}

uint64_t round_up_divide(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}

// Splits a time over segments. All but the last get a time proportional to their bytes; the last one gets the rest.
void split_time(uint64_t total_ps, uint64_t bytes, uint64_t segment_bytes, uint32_t segments, uint64_t& each,
                uint64_t& last) {
  each = segments == 1 ? total_ps : static_cast<uint64_t>(Wide{total_ps} * segment_bytes / bytes);
  last = total_ps - each * (segments - 1);
}

// A message of a chain.
struct Chained {
  uint64_t link_ps;
  uint64_t segments;
  uint64_t latency_ps;
  bool turns;       // ShapeMessage::turns
  uint32_t window;  // StepsOptions::window
};

// How long after a message the next one of its chain ends. It follows the first segment of the one before, or in turns
// the end of the one before that, and the window of both.
uint64_t chained_ps(const Chained& one) {
  const uint64_t segment_ps = one.link_ps / one.segments;
  if (!one.turns) return std::max(one.link_ps, one.latency_ps + segment_ps);
  uint64_t ps = std::max(one.link_ps, (one.latency_ps + one.link_ps) / 2);
  if (one.window != 0) ps = std::max(ps, one.segments * (one.latency_ps + segment_ps) / one.window);
  return ps;
}

// Fills in needs and followers: which segments of a message wait for which segments of others.
class Wiring {
 public:
  Wiring(const PhaseShape& shape, StepsPhase& phase)
      : shape_(shape), phase_(phase), followers_(shape.messages.size()) {}

  void wire() {
    for (uint32_t m = 0; m < shape_.messages.size(); ++m) wire_message(m);
    for (uint32_t m = 0; m < followers_.size(); ++m) {
      phase_.messages[m].first_follower = static_cast<uint32_t>(phase_.follower_list.size());
      phase_.messages[m].followers = static_cast<uint32_t>(followers_[m].size());
      phase_.follower_list.insert(phase_.follower_list.end(), followers_[m].begin(), followers_[m].end());
    }
  }

 private:
  void wire_message(uint32_t m) {
    const ShapeMessage& what = shape_.messages[m];
    StepsMessage& mine = phase_.messages[m];
    mine.first_wait = static_cast<uint32_t>(phase_.waits_for.size());
    mine.waits = what.dependencies;
    mine.first_need = static_cast<uint32_t>(phase_.needs.size());
    for (uint32_t d = 0; d < what.dependencies; ++d) {
      const ShapeDependency& edge = shape_.dependencies[what.first_dependency + d];
      phase_.waits_for.push_back(edge.message);
      std::vector<uint32_t>& known = followers_[edge.message];
      if (known.empty() || known.back() != m) known.push_back(m);
      for (uint32_t i = 0; i < mine.segments; ++i) phase_.needs.push_back(needed(m, edge, i));
    }
  }

  // The number of segments of edge.message that segment i of message m waits for. Positions are fractions of whole
  // messages, so that messages of merged chains are comparable.
  uint32_t needed(uint32_t m, const ShapeDependency& edge, uint32_t i) const {
    const uint64_t my_blocks = shape_.messages[m].blocks;
    const uint64_t its_blocks = shape_.messages[edge.message].blocks;
    const StepsMessage& mine = phase_.messages[m];
    const StepsMessage& its = phase_.messages[edge.message];
    if (edge.turn == ShapeDependency::Turn::kEnd) return its.segments;
    if (edge.turn == ShapeDependency::Turn::kWindow) {
      const uint32_t window = std::min(mine.window, its.segments + i + 1);
      return std::min(its.segments, its.segments + i + 1 - window);
    }
    // Ends of segments in units of 1 / (blocks * segments) of a message.
    const uint64_t upto = my_blocks * (i + 1);
    const uint64_t begin = edge.my_begin * mine.segments;
    const uint64_t end = edge.my_end * mine.segments;
    if (upto <= begin) return 0;
    const uint64_t position = edge.its_begin * mine.segments + std::min(upto, end) - begin;  // blocks * segments of m
    const Wide above = Wide{position} * its.segments;
    const Wide below = Wide{its_blocks} * mine.segments;
    return static_cast<uint32_t>(std::min<Wide>(its.segments, (above + below - 1) / below));
  }

  const PhaseShape& shape_;
  StepsPhase& phase_;
  std::vector<std::vector<uint32_t>> followers_;
};

}  // namespace

StepsModel::StepsModel(const Topology& topology, const StepsOptions& options, const BlockBytes& blocks)
    : topology_(topology), options_(options), uneven_(topology_, blocks), rails_(topology.dimensions.size() + 1) {
  std::vector<std::string> resources;
  Rail& flat = rails_.back();
  flat.cost = rail_cost(topology_, kFlat);
  flat.segments = options_.segments;
  for (size_t d = 0; d < topology_.dimensions.size(); ++d) {
    const Dimension& dimension = topology_.dimensions[d];
    Rail& rail = rails_[d];
    rail.cost = rail_cost(topology_, static_cast<uint8_t>(d));
    rail.segments = options_.segments;
    if (options_.rail_segments) {
      const uint64_t most = dimension.data ? dimension.data->segment_bytes : options_.segments.bytes;
      rail.segments.bytes = segment_bytes_at(dimension.bandwidth_mbps, most);
      flat.segments.bytes = d == 0 ? rail.segments.bytes : std::min(flat.segments.bytes, rail.segments.bytes);
    }
    if (dimension.shared_resource.empty()) continue;
    const auto known = std::find(resources.begin(), resources.end(), dimension.shared_resource);
    rail.resource = static_cast<uint8_t>(known - resources.begin());
    if (known == resources.end()) resources.push_back(dimension.shared_resource);
    rail.shared_ps_per_byte = dimension.shared_ps_per_byte;
    if (rail.shared_ps_per_byte <= flat.shared_ps_per_byte) continue;
    flat.shared_ps_per_byte = rail.shared_ps_per_byte;
    flat.resource = rail.resource;
  }
}

const StepsModel::Rail& StepsModel::rail(uint8_t dimension) const {
  if (dimension == kFlat) return rails_.back();
  CHECK(dimension + size_t{1} < rails_.size(), "the steps of a phase in a dimension that does not exist");
  return rails_[dimension];
}

const PhaseShape& StepsModel::shape(const PhaseChoice& choice, uint32_t fixed) {
  const bool uneven = uneven_.concerns(choice);
  const auto [known, fresh] =
      shapes_.try_emplace(ShapeKey{choice.dimension, choice.kind, choice.algorithm, uneven ? fixed : 0});
  if (fresh) {
    CHECK(choice.algorithm < algorithms().size(), "the steps of an algorithm that does not exist");
    const int32_t ranks = group_size(topology_, choice);
    PhaseShape& shape = known->second;
    const Algorithm& row = algorithms()[choice.algorithm];
    shape = uneven ? phase_shape(row, choice.kind, ranks, options_.most_messages, uneven_.cost(choice, fixed))
                   : phase_shape(row, choice.kind, ranks, options_.most_messages);
    if (regroups(choice) && !shape.messages.empty()) {
      shape.messages.front().reduced_blocks += shape.blocks / static_cast<uint64_t>(ranks);
    }
  }
  return known->second;
}

StepsMessage StepsModel::message(const Rail& rail, const PhaseShape& shape, const ShapeMessage& what,
                                 PhaseBytes bytes) const {
  StepsMessage result;
  const uint64_t count = uint64_t{what.copies} * what.in_turn;
  const uint64_t part_bytes = scaled(bytes, what.blocks, shape.blocks, 1, what.parts);
  const uint64_t real_segment = segment_bytes_of(rail.segments, part_bytes);
  const uint64_t real_segments = what.parts * segments_of(part_bytes, real_segment);
  // The number of segments of a message in the model, before it counts for all copies or merged messages.
  const uint64_t drawn = std::min<uint64_t>(real_segments, std::max(options_.most_segments, 1u));
  const uint64_t most = what.in_turn > 1 ? std::max<uint64_t>(drawn, 32) : kMostSegmentsOfMessage;
  result.segments = static_cast<uint32_t>(std::min(drawn * count, most));
  result.bytes = scaled(bytes, what.blocks * count, shape.blocks, 1, 1);
  const bool evenly = what.parts == 1 || part_bytes % real_segment == 0;
  const bool as_cut = result.segments == real_segments * count && count == 1 && evenly;
  const uint64_t segment =
      as_cut ? real_segment : std::max<uint64_t>(1, round_up_divide(result.bytes, result.segments));
  if (result.bytes <= segment * (result.segments - 1)) {  // rounding left no bytes for the last one
    result.segments = static_cast<uint32_t>(segments_of(result.bytes, segment));
  }
  const uint64_t lost_permille = options_.losses && shape.converges ? rail.cost.converging_permille : 0;
  uint64_t link_ps = with_losses(
      scaled(bytes, what.blocks * count, shape.blocks, kPsPerByteAtOneMbps, rail.cost.bandwidth_mbps), lost_permille);
  if (options_.overheads) {
    link_ps += real_segments * count * rail.cost.message_ns * kPsPerNs;
    link_ps += scaled(bytes, what.reduced_blocks, shape.blocks, kPsPerByteAtOneMbps, rail.cost.reduce_mbps);
  }
  split_time(link_ps, result.bytes, segment, result.segments, result.segment_ps, result.last_ps);
  const uint64_t shared_ps =
      with_losses(scaled(bytes, what.blocks * count, shape.blocks, std::max<uint64_t>(rail.shared_ps_per_byte, 1), 1),
                  lost_permille);
  split_time(rail.resource == kNoResource || rail.shared_ps_per_byte == 0 ? 0 : shared_ps, result.bytes, segment,
             result.segments, result.resource_segment_ps, result.resource_last_ps);
  const uint64_t latency_ps = rail.cost.latency_ns * kPsPerNs;
  result.delay_ps = latency_ps + (what.hops - 1) * (latency_ps + result.segment_ps);
  if (what.in_turn > 1) {
    const Chained one{link_ps / count, real_segments, latency_ps, what.turns, options_.window};
    const uint64_t together_ps = chained_ps(one) * what.in_turn;
    result.delay_ps = std::max(latency_ps, together_ps - std::min(together_ps, result.segment_ps));
  }
  if (options_.window != 0 && !what.turns) {  // chained_ps() has counted it for those that take turns
    const uint64_t window = round_up_divide(options_.window * count * result.segments, real_segments * count);
    // Every hop has a window of its own, and a segment of the model has arrived only after the last hop.
    const uint64_t over_all_hops = std::max<uint64_t>(1, window) * what.hops;
    result.window = static_cast<uint32_t>(std::min<uint64_t>(over_all_hops, UINT32_MAX));
  }
  return result;
}

const StepsPhase& StepsModel::phase(const PhaseChoice& choice, PhaseBytes bytes) {
  const PhaseKey key{choice.dimension, choice.kind, choice.algorithm, bytes.bytes, bytes.divisor, bytes.fixed};
  const auto [known, fresh] = phases_.try_emplace(key);
  StepsPhase& result = known->second;
  if (!fresh) return result;
  const PhaseShape& form = shape(choice, bytes.fixed);
  const Rail& where = rail(choice.dimension);
  result.resource = where.shared_ps_per_byte == 0 ? kNoResource : where.resource;
  for (const ShapeMessage& what : form.messages) result.messages.push_back(message(where, form, what, bytes));
  Wiring(form, result).wire();
  return result;
}

StepsResult StepsModel::run(const Schedule& schedule) {
  std::vector<std::vector<const StepsPhase*>> phases;
  size_t count = 0;
  for (const ChunkSchedule& chunk : schedule.chunks) {
    PhaseWalk walk(topology_, chunk.bytes, chunk.phases);
    std::vector<const StepsPhase*>& list = phases.emplace_back();
    for (const PhaseChoice& choice : chunk.phases) list.push_back(&phase(choice, walk.next(choice)));
    count += list.size();
  }
  size_t ordered = 0;
  for (const DimensionOrder& order : schedule.orders) ordered += order.order.size();
  CHECK(ordered == count, "a schedule whose orders do not hold each phase once");
  return run_links(schedule, phases, options_.intervals);
}

}  // namespace trestle
