#include "sched/select/select.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/transport_kinds.h"
#include "sched/model/algo_rules.h"
#include "sched/model/algorithm_choice.h"
#include "sched/model/second_level.h"
#include "sched/policy/chunk_sizes.h"
#include "sched/policy/policies.h"
#include "sched/select/by_dimension.h"

namespace trestle {
namespace {

// The prediction tries no more. TRESTLE_CHUNKS may ask for more.
constexpr uint32_t kMostChunks = 64;
constexpr uint32_t kMostForcedChunks = 1024;
constexpr uint32_t kFewestPieces = 4;                         // granules of unequal chunks per equal chunk
constexpr uint64_t kFewestMessageBytes = uint64_t{64} << 10;  // chunking makes no smaller messages

// The parts of a collective: one flat phase (of any of these kinds), reduce-scatter and all-gather phases, or either.
struct Shape {
  std::vector<PhaseKind> flat;
  bool reduce_scatter = false;
  bool all_gather = false;
};

Shape shape_of(Collective collective, bool decoupled) {
  const CollectiveRow& row = row_of(collective);
  Shape shape{{}, row.reduce_scatter_phases, row.all_gather_phases};
  const bool halves = decoupled && row.reduce_scatter_phases && row.all_gather_phases;
  if (!halves) shape.flat.assign(row.whole.begin(), row.whole.end());
  return shape;
}

ReduceDemands demands_of(const SelectionRequest& request) {
  return {request.rank_order, request.most_sources};
}

class Selector {
 public:
  Selector(const SelectionRequest& request, const Topology& topology, const SelectionConfig& config,
           const AlgorithmRule* rule, const Policy& policy, PriorityRule intra)
      : request_(request),
        topology_(topology),
        config_(config),
        policy_(policy),
        intra_(intra),
        shape_(shape_of(request.collective, request.decoupled)),
        model_(topology, request.blocks),
        choice_(rule, model_, demands_of(request)),
        ways_(possible_ways()) {}

  // Whether the rule allows any way to run this collective.
  bool possible() const {
    const auto flat_possible = [&](PhaseKind kind) { return choice_.possible(kind, kFlat); };
    return std::ranges::any_of(shape_.flat, flat_possible) || phases_possible(all_dimensions()) ||
           phases_possible({kFlat}) || !ways_.empty();
  }

  // If `candidates` is not nullptr, lists the candidates there.
  Schedule select(std::vector<SelectionCandidate>* candidates = nullptr) {
    candidates_ = candidates;
    if (topology_.ranks() == 1) return alone();
    if (has_second_level(request_.bytes)) second_level_.emplace(topology_, request_.blocks);
    const std::vector<uint8_t> dimensions = all_dimensions();
    const bool hierarchical = phases_possible(dimensions);
    // A list per dimension asks for phases per dimension if these are possible. Of these it asks for the ones that
    // split the data on as many dimensions as its algorithms can.
    const bool asked = (hierarchical || !ways_.empty()) && dimensions.size() > 1 && choice_.per_dimension();
    for (const PhaseKind kind : shape_.flat) {
      if (!asked) try_flat(kind);
    }
    if (shape_.flat.empty() && !asked && (dimensions.size() > 1 || !hierarchical) && phases_possible({kFlat})) {
      try_phases({kFlat}, 1);
      try_uniform({kFlat});
    }
    // Planned first, because policies with a search search only for schedules that may beat all others.
    std::vector<PlannedSchedule> by_dimension;
    if (asked && !hierarchical) {
      plan_way(ways_.front(), by_dimension);
    } else if (!asked) {
      for (const std::vector<PhaseChoice>& way : ways_) plan_way(way, by_dimension);
    }
    if (hierarchical) try_uniform(dimensions);
    for (const std::vector<PlannedSchedule>* list : {&common_, &uniform_, &by_dimension}) {
      for (const PlannedSchedule& planned : *list) {
        if (to_beat_ticks_ == 0 || planned.time_ticks < to_beat_ticks_) to_beat_ticks_ = planned.time_ticks;
      }
    }
    if (hierarchical) {
      const bool once = policy_.chooses_chunks && config_.chunks == 0;
      for (uint32_t chunks = once ? most_chunks() : 1; chunks <= most_chunks(); chunks *= 2) {
        try_phases(dimensions, chunks);
      }
    }
    return decide(std::move(by_dimension));
  }

