// GradientScheduler: what a trestleGrad_t stands for. It checks the calls of a training step, and passes them on to the
// board and the executor.
//
// Any thread, as include/trestle/gradient.h says. The sentences of its errors have no function's name in front; the C
// layer adds it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "gradient/executor/executor.h"
#include "gradient/executor/links/link_access.h"
#include "gradient/executor/loss_measure.h"
#include "gradient/executor/step_profile.h"
#include "gradient/policy/policies.h"

namespace trestle {

inline constexpr const char* kStepUnderWay =
    "a step is under way, because gradients are ready: GradStepEnd comes first";

struct SchedulerStatistics {
  uint64_t steps = 0;
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t copied_bytes = 0;
  uint64_t wait_ns = 0;
  uint64_t last_step_ns = 0;
  uint64_t planned_ns = 0;
  uint64_t plans = 0;
  uint64_t age = 0;
  uint64_t nans = 0;
  uint64_t delayed_updates = 0;
  uint64_t delayed_batches = 0;
  uint64_t pending_batches = 0;
  uint64_t age_sum = 0;
  uint64_t oldest_age = 0;
  uint64_t compressed_elements = 0;
  uint64_t sent_elements = 0;
  uint64_t compress_ns = 0;
  double gain = 0;
  double ratio = 1;  // of the plan
};

class GradientScheduler {
 public:
  // comms: one for each link; they must live longer. access: to the same communicators. Errors: a communicator takes no
  // calls, is given twice, or has other ranks than the first one.
  static Result<std::shared_ptr<GradientScheduler>> make(std::vector<trestleComm_t> comms, GradientSettings settings,
                                                         std::unique_ptr<LinkAccess> access);
  ~GradientScheduler();
  GradientScheduler(const GradientScheduler&) = delete;
  GradientScheduler& operator=(const GradientScheduler&) = delete;

  // The failure that has ended it, of a communicator or of an update.
  std::optional<Error> failure();
  bool updates() const { return static_cast<bool>(settings_.update); }
  Result<uint32_t> add(TensorEntry tensor);

  Status profile_begin();
  Status profile_end();  // collective
  // Times by tensor. Those of rank 0 count.
  Status set_times(std::vector<double> forward_s, std::vector<double> backward_s, const GradientLink& link);
  // For every link, at least one: the time of a message on it over the time on the first one. Rank 0's ratios count.
  Status set_link_ratios(std::vector<double> ratios);
  // Rank 0's model counts. Nothing: merged updates are not judged.
  void set_loss(const std::optional<PreserverModel>& model);
  // Collective. samples: of a step, of all ranks. asked: why this rank cannot make the call, or success.
  Result<LossEstimate> measure_loss(double samples, const Status& asked);
  size_t tensors() const;
  size_t links() const { return comms_.size(); }
  Result<std::string> profile_json() const;

  // Collective. policy: nullptr is refused on all ranks.
  Status plan(const char* policy);
  Result<std::string> plan_json() const;
  Result<double> simulate(const std::string& policy) const;

  [[gnu::hot]] Status ready(int tensor, std::byte* gradient);
  Status wait(int tensor);
  Status end_step();
  Status synchronize();
  // Collective: trestleGradDrain. Returns how many steps' gradients were pending and are in results now.
  Result<uint32_t> bring_in();
  // Fails the communicators, because this rank has no memory to do its part of a collective call.
  void fail_without_memory() { access_->fail_without_memory(); }
  // Of the tensor's result in the last step.
  Result<ResultAge> age(int tensor) const;
  // Waits until the steps that have ended are complete on this rank, or have failed. For trestleGradDestroy: other
  // ranks need this rank's part.
  void drain();
  SchedulerStatistics statistics() const;
  // Waits for what is under way, then keeps the last `events` events; 0: none. Between steps.
  Status trace_begin(size_t events);
  Result<std::string> trace_json() const;

 private:
  struct Times {
    std::vector<double> forward_s, backward_s;
    GradientLink link;  // the first one
  };
  // Made for the tensors that were registered, and used from the first plan or profile on.
  struct Running {
    Running(GradientScheduler& scheduler, std::vector<TensorEntry> all)
        : tensors(std::move(all)), board(static_cast<uint32_t>(tensors.size())), of(scheduler) {}
    ~Running() { of.forget(*this); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    // What ready() reads, away from what the executor writes while nothing is traced.
    alignas(64) const std::vector<TensorEntry> tensors;
    std::atomic<StepProfile*> measuring{nullptr};  // `profile`, while it is measured
    Executor* executor = nullptr;                  // `owned_executor`; stays as it is while that ends
    StepTrace trace;
    StepBoard board;
    TrafficCounts counts;
    std::unique_ptr<StepProfile> profile;  // of the thread that begins and ends it
    GradientScheduler& of;
    std::unique_ptr<Executor> owned_executor;  // the last one: its thread uses the others until it has ended
  };

