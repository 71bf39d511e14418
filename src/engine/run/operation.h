// Operation: one started collective of one rank: the state of a Prepared bound to buffers.
//
// Owned by the engine, which pools them per Prepared; driven under the rank's progress lock once it is active. Until
// then it lies in its stream's queue and nobody reads anything but its fields set at creation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/overdue.h"
#include "engine/express/express.h"
#include "engine/prepare/prepared.h"
#include "engine/run/phase_run.h"

namespace trestle {

class Engine;
class Stream;
struct StreamItem;

class Operation {
 public:
  Operation(Engine& engine, std::shared_ptr<const Prepared> prepared);
  ~Operation();

  Engine& engine() { return engine_; }
  const Prepared& prepared() const { return *prepared_; }
  void bind(void* const send, void* recv, uint64_t number, int64_t timeout_ns);

  // Activation: the phases may start from now on.
  void activate(int64_t now_ns);
  // Starts phases in the agreed order of every dimension, advances those in flight, oldest first. True if anything
  // moved.
  Result<bool> advance(Router router);
  bool complete() const { return phases_left_ == 0; }
  // Tells the rank that it has been waiting for since a while what is awaited: if that rank runs something else,
  // neither may ever send a message that the other one would hear. Now and then is often enough.
  Status tell_awaited(int64_t now_ns, Router router);
  // It runs over the express board instead of phases.
  void make_express(const ExpressCall& call) {
    express = call;
    phases_left_ = 1;
  }
  void finish_express() { phases_left_ = 0; }
  // It failed: its phases are in flight no more.
  void abandon();

  uint64_t number() const { return number_; }
  OperationKey key() const;
  int64_t deadline_ns() const { return deadline_ns_; }  // 0: none
  const Buffers& buffers() const { return buffers_; }
  // "operation 17 (all-reduce of 1024 float (sum)), chunk 2, phase 1 of 4: awaits message 3 of rank 5"
  std::string describe() const;
  std::string name() const;  // "operation 17 (all-reduce of 1024 float (sum))"
  // The rank that it names there; -1: none.
  int32_t awaited_rank() const;
  // Its user-defined reduction runs: seen by those who borrow the progress lock.
  bool in_user_function() const { return !in_flight_.empty() && foremost().run->in_user_function(); }

  int64_t timeout_ns() const { return timeout_ns_; }
  std::string timeout_text() const;  // "10m"

  // Where it is queued; set by the stream.
  std::atomic<Stream*> stream{nullptr};
  StreamItem* item = nullptr;
  std::optional<ExpressCall> express;

 private:
  struct InFlight {
    uint32_t order = 0;  // index into Schedule::orders
    PhaseId id;
    PhaseRun* run = nullptr;
  };
  bool start_phases();
  void scale_input(const PreparedPhase& first_phase);
  void finish_phase(const InFlight& phase);
  PhaseRun& run_of(PhaseId id);
  // Of the phases in flight, of which there must be one: that in a user's function, else the oldest.
  const InFlight& foremost() const;

  Engine& engine_;
  std::shared_ptr<const Prepared> prepared_;
  Buffers buffers_{};
  const std::byte* unscaled_ = nullptr;  // the send buffer of a pre-multiplied sum
  std::array<std::byte, 8> scalar_{};    // of it, as it was when the operation started
  std::unique_ptr<std::byte[]> staging_;
  uint64_t number_ = 0;
  int64_t timeout_ns_ = 0;
  int64_t deadline_ns_ = 0;
  std::vector<std::vector<std::unique_ptr<PhaseRun>>> runs_;  // [chunk][stage], built at first use
  std::vector<uint32_t> next_stage_;                          // by chunk: stages that are done
  std::vector<uint32_t> position_;                            // by order: phases started
  std::vector<uint32_t> in_flight_count_;                     // by order
  std::vector<InFlight> in_flight_;                           // in start order
  // By phase number, where there is no data: messages of the phase are done that it has not looked at. Together, so
  // that a rank of many that has most of its phases in flight finds the few that can go on.
  std::unique_ptr<bool[]> touched_;
  uint32_t phases_left_ = 0;
  int64_t tell_ns_ = 0;  // when tell_awaited() may speak
  int32_t told_ = -1;    // the rank that was told last
  SendRequest notice_;
};

}  // namespace trestle
