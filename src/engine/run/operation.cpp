#include "engine/run/operation.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/text/value_text.h"
#include "engine/run/engine.h"

namespace trestle {

namespace {

// How long a rank is awaited before it gets a notice. A rank that is only late, and makes no other call, mostly comes
// sooner than that.
constexpr int64_t kTellAfterNs = 100'000'000;

}  // namespace

Operation::Operation(Engine& engine, std::shared_ptr<const Prepared> prepared)
    : engine_(engine), prepared_(std::move(prepared)) {
  const Schedule& schedule = prepared_->schedule;
  runs_.resize(prepared_->phases.size() * prepared_->stages);
  for (const auto& chunk : prepared_->phases) phases_ += static_cast<uint32_t>(chunk.size());
  next_stage_.resize(schedule.chunks.size());
  position_.resize(schedule.orders.size());
  in_flight_count_.resize(schedule.orders.size());
  free_bounces_.reserve(prepared_->bounce_blocks);
  if (!prepared_->data) touched_ = std::make_unique<bool[]>(schedule.chunks.size() * prepared_->stages);
}

void Operation::bind(const Region& send, const Region& recv, uint64_t number, int64_t timeout_ns,
                     OperationClaims claims) {
  buffer(BufferId::kSend) = send;
  buffer(BufferId::kRecv) = recv;
  number_ = number;
  timeout_ns_ = timeout_ns;
  deadline_ns_ = 0;
  phases_left_ = phases_;
  const bool is_complete = (prepared_->staging_bytes == 0 || claims.staging != nullptr) &&
                           (prepared_->bounce_bytes == 0 || claims.bounces != nullptr);
  CHECK(!on_device() || is_complete, "an operation on a device without the memory that it needs");
  claims_ = std::move(claims);
  free_bounces_.clear();
  for (size_t i = 0; i < prepared_->bounce_blocks && claims_.bounces != nullptr; ++i)
    free_bounces_.push_back(&claims_.bounces->block(i));
}

void Operation::activate(int64_t now_ns) {
  deadline_ns_ = timeout_ns_ > 0 ? now_ns + timeout_ns_ : 0;
  buffer(BufferId::kStaging) = {};
  if (prepared_->scaled != Prepared::Scaled::kNo) {
    unscaled_ = buffer(BufferId::kSend);
    if (prepared_->scaled == Prepared::Scaled::kIntoRecv) buffer(BufferId::kSend) = buffer(BufferId::kRecv);
    std::memcpy(scalar_.data(), prepared_->custom->scalar(), size_of(prepared_->type));
  }
  awaits_staging_ = prepared_->data && prepared_->staging_bytes != 0;
  if (awaits_staging_) take_staging();
  std::fill(next_stage_.begin(), next_stage_.end(), 0);
  std::fill(position_.begin(), position_.end(), 0);
  std::fill(in_flight_count_.begin(), in_flight_count_.end(), 0);
  in_flight_.clear();
  tell_ns_ = now_ns + kTellAfterNs;
  told_ = -1;
}

// False: every block of the host is lent.
bool Operation::take_staging() {
  if (!on_device()) {
    staging_ = engine_.staging().take(prepared_->staging_bytes);
    if (!staging_) return false;
  }
  awaits_staging_ = false;
  const Region& staging = on_device() ? claims_.staging->block(0) : staging_.region();
  buffer(BufferId::kStaging) = staging;
  if (prepared_->scaled == Prepared::Scaled::kIntoStaging) {
    buffer(BufferId::kSend) = staging.from(prepared_->scaled_offset);
  }
  return true;
}

PhaseRun& Operation::run_of(PhaseId id) {
  auto& run = runs_[phase_number(id)];
  if (!run) {
    const PreparedPhase& phase = prepared_->phases[id.chunk][id.stage];
    const bool queued = on_device() || engine_.has_work_queue();
    run = std::make_unique<PhaseRun>(phase, *prepared_, engine_.statistics(), queued,
                                     on_device() ? &free_bounces_ : nullptr);
  }
  return *run;
}

// A dimension starts its phases in the agreed order. The head of the order waits for its chunk's earlier phases, and
// everything behind it waits too. So all ranks start the same phases in the same order (Themis, section 4.6).
bool Operation::start_phases() {
  const Schedule& schedule = prepared_->schedule;
  bool started = false;
  for (uint32_t o = 0; o < schedule.orders.size(); ++o) {
    const DimensionOrder& order = schedule.orders[o];
    while (position_[o] < order.order.size() && in_flight_count_[o] < order.in_flight) {
      const PhaseId id = order.order[position_[o]];
      if (next_stage_[id.chunk] != id.stage) break;
      PhaseRun& run = run_of(id);
      const auto phase = static_cast<uint32_t>(phase_number(id));
      bool* const touched = touched_ ? &touched_[phase] : nullptr;
      run.start(buffers_, number_, phase, position_[o], touched);
      if (id.stage == 0 && prepared_->scaled != Prepared::Scaled::kNo) run.scale_first(unscaled_, scalar_.data());
      if (touched != nullptr) *touched = true;
      engine_.statistics().phase_started(run.dimensions());
      in_flight_.push_back({o, id, &run});
      ++position_[o];
      ++in_flight_count_[o];
      started = true;
    }
  }
  return started;
}

void Operation::finish_phase(const InFlight& phase) {
  ++next_stage_[phase.id.chunk];
  engine_.statistics().phase_ended(phase.run->dimensions());
  // A simulation of a thousand ranks runs each phase once: freeing its memory is worth more than reusing it.
  if (!prepared_->data) runs_[phase_number(phase.id)].reset();
  --in_flight_count_[phase.order];
  --phases_left_;
}

void Operation::abandon() {
  for (const InFlight& phase : in_flight_) {
    engine_.statistics().phase_ended(phase.run->dimensions());
    phase.run->abandon();
  }
  in_flight_.clear();
}

Result<bool> Operation::advance(Router router) {
  if (awaits_staging_ && !take_staging()) [[unlikely]]
    return false;
  // Only the end of a phase allows others to start. Those are advanced in the same call, behind the ones in flight.
  bool moved = in_flight_.empty() && start_phases();
  size_t kept = 0;
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    const InFlight phase = in_flight_[i];
    if (touched_ && !std::exchange(touched_[phase_number(phase.id)], false)) {
      in_flight_[kept++] = phase;
      continue;
    }
    const Result<bool> advanced = phase.run->advance(router);
    if (!advanced.ok()) {  // describe() must not find phases that are done
      in_flight_.erase(in_flight_.begin() + static_cast<std::ptrdiff_t>(kept),
                       in_flight_.begin() + static_cast<std::ptrdiff_t>(i));
      Error error = advanced.error();
      if (error.code == Code::kReductionFailed) error.message += " in " + name();
      return error;
    }
    moved |= advanced.value();
    if (phase.run->complete()) {
      finish_phase(phase);
      start_phases();
      moved = true;
    } else {
      in_flight_[kept++] = phase;
    }
  }
  in_flight_.resize(kept);
  return moved;
}