 private:
  std::vector<uint8_t> all_dimensions() const {
    std::vector<uint8_t> dimensions;
    if (choice_.flat()) return dimensions;
    for (size_t d = 0; d < topology_.dimensions.size(); ++d) dimensions.push_back(static_cast<uint8_t>(d));
    return dimensions;
  }

  bool phases_possible(const std::vector<uint8_t>& dimensions) const {
    if (!shape_.reduce_scatter && !shape_.all_gather) return false;
    return !dimensions.empty() && std::ranges::all_of(dimensions, [&](uint8_t d) {
      return (!shape_.reduce_scatter || choice_.possible(PhaseKind::kReduceScatter, d)) &&
             (!shape_.all_gather || choice_.possible(PhaseKind::kAllGather, d));
    });
  }

  std::vector<std::vector<PhaseChoice>> possible_ways() const {
    if (request_.decoupled || choice_.flat()) return {};
    std::vector<std::vector<PhaseChoice>> ways = ways_by_dimension(request_.collective, topology_.dimensions.size());
    std::erase_if(ways, [&](const std::vector<PhaseChoice>& way) {
      return std::ranges::any_of(way, [&](const PhaseChoice& p) {
        return std::ranges::none_of(kinds_for(p), [&](PhaseKind kind) { return choice_.possible(kind, p.dimension); });
      });
    });
    return ways;
  }

  // The kinds that can serve a phase of a way over the dimensions. If several kinds can serve the whole collective (a
  // barrier), each can serve a part.
  std::vector<PhaseKind> kinds_for(const PhaseChoice& phase) const {
    const bool whole = std::ranges::find(shape_.flat, phase.kind) != shape_.flat.end();
    return whole ? shape_.flat : std::vector<PhaseKind>{phase.kind};
  }

  PhaseChoice cheapest(const PhaseChoice& phase, PhaseBytes bytes) {
    std::optional<PhaseChoice> best;
    for (const PhaseKind kind : kinds_for(phase)) {
      if (!choice_.possible(kind, phase.dimension)) continue;
      const PhaseChoice choice = choice_.cheapest(kind, phase.dimension, bytes);
      if (!best || model_.alone_ticks(choice, bytes) < model_.alone_ticks(*best, bytes)) best = choice;
    }
    CHECK(best.has_value(), "a way over the dimensions that nothing serves");
    return *best;
  }

  // The smallest messages occur when the data is scattered over all ranks, or over a group if only groups scatter.
  uint32_t most_chunks() const {
    if (config_.chunks != 0) return 1;  // one attempt, with the requested number
    int32_t parts = topology_.ranks();
    if (has_root(request_.collective)) {
      parts = std::ranges::max_element(topology_.dimensions, {}, &Dimension::size)->size;
    }
    const uint64_t most = request_.bytes / static_cast<uint64_t>(parts) / kFewestMessageBytes;
    return static_cast<uint32_t>(std::clamp<uint64_t>(most, 1, kMostChunks));
  }

  std::vector<uint64_t> chunk_sizes(uint32_t chunks) const {
    const bool whole_blocks = shape_.flat.empty();
    const auto ranks = static_cast<uint32_t>(topology_.ranks());
    // Takes fewer chunks rather than messages without an element. Twice, because the smallest part is at least half of
    // the mean.
    const uint64_t most = std::max<uint64_t>(1, request_.bytes / request_.element_bytes / (uint64_t{2} * ranks));
    const uint64_t count = std::min<uint64_t>(config_.chunks != 0 ? config_.chunks : chunks, most);
    return equal_chunks(request_.bytes, static_cast<uint32_t>(count), request_.element_bytes, ranks, whole_blocks);
  }

  // Judges the candidates of all policies and those of this policy separately, so that the former are the same for all
  // policies. Ties go to reduce-scatter and all-gather, not to phases of whole data over the dimensions. If a shared
  // resource decides, both have the same prediction. But phases of whole data take longer, because every rank adds up
  // everything (all-reduce of 64 MiB by 8 processes on two cores, 4x2 over shm and tcp: 139 against 104 ms).
  Schedule decide(std::vector<PlannedSchedule> by_dimension) {
    const auto has = [](const std::vector<PlannedSchedule>& list, const PlannedSchedule& planned) {
      return std::ranges::find(list, planned.schedule, &PlannedSchedule::schedule) != list.end();
    };
    std::erase_if(uniform_, [&](const PlannedSchedule& one) { return has(common_, one) || has(ordered_, one); });
    if (second_level_) {
      second_level_->judge(uniform_, kEvaluations);
      second_level_->judge(common_, kEvaluations);
      second_level_->judge(by_dimension, kEvaluations);
      if (!policy_.chooses_chunks) second_level_->judge(ordered_, kEvaluations);
    }
    for (PlannedSchedule& planned : common_) consider(std::move(planned), false);
    for (PlannedSchedule& planned : ordered_) consider(std::move(planned), true);
    for (PlannedSchedule& planned : uniform_) consider(std::move(planned), false);
    for (PlannedSchedule& planned : by_dimension) consider(std::move(planned), false);
    CHECK(best_.has_value(), "a selection without a candidate");
    if (candidates_ != nullptr) (*candidates_)[chosen_].chosen = true;
    return std::move(best_->schedule);
  }

