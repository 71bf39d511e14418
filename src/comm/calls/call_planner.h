// CallPlanner: what a call needs before it can be submitted: the path that it takes, its schedule, and everything about
// it but the addresses of its buffers. Also predicts how long a call takes.
//
// Owned by the communicator's CallPath. Any thread; the caches have locks of their own, under which they plan.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "comm/calls/call.h"
#include "comm/calls/prepared_cache.h"
#include "comm/calls/schedule_cache.h"
#include "comm/membership/membership.h"
#include "engine/prepare/plan_cache.h"
#include "engine/run/engine.h"

namespace trestle {

// A call that may be queued: nothing that it needs is missing.
struct PreparedCall {
  std::shared_ptr<const Prepared> prepared;
  OperationClaims claims;
};

// What a call that will be made again keeps until this ends: its plans, and on a device the memory that it needs on its
// lane. Used by one thread at a time; the planner outlives it.
class HeldCall {
 public:
  explicit HeldCall(PreparedKey key) : key_(std::move(key)) {}
  HeldCall(const HeldCall&) = delete;
  HeldCall& operator=(const HeldCall&) = delete;
  ~HeldCall() {
    if (cache_ != nullptr) cache_->unpin(key_);
  }

 private:
  friend class CallPlanner;
  const PreparedKey key_;
  PreparedCache* cache_ = nullptr;  // once it has the key
  OperationClaims claims_;
};

class CallPlanner {
 public:
  // Both outlive it.
  CallPlanner(const Membership& membership, Engine& engine) : membership_(membership), engine_(engine) {}
  CallPlanner(const CallPlanner&) = delete;
  CallPlanner& operator=(const CallPlanner&) = delete;

  // Whether the call goes over the board, which serves small collectives and has no algorithms. Inline: every small
  // call asks.
  bool is_express(const Call& call) const {
    const PrepareRequest& r = call.request;
    if (r.peer >= 0 || engine_.express() == nullptr || is_user_defined(r.op)) return false;
    if (r.captured) return false;                     // the board's calls come in one order
    if (r.place != MemoryPlace::kHost) return false;  // the calling thread reads and writes the buffers
    if (r.options && !may_be_express(r.options)) return false;
    return engine_.express()->serves(r.collective, r.count * size_of(r.type), r.half);
  }

  // Whether the call goes over the board of devices.
  bool is_on_device_board(const Call& call) const {
    if (call.request.place != MemoryPlace::kDevice || engine_.device_board() == nullptr) return false;
    return is_small_on_device(call.request);
  }

  // From the cache, or built now. The engine has staging for it on the lane. Errors: the call's options fit no
  // schedule; the device has no memory.
  Result<PreparedCall> prepare(const Call& call, const Lane& lane);
  // For a call that will be made again: prepare() then plans nothing and asks no driver. Errors as there.
  Result<std::unique_ptr<const HeldCall>> hold(const Call& call, const Lane& lane);
  // An operator was removed: drops what was prepared for it, except what is held.
  void forget_op(const CustomOp* op) { cache_.drop(op); }

  // `count` as the C call counts; a v-variant as if all blocks had `count` elements.
  Result<double> predict_us(Collective collective, uint64_t count, DataType type, const SharedOptions& options);

 private:
  static bool may_be_express(const SharedOptions& options);
  bool is_small_on_device(const PrepareRequest& request) const;
  Result<ScheduleCache::Entry> schedule_for(const PrepareRequest& request);
  // place: of the data, as all ranks know it.
  Result<ScheduleCache::Entry> schedule_for(const SelectionRequest& what, const SharedOptions& options,
                                            MemoryPlace place);
  Result<std::shared_ptr<const Prepared>> build(const Call& call);
  std::shared_ptr<const Prepared> build_express(const PrepareRequest& request) const;

  const Membership& membership_;
  Engine& engine_;
  PlanCache plans_;
  ScheduleCache schedules_;
  PreparedCache cache_{[this](const Prepared* prepared) { engine_.forget(prepared); }};
};

}  // namespace trestle