Status Operation::tell_awaited(int64_t now_ns, Router router) {
  // A rank that is late on the host's board finds the part of this one there.
  if (now_ns < tell_ns_ || (express_ && !on_device()) || is_point_to_point(prepared_->collective)) return {};
  if (!express_ && in_flight_.empty()) return {};
  tell_ns_ = now_ns + kTellAfterNs;
  const int32_t rank = awaited_rank();
  if (rank < 0 || rank == told_) return {};
  notice_ = {};
  notice_.peer = rank;
  notice_.tag = {number_, kNoticePhase, 0, 0, prepared_->check};
  if (TRY(router[rank]->post_send(notice_))) told_ = rank;
  return {};
}

OperationKey Operation::key() const {
  if (!is_point_to_point(prepared_->collective)) return {number_};
  const PreparedPhase& phase = prepared_->phases.front().front();
  const bool sending = phase.choice.kind == PhaseKind::kSend;
  return {number_, phase.peers[sending ? 1 : 0], sending};
}

int32_t Operation::awaited_rank() const {
  if (express_ && on_device()) return engine_.device_board()->awaited_rank(*express_);
  if (express_) return engine_.express()->awaited_rank(*express_);
  return in_flight_.empty() ? -1 : foremost().run->awaited_rank();
}

// While a user's function runs, the list may still contain finished phases behind those already advanced.
const Operation::InFlight& Operation::foremost() const {
  const auto found = std::find_if(in_flight_.begin(), in_flight_.end(),
                                  [](const InFlight& phase) { return phase.run->in_user_function(); });
  return found == in_flight_.end() ? in_flight_.front() : *found;
}

std::string Operation::timeout_text() const {
  return duration_text(timeout_ns_);
}

std::string Operation::name() const {
  return numbered("operation", number_) + " (" + to_string(*prepared_) + ")";
}

std::string Operation::describe() const {
  std::string text = name();
  if (express_ && on_device() && !express_->published) return text + ", awaiting an earlier call on another stream";
  if (express_) {
    const int32_t rank = awaited_rank();
    return rank < 0 ? text : text + ", awaiting the part of rank " + std::to_string(rank);
  }
  if (in_flight_.empty()) return text;
  const InFlight& phase = foremost();
  text += ", chunk " + std::to_string(phase.id.chunk) + ", phase " + std::to_string(phase.id.stage + 1) + " of " +
          std::to_string(prepared_->phases[phase.id.chunk].size());
  if (phase.run->in_user_function()) return text + ", inside its user-defined reduction function";
  return text + ", awaiting " + phase.run->awaited();
}

}  // namespace trestle