  void consider(PlannedSchedule planned, bool ordered) {
    if (candidates_ != nullptr) candidates_->push_back({planned.schedule, planned.time_ticks, ordered, false});
    if (best_ && !beats(planned, *best_)) return;
    chosen_ = candidates_ == nullptr ? 0 : candidates_->size() - 1;
    best_ = std::move(planned);
  }

  // On one dimension, segments of one phase overlap as well as chunks do. Over several rails they do it better:
  // whenever a phase ends, rails run empty one after the other (all-reduce of 4 MiB by 4 hosts over 1000 and 500
  // Mbit/s: a ring over all ranks reaches 0.99 of both, the same ring in two chunks of two phases 0.93). So ties go to
  // few phases.
  bool beats(const PlannedSchedule& planned, const PlannedSchedule& best) const {
    const bool ties = planned.time_ticks == best.time_ticks && planned.slow_ticks == best.slow_ticks;
    const auto phases = [](const PlannedSchedule& one) {
      return one.schedule.chunks.size() * one.schedule.chunks.front().phases.size();
    };
    if (ties && is_one_network() && phases(planned) != phases(best)) return phases(planned) < phases(best);
    return is_faster(planned, best);
  }

  // Not where the processors that ranks share limit them: chunks give these more to do (4 ranks of a host over tcp, two
  // processors, the same 4 MiB: 8.0 ms in one phase, 4.8 ms in two chunks).
  bool is_one_network() const {
    if (topology_.dimensions.size() != 1) return false;
    const Dimension& only = topology_.dimensions.front();
    const bool network = only.transport != TransportKind::kAuto && facts_of(only.transport).has_interfaces;
    return only.unknown_network || (network && only.shared_resource.empty());
  }

  void try_flat(PhaseKind kind) {
    // An all-to-all, gather or scatter has no chunks, because each of its blocks is already a message.
    const std::vector<uint64_t> sizes =
        has_block_per_rank(kind) ? std::vector<uint64_t>{request_.bytes} : chunk_sizes(1);
    for (const uint16_t algorithm : choice_.allowed(kind, kFlat)) {
      std::vector<ChunkSchedule> chunks;
      for (const uint64_t bytes : sizes) chunks.push_back({bytes, {{kFlat, kind, algorithm}}});
      common_.push_back(order_phases(request_.bytes, std::move(chunks), model_, first_in_first_out, config_.in_flight));
    }
  }

  void try_phases(const std::vector<uint8_t>& dimensions, uint32_t chunks) {
    PolicyRequest request{choice_, dimensions};
    request.reduce_scatter = shape_.reduce_scatter;
    request.all_gather = shape_.all_gather;
    request.bytes = request_.bytes;
    request.chunk_bytes = chunk_sizes(chunks);
    request.in_flight = config_.in_flight;
    request.intra = intra_;
    if (config_.chunks == 0) request.most_chunks = chunks;
    // No message is empty, however many chunks were requested.
    const uint64_t fewest_message_bytes = config_.chunks == 0 ? kFewestMessageBytes : request_.element_bytes;
    request.fewest_bytes = fewest_message_bytes * static_cast<uint64_t>(topology_.ranks());
    request.to_beat_ticks = to_beat_ticks_;
    // The smallest unequal chunks are a fraction of equal ones. They are slices of every block of a reduce-scatter's
    // layout.
    const auto pieces = static_cast<uint32_t>(kFewestPieces * request.chunk_bytes.size());
    request.granule = chunk_granule(request_.bytes, pieces, request_.element_bytes,
                                    static_cast<uint32_t>(topology_.ranks()), shape_.flat.empty());
    const bool over_dimensions = dimensions.front() != kFlat;
    if (second_level_ && over_dimensions) request.second_level = &*second_level_;
    (over_dimensions ? ordered_ : common_).push_back(policy_.plan(request));
  }

