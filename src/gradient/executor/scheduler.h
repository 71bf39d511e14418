// GradientScheduler: what a trestleGrad_t stands for. Checks the calls of a training step and gives them to the
// executor.
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
#include "base/out_of_memory.h"
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
  // One communicator for each link. They must live longer. access: to the same ones. Errors: one takes no calls; one is
  // given twice, or has other ranks than the first.
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
  // Rank 0's count. By tensor.
  Status set_times(std::vector<double> forward_s, std::vector<double> backward_s, const GradientLink& link);
  // Rank 0's count. For every link, at least one: the time of a message on it over that on the first one.
  Status set_link_ratios(std::vector<double> ratios);
  // Rank 0's counts. Nothing: merged updates are not judged.
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

  Status ready(int tensor, std::byte* gradient);
  Status wait(int tensor);
  Status end_step();
  Status synchronize();
  // Collective. The steps whose gradients were pending and now are in results.
  Result<uint32_t> bring_in();
  // Of the result of the tensor's last step.
  Result<ResultAge> age(int tensor) const;
  // Waits until the steps that have ended are complete on this rank, or have failed. So other ranks get its part.
  void drain();
  SchedulerStatistics statistics() const;
  // Waits for what is under way, then keeps the last so many events; 0: none. Between steps.
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
    const std::vector<TensorEntry> tensors;
    StepBoard board;
    TrafficCounts counts;
    StepTrace trace;
    std::unique_ptr<StepProfile> profile;          // of the thread that begins and ends it
    std::atomic<StepProfile*> measuring{nullptr};  // the same, while it is measured
    std::unique_ptr<Executor> executor;            // its thread ends before the others do
    GradientScheduler& of;
  };

  GradientScheduler(std::vector<trestleComm_t> comms, GradientSettings settings, std::unique_ptr<LinkAccess> access)
      : comms_(std::move(comms)),
        settings_(std::move(settings)),
        access_(std::move(access)),
        link_ratios_(comms_.size() - 1, 1.0) {}
  // A communicator has failed. Any thread; does not throw.
  void link_failed(const Error& error);
  // From now on a failure of a communicator is that one's; and no longer.
  void follow(Running& running);
  void forget(const Running& running);
  Running* running() const { return running_.load(std::memory_order_acquire); }
  Result<Running*> running_step(const char* verb) const;
  // The running one, or a new one that is not published yet.
  Result<Running*> candidate(std::unique_ptr<Running>& fresh);
  void publish(std::unique_ptr<Running> fresh);
  // Runs a job of `now`, which is `fresh` if that is not nullptr, and publishes it if the job has succeeded. Also if
  // the failure of a communicator ends it, because the job may still use it then.
  Status run(Running& now, std::unique_ptr<Running> fresh, std::function<Status()> job);
  // What all ranks do together. Where memory is short elsewhere than attempt() expects it, the communicators end.
  template <class Body>
  auto together(Body&& body) -> decltype(body()) {
    return unless_out_of_memory(std::forward<Body>(body), [this]() -> decltype(body()) {
      const Error error{Code::kSystemError, "out of memory"};
      access_->fail(error);
      return error;
    });
  }
  Status end_profile();
  Result<LossEstimate> estimate_loss(double samples, const Status& asked);
  Status make_plan(const char* policy);
  Result<uint32_t> bring_all_in();
  // Collective: this rank cannot even begin the call. Error: why.
  Status refuse_on_all(const char* function, const std::string& text, const Status& own);
  Result<uint32_t> checked_tensor(const Running& running, int tensor) const;
  std::string named(const Running& running, uint32_t tensor) const;
  Status check_communicator() const;

  GradientWorkload workload(const std::vector<TensorEntry>& tensors) const;
  // The first link's costs, and all that a policy is asked with but its words. Needs the tensors' workload.
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
  const std::unique_ptr<LinkAccess> access_;  // calls link_failed() until its end
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
