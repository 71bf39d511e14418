// Operation: one started collective of one rank: the state of a Prepared bound to buffers.
//
// Owned by the engine, which pools them per Prepared. Driven under the rank's progress lock once it is active. Until
// then it waits in its stream's queue, and other threads read only what its creation and bind() have set.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cpu/prefetch.h"
#include "base/overdue.h"
#include "engine/prepare/prepared.h"
#include "engine/run/phase_run.h"
#include "express/express.h"
#include "memory/claims.h"
#include "memory/staging.h"

namespace trestle {

class Engine;
class Stream;
struct StreamItem;

// What an operation on a device has from before it is queued until it ends. One in host memory has none of it.
struct OperationClaims {
  std::shared_ptr<const Claim> staging;  // of the device: one block, if there are partial results
  std::shared_ptr<const Claim> bounces;  // pinned: for its messages
};

class Operation {
 public:
  Operation(Engine& engine, std::shared_ptr<const Prepared> prepared);

  Engine& engine() { return engine_; }
  const Prepared& prepared() const { return *prepared_; }
  // Part of issuing a call, so it takes the same time for any size.
  void bind(const Region& send, const Region& recv, uint64_t number, int64_t timeout_ns, OperationClaims claims = {});

  // Activation: the phases may start from now on, or as soon as there is staging for them. Allocates nothing.
  void activate(int64_t now_ns);
  // Fetches the memory that issuing a call in phases touches.
  void prefetch_for_issue() const { prefetch(this, &unscaled_); }
  // The operation is active, but has not got the staging that it needs yet: StagingPool::chores() allocates it. No
  // event tells when that is done, so an engine does not sleep meanwhile. Operations on device memory have theirs from
  // bind() on.
  bool awaits_staging() const { return awaits_staging_; }
  // Its buffers are on the engine's device.
  bool on_device() const { return prepared_->place == MemoryPlace::kDevice; }
  // Starts phases in the agreed order of every dimension, and advances those in flight, oldest first. True if anything
  // moved.
  Result<bool> advance(Router router);
  bool complete() const { return phases_left_ == 0; }
  // If one rank has been awaited for a while: sends it a notice that says for which call. If that rank runs another
  // call, neither side might ever send a message that reaches the other. Calling it now and then is enough.
  Status tell_awaited(int64_t now_ns, Router router);
  // Runs the operation over the express board instead of in phases.
  void make_express(const ExpressCall& call) {
    express_ = call;
    phases_left_ = 1;
  }
  // Empty: it runs in phases. Under the progress lock while it is active.
  std::optional<ExpressCall>& express() { return express_; }
  const std::optional<ExpressCall>& express() const { return express_; }
  void finish_express() { phases_left_ = 0; }
  // The operation failed: none of its phases is in flight any more.
  void abandon();
  // Nothing reads or writes its staging any more.
  void free_staging() {
    staging_.give_back();
    claims_ = {};
  }

  uint64_t number() const { return number_; }
  OperationKey key() const;
  int64_t deadline_ns() const { return deadline_ns_; }  // 0: none
  // "operation 7 (allreduce of 8 float (sum)), chunk 2, phase 1 of 4, awaiting message 3 of rank 5 (segment 1 of 8)"
  std::string describe() const;
  std::string name() const;  // "operation 7 (allreduce of 8 float (sum))"
  // The rank that describe() names as awaited; -1: none.
  int32_t awaited_rank() const;
  // Its user-defined reduction runs. For threads that borrow the progress lock.
  bool in_user_function() const { return !in_flight_.empty() && foremost().run->in_user_function(); }

  int64_t timeout_ns() const { return timeout_ns_; }
  std::string timeout_text() const;  // "10m"

  // The stream that it is queued on; set by the stream.
  std::atomic<Stream*> stream{nullptr};
  StreamItem* item = nullptr;
  // Why its input does not exist; set by the stream before it is activated, and then the engine's. nullptr: it may run.
  Failure held_back_by;
  // Of the engine only: its place among the lent operations, under the mutex of their pool; the one behind it in the
  // inbox, under the inbox's mutex until it is drained.
  size_t lent_at = SIZE_MAX;
  Operation* next_in_inbox = nullptr;

 private:
  struct InFlight {
    uint32_t order = 0;  // index into Schedule::orders
    PhaseId id;
    PhaseRun* run = nullptr;
  };
  bool take_staging();
  bool start_phases();
  void finish_phase(const InFlight& phase);
  Region& buffer(BufferId id) { return buffers_[static_cast<size_t>(id)]; }
  size_t phase_number(PhaseId id) const { return size_t{id.chunk} * prepared_->stages + id.stage; }
  PhaseRun& run_of(PhaseId id);
  // The phase in flight that is in a user's function, else the oldest. There must be at least one in flight.
  const InFlight& foremost() const;

  Engine& engine_;
  std::shared_ptr<const Prepared> prepared_;
  Buffers buffers_{};
  OperationClaims claims_;    // while it is bound
  FreeBounces free_bounces_;  // of claims_
  uint64_t number_ = 0;
  int64_t timeout_ns_ = 0;
  int64_t deadline_ns_ = 0;
  uint32_t phases_ = 0;  // of all chunks
  uint32_t phases_left_ = 0;
  // Issuing a call that runs in phases touches nothing from here on (prefetch_for_issue).
  Region unscaled_;                    // the original send buffer of a pre-multiplied sum
  std::array<std::byte, 8> scalar_{};  // its scalar, as it was when the operation started
  Staging staging_;                    // while it is active, in host memory
  bool awaits_staging_ = false;
  std::optional<ExpressCall> express_;
  // [chunk * stages + stage], built at first use. In one array, so that making an operation takes as many allocations
  // for one chunk as for a thousand.
  std::vector<std::unique_ptr<PhaseRun>> runs_;
  std::vector<uint32_t> next_stage_;       // by chunk: number of stages that are done
  std::vector<uint32_t> position_;         // by order: phases started
  std::vector<uint32_t> in_flight_count_;  // by order
  std::vector<InFlight> in_flight_;        // in start order
  // By phase number, in simulations without data: whether messages of the phase completed since it was last advanced.
  // In one array, so that a rank with many phases in flight quickly finds the few that can go on.
  std::unique_ptr<bool[]> touched_;
  int64_t tell_ns_ = 0;  // when tell_awaited() may send next
  int32_t told_ = -1;    // the rank that the last notice went to
  SendRequest notice_;
};

}  // namespace trestle