  // Tries one algorithm for all phases. The cheapest algorithms of the single phases need not be the fastest together,
  // because phases share resources and, from kSecondLevelBytes on, links too.
  void try_uniform(const std::vector<uint8_t>& dimensions) {
    std::vector<PhaseChoice> phases;
    for (const uint8_t d : dimensions) {
      if (shape_.reduce_scatter) phases.push_back({d, PhaseKind::kReduceScatter, 0});
    }
    for (size_t i = dimensions.size(); i-- > 0;) {
      if (shape_.all_gather) phases.push_back({dimensions[i], PhaseKind::kAllGather, 0});
    }
    for (uint16_t algorithm = 0; algorithm < algorithms().size(); ++algorithm) {
      const bool serves = std::ranges::all_of(phases, [&](const PhaseChoice& phase) {
        const std::vector<uint16_t> allowed = choice_.allowed(phase.kind, phase.dimension);
        return std::ranges::find(allowed, algorithm) != allowed.end();
      });
      if (!serves) continue;
      for (PhaseChoice& phase : phases) phase.algorithm = algorithm;
      std::vector<ChunkSchedule> chunks;
      for (const uint64_t bytes : chunk_sizes(1)) chunks.push_back({bytes, phases});
      uniform_.push_back(
          order_phases(request_.bytes, std::move(chunks), model_, first_in_first_out, config_.in_flight));
    }
  }

  // Plans phases over the dimensions, first in first out, for all numbers of chunks.
  void plan_way(std::vector<PhaseChoice> way, std::vector<PlannedSchedule>& planned) {
    for (uint32_t count = 1; count <= most_chunks(); count *= 2) {
      const std::vector<uint64_t> sizes = chunk_sizes(count);
      PhaseWalk walk(topology_, sizes.front(), way);
      for (PhaseChoice& phase : way) phase = cheapest(phase, walk.next(phase));
      std::vector<ChunkSchedule> chunks;
      for (const uint64_t bytes : sizes) chunks.push_back({bytes, way});
      planned.push_back(order_phases(request_.bytes, std::move(chunks), model_, first_in_first_out, config_.in_flight));
    }
  }

  // With one rank nothing moves, but there must be a schedule to run.
  Schedule alone() {
    uint16_t direct = 0;
    while (direct + size_t{1} < algorithms().size() && algorithms()[direct].name != "direct") ++direct;
    std::vector<PhaseChoice> phases;
    if (!shape_.flat.empty()) {
      phases.push_back({kFlat, shape_.flat.front(), direct});
    } else {
      if (shape_.reduce_scatter) phases.push_back({kFlat, PhaseKind::kReduceScatter, direct});
      if (shape_.all_gather) phases.push_back({kFlat, PhaseKind::kAllGather, direct});
    }
    return order_phases(request_.bytes, {{request_.bytes, phases}}, model_, first_in_first_out, config_.in_flight)
        .schedule;
  }

