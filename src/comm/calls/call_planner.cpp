#include "comm/calls/call_planner.h"

#include <utility>
#include <vector>

#include "base/log.h"
#include "comm/calls/call_log.h"
#include "kernels/cuda/parameters.h"
#include "sched/model/board_cost.h"
#include "sched/model/predict.h"
#include "sched/policy/policies.h"

namespace trestle {

namespace {

template <MemoryPlace kPlace>
uint64_t group_segment_bytes(const void* routing, const std::vector<int32_t>& group) {
  return static_cast<const Routing*>(routing)->group_segment_bytes(group, kPlace);
}

uint32_t segments_in_flight(const void* routing, const std::vector<int32_t>& group) {
  return static_cast<const Routing*>(routing)->divides(group) ? kSegmentsOverRails : kSegmentsInFlight;
}

static_assert(facts_of(MemoryPlace::kDevice).segment_bytes == kDeviceSegmentBytes,
              "the engine and the model cut data of devices alike");

// A rank without data does not know where the others have theirs.
MemoryPlace agreed_place(const PrepareRequest& request) {
  return has_pairwise_blocks(request.collective) ? MemoryPlace::kHost : request.place;
}

SelectionConfig selection_config(const Config& config) {
  return {config.algorithm, config.schedule, static_cast<uint32_t>(config.chunks),
          static_cast<uint32_t>(config.phases_in_flight), config.intra};
}

}  // namespace

bool CallPlanner::may_be_express(const SharedOptions& options) {
  // The express path has no algorithms.
  if (options->algorithm && !options->algorithm->empty()) return false;
  // Selection refuses an unknown policy.
  return !options->schedule || find_policy(*options->schedule).ok();
}

// Captured calls have no one order with the others. A deterministic call gives the same bits where there is no board of
// devices, because ranks have processes of their own.
bool CallPlanner::is_small_on_device(const PrepareRequest& request) const {
  if (request.peer >= 0 || request.captured || is_user_defined(request.op)) return false;
  if (request.options && (request.options->deterministic || !may_be_express(request.options))) return false;
  return engine_.device_board()->serves(request.collective, request.count * size_of(request.type), request.half);
}

Result<ScheduleCache::Entry> CallPlanner::schedule_for(const PrepareRequest& request) {
  SelectionRequest what;
  what.collective = request.collective;
  what.element_bytes = static_cast<uint32_t>(size_of(request.type));
  what.bytes = vector_elements(request, membership_.ranks()) * what.element_bytes;
  what.root = request.root;
  what.rank_order = request.op == kUserInOrder;
  if (request.place == MemoryPlace::kDevice) what.most_sources = kernels::kMostCudaSources;
  what.blocks = known_block_bytes(request);
  return schedule_for(what, request.options, agreed_place(request));
}

Result<ScheduleCache::Entry> CallPlanner::schedule_for(const SelectionRequest& what, const SharedOptions& options,
                                                       MemoryPlace place) {
  const std::string others = options.text() + (place == MemoryPlace::kDevice ? " in device memory" : "");
  return schedules_.get(what, others, [&]() -> Result<Schedule> {
    const bool nominal = options && options->deterministic;
    const Topology topology = membership_.topology_for(place, nominal);
    SelectionConfig selection = selection_config(membership_.settings().config);
    if (!options) return select_schedule(what, topology, selection);
    selection.algo = options->algorithm.value_or(selection.algo);
    selection.policy = options->schedule.value_or(selection.policy);
    if (options->chunks) selection.chunks = static_cast<uint32_t>(*options->chunks);
    TRY(validate(selection, topology));
    return select_schedule(what, topology, selection);
  });
}

// A call over the board that could not run at once becomes an operation, which needs a Prepared.
std::shared_ptr<const Prepared> CallPlanner::build_express(const PrepareRequest& request) const {
  auto express = std::make_shared<Prepared>();
  express->collective = request.collective;
  express->type = request.type;
  express->op = request.op;
  express->custom = request.custom;
  express->place = request.place;
  express->count = request.count;
  express->ranks = membership_.ranks();
  express->check = check_of(request, kOverBoard);
  return express;
}

Result<std::shared_ptr<const Prepared>> CallPlanner::build(const Call& call) {
  const Config& config = membership_.settings().config;
  const bool on_device = call.request.place == MemoryPlace::kDevice;
  const Topology topology = membership_.topology_for(agreed_place(call.request), false);
  const PrepareContext context{
      &topology,
      membership_.rank(),
      config.check_plans,
      on_device ? &group_segment_bytes<MemoryPlace::kDevice> : &group_segment_bytes<MemoryPlace::kHost>,
      &membership_.routing(),
      &plans_,
      &membership_.peer_paths(),
      &segments_in_flight};
  if (call.request.peer >= 0) return prepare_point_to_point(call.request, call.sending, context);
  if (is_express(call) || is_on_device_board(call)) return build_express(call.request);
  const ScheduleCache::Entry schedule = TRY(schedule_for(call.request));
  if (log_enabled(LogLevel::kInfo, Subsystem::kTuning)) log_schedule(membership_, topology, call.request, *schedule);
  auto prepared = TRY(trestle::prepare(call.request, *schedule, context));
  if (prepared->staging_bytes > static_cast<uint64_t>(config.staging_bytes)) {
    LOG(kInfo, kAlloc, "%s takes %llu bytes of staging, more than TRESTLE_STAGING (%lld)", to_string(*prepared).c_str(),
        static_cast<unsigned long long>(prepared->staging_bytes), static_cast<long long>(config.staging_bytes));
  }
  return prepared;
}

Result<PreparedCall> CallPlanner::prepare(const Call& call, const Lane& lane) {
  PreparedCall made;
  made.prepared = TRY(cache_.get({call.request, call.sending}, [&] { return build(call); }));
  made.claims = TRY(engine_.reserve(*made.prepared, lane));
  return made;
}

Result<std::unique_ptr<const HeldCall>> CallPlanner::hold(const Call& call, const Lane& lane) {
  auto held = std::make_unique<HeldCall>(PreparedKey{call.request, call.sending});
  const auto prepared = TRY(cache_.pin(held->key_, [&] { return build(call); }));
  held->cache_ = &cache_;
  if (call.request.place == MemoryPlace::kDevice) held->claims_ = TRY(engine_.reserve(*prepared, lane));
  return std::unique_ptr<const HeldCall>(std::move(held));
}

Result<double> CallPlanner::predict_us(Collective collective, uint64_t count, DataType type,
                                       const SharedOptions& options) {
  const int32_t ranks = membership_.ranks();
  Call call;
  call.request.collective = collective;
  call.request.count = count;
  call.request.type = type;
  call.request.options = options;
  if (is_express(call)) {
    const BoardOperation over_board{collective, count * size_of(type), ranks, membership_.ranks_per_processor()};
    return static_cast<double>(board_time_ps(over_board)) / 1e6;
  }
  SelectionRequest what{.collective = collective, .element_bytes = static_cast<uint32_t>(size_of(type))};
  // A v-variant counts as if all its blocks were equal.
  const uint64_t elements =
      has_uneven_blocks(collective) ? count * static_cast<uint64_t>(ranks) : vector_elements(call.request, ranks);
  what.bytes = elements * what.element_bytes;
  const ScheduleCache::Entry schedule = TRY(schedule_for(what, options, MemoryPlace::kHost));
  return static_cast<double>(predict_ns(*schedule, membership_.topology())) / 1000.0;
}

}  // namespace trestle