  GradientScheduler(std::vector<trestleComm_t> comms, GradientSettings settings, std::unique_ptr<LinkAccess> access)
      : comms_(std::move(comms)),
        settings_(std::move(settings)),
        access_(std::move(access)),
        link_ratios_(comms_.size() - 1, 1.0) {}
  // A communicator has failed. Any thread; does not throw.
  void link_failed(const Error& error);
  // follow(): from now on a failure of a communicator also fails the board of `running`. forget(): no longer.
  void follow(Running& running);
  void forget(const Running& running);
  Running* running() const { return running_.load(std::memory_order_acquire); }
  Result<Running*> running_step(const char* verb) const;
  // The running one, or a new one that is not published yet.
  Result<Running*> candidate(std::unique_ptr<Running>& fresh);
  void publish(std::unique_ptr<Running> fresh);
  // Runs a job of `now`. fresh: the owner of `now` if it is not published yet, else nullptr. Publishes `fresh` if the
  // job has succeeded, and also if a failure ends the wait, because the job may still use it then.
  Status run(Running& now, std::unique_ptr<Running> fresh, std::function<Status()> job);
  // Collective: this rank cannot even begin the call. Error: why.
  Status refuse_on_all(const char* function, const Status& own);
  Result<uint32_t> checked_tensor(const Running& running, int tensor) const;
  std::string named(const Running& running, uint32_t tensor) const;
  Status check_communicator() const;
  // Why a call of a step fails. running: nullptr, or failed.
  static Error refuse_step(const Running* running, const char* verb);
  // Why ready() cannot mark.
  Error refuse_ready(const Running& step, bool marks, int number, const std::byte* gradient) const;
  Error refuse_mark(const Running& step, uint32_t tensor, StepBoard::Marked marked) const;
  static void note_ready(Running& step, uint32_t tensor, StepProfile* profile);

  GradientWorkload workload(const std::vector<TensorEntry>& tensors) const;
  // What a policy is asked, without the policy's words. link: the first link's costs.
  StepPlanRequest request(const GradientWorkload& workload, const GradientLink& link,
                          const std::vector<TensorEntry>& tensors) const;
  Result<PlannedStep> planned(const std::string& policy, const std::vector<TensorEntry>& tensors) const;
  Status plan_on_thread(Running& running, const std::string& policy, const Status& refusal);
  Status profile_on_thread(Running& running, const Status& own);
  // The plan that rank 0 makes.
  Result<std::vector<std::byte>> plan_as_bytes(const std::string& policy,
                                               const std::vector<TensorEntry>& tensors) const;

  const std::vector<trestleComm_t> comms_;  // of the links
  const GradientSettings settings_;
  Mutex failure_mutex_;
  std::optional<Error> link_failure_ TRESTLE_GUARDED_BY(failure_mutex_);
  Running* followed_ TRESTLE_GUARDED_BY(failure_mutex_) = nullptr;
  const std::unique_ptr<LinkAccess> access_;  // calls link_failed() until it is destroyed
  mutable Mutex mutex_;
  std::vector<double> link_ratios_ TRESTLE_GUARDED_BY(mutex_);  // as in StepPlanRequest
  std::vector<TensorEntry> registered_ TRESTLE_GUARDED_BY(mutex_);
  uint64_t registered_bytes_ TRESTLE_GUARDED_BY(mutex_) = 0;
  std::optional<PreserverModel> loss_ TRESTLE_GUARDED_BY(mutex_);
  std::optional<Times> times_ TRESTLE_GUARDED_BY(mutex_);
  std::optional<PlannedStep> planned_ TRESTLE_GUARDED_BY(mutex_);
  std::unique_ptr<Running> owned_ TRESTLE_GUARDED_BY(mutex_);
  std::atomic<Running*> running_{nullptr};
  std::atomic<bool> has_plan_{false};
  std::atomic<uint64_t> plans_{0};
  std::atomic<uint64_t> wait_ns_{0};
  std::atomic<int64_t> last_end_ns_{0};
  std::atomic<uint64_t> last_step_ns_{0};
};

}  // namespace trestle