  const SelectionRequest& request_;
  const Topology& topology_;
  const SelectionConfig& config_;
  const Policy& policy_;
  const PriorityRule intra_;
  const Shape shape_;
  CostModel model_;
  AlgorithmChoice choice_;
  const std::vector<std::vector<PhaseChoice>> ways_;  // over the dimensions; some phases may move whole data
  std::optional<SecondLevel> second_level_;
  std::vector<PlannedSchedule> common_;   // for any policy
  std::vector<PlannedSchedule> uniform_;  // for any policy, with one algorithm each
  std::vector<PlannedSchedule> ordered_;  // over the dimensions, by this policy
  std::optional<PlannedSchedule> best_;
  size_t chosen_ = 0;           // index in candidates_
  uint64_t to_beat_ticks_ = 0;  // best time without the policy
  std::vector<SelectionCandidate>* candidates_ = nullptr;
};

Error cannot_serve(const AlgorithmRule& rule, const SelectionRequest& request, const Topology& topology) {
  const Shape shape = shape_of(request.collective, request.decoupled);
  std::string names;
  if (!shape.flat.empty()) {
    names = serving_any(shape.flat, topology.ranks(), demands_of(request));
  } else {
    std::vector<PhaseKind> kinds;
    if (shape.reduce_scatter) kinds.push_back(PhaseKind::kReduceScatter);
    if (shape.all_gather) kinds.push_back(PhaseKind::kAllGather);
    names = serving_all(kinds, topology.ranks(), demands_of(request));
  }
  std::string what = std::string(to_string(request.collective)) + (request.decoupled ? " in two halves" : "") +
                     (request.rank_order ? " in rank order" : "") + " of " + std::to_string(topology.ranks()) +
                     " ranks";
  if (request.most_sources != 0) {
    what += " with at most " + std::to_string(request.most_sources) + " sources of one reduction (memory of a GPU)";
  }
  return Error{Code::kInvalidArgument, "TRESTLE_ALGO: '" + rule.text + "' " +
                                           (rule.exclude ? "leaves no algorithm for " : "cannot serve ") + what +
                                           "; those that can:" + names};
}

Status check_request(const SelectionRequest& request) {
  CHECK(is_valid(request.collective), "a selection for an unknown collective");
  if (is_point_to_point(request.collective)) {
    return Error{Code::kInvalidUsage, "point-to-point messages have no schedule"};
  }
  CHECK(request.element_bytes > 0, "a selection for elements of no bytes");
  CHECK(request.bytes % request.element_bytes == 0, "a selection for a part of an element");
  CHECK(request.blocks.empty() || has_known_blocks(request.collective), "lengths of blocks that are all alike");
  return {};
}

// Whether an entry for a collective can serve it on this topology.
bool can_serve(const AlgorithmRule& rule, Collective collective, const Topology& topology, const Policy& policy) {
  SelectionRequest request;
  request.collective = collective;
  const SelectionConfig config;
  return Selector(request, topology, config, &rule, policy, first_in_first_out).possible();
}

}  // namespace

Status validate(const SelectionConfig& config, const Topology& topology) {
  const Policy* policy = TRY(find_policy(config.policy));
  TRY(find_priority_rule(config.intra));
  if (config.chunks > kMostForcedChunks) {
    return Error{Code::kInvalidArgument, "TRESTLE_CHUNKS: " + std::to_string(config.chunks) + " is more than " +
                                             std::to_string(kMostForcedChunks)};
  }
  const AlgorithmRules rules = TRY(AlgorithmRules::parse(config.algo));
  if (topology.ranks() == 1) return {};
  for (const AlgorithmRules::Entry& entry : rules.entries()) {
    bool served = false;
    for (size_t c = 0; c < kCollectives && !served; ++c) {
      const auto collective = static_cast<Collective>(c);
      if (entry.collective.value_or(collective) != collective) continue;
      served = can_serve(entry.rule, collective, topology, *policy);
    }
    if (served) continue;
    SelectionRequest request;
    if (entry.collective) request.collective = *entry.collective;
    return cannot_serve(entry.rule, request, topology);
  }
  return {};
}

namespace {

Result<Schedule> select_from(const SelectionRequest& request, const Topology& topology, const SelectionConfig& config,
                             std::vector<SelectionCandidate>* candidates) {
  TRY(check_request(request));
  const Policy* policy = TRY(find_policy(config.policy));
  if (request.rank_order) policy = TRY(find_policy("baseline"));
  const PriorityRule intra = TRY(find_priority_rule(config.intra));
  const AlgorithmRules rules = TRY(AlgorithmRules::parse(config.algo));
  const AlgorithmRules::Entry* entry = rules.find(request.collective, request.bytes);
  const AlgorithmRule* rule = entry == nullptr ? nullptr : &entry->rule;
  Selector selector(request, topology, config, rule, *policy, intra);
  if (topology.ranks() == 1 || selector.possible()) return selector.select(candidates);
  // A barrier moves no data. If a rule for all collectives cannot serve it, the rule is not meant for it.
  if (entry != nullptr && !entry->collective && !moves_data(request.collective)) {
    return Selector(request, topology, config, nullptr, *policy, intra).select(candidates);
  }
  CHECK(rule != nullptr, "no algorithm serves a collective");
  return cannot_serve(*rule, request, topology);
}

}  // namespace

Result<Schedule> select_schedule(const SelectionRequest& request, const Topology& topology,
                                 const SelectionConfig& config) {
  return select_from(request, topology, config, nullptr);
}

Result<std::vector<SelectionCandidate>> selection_candidates(const SelectionRequest& request, const Topology& topology,
                                                             const SelectionConfig& config) {
  std::vector<SelectionCandidate> candidates;
  TRY(select_from(request, topology, config, &candidates));
  return candidates;
}

}  // namespace trestle
