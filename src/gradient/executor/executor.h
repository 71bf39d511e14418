// Executor: the thread of a scheduler. It makes all calls on the communicators, in the order of the plan.
//
// It sleeps until a message is complete (trestleEventNotify), a gradient completes a group, there is a job, or a
// communicator has failed. Any thread may call wake(), wake_for_mark() and run(); the other functions are for jobs.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>

#include "base/mutex.h"
#include "base/thread.h"
#include "gradient/executor/bell.h"
#include "gradient/executor/job_flag.h"
#include "gradient/executor/links/link_access.h"
#include "gradient/executor/run/step_run.h"
#include "gradient/executor/step_board.h"

namespace trestle {

class Executor {
 public:
  // All arguments must live longer. If this rank lacks something (kSystemError) while other ranks wait for its part, it
  // fails the links. Error: no thread can be started.
  static Result<std::unique_ptr<Executor>> start(const std::vector<trestleComm_t>& comms,
                                                 const std::vector<TensorEntry>& tensors,
                                                 const GradientSettings& settings, StepBoard& board,
                                                 TrafficCounts& counts, StepTrace& trace, LinkAccess& links);
  // Waits for messages that are on their way. After a failure the other ranks may not send their parts. Then the links
  // with messages on their way fail too.
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  void wake() { bell_->ring(); }
  // Says that a gradient is ready. Makes no system call while the thread need not know at once (StepRun::is_supplied).
  void wake_for_mark() { bell_->nudge(); }
  // Runs the job on the executor's thread when all steps that have ended are complete, and waits for its end. Between
  // steps only. If a communicator fails in the job, the scheduler has failed. Error: the job's, or the failure. When
  // the board fails, this wait ends at once. But the job may go on, on a communicator that has not failed, until the
  // executor ends. So everything that the job uses must live that long.
  Status run(std::function<Status()> job);

  // ---- for jobs
  // Errors: those of make_step_run.
  Result<std::unique_ptr<StepRun>> prepare(const PlannedStep& step, const GradientWorkload& workload) const;
  // From the next step on.
  void install(std::unique_ptr<StepRun> run);
  // As those of StepRun; 0 without a plan.
  uint32_t pending() const { return run_ == nullptr ? 0 : run_->pending(); }
  Result<uint32_t> bring_in();

 private:
  struct Job {
    std::function<Status()> body;
    Status status;
    std::atomic<bool> done{false};
  };

  Executor(const std::vector<trestleComm_t>& comms, const std::vector<TensorEntry>& tensors,
           const GradientSettings& settings, StepBoard& board, TrafficCounts& counts, StepTrace& trace,
           LinkAccess& links);
  void loop();
  void end_links(const std::function<bool(size_t)>& is_busy);
  void tell_other_ranks();
  // True if something changed.
  bool turn();
  bool run_jobs();
  std::shared_ptr<Job> next_job();
  Status run_body(Job& job);
  bool drained() const;

  const std::vector<trestleComm_t>& comms_;
  const std::vector<TensorEntry>& tensors_;
  const GradientSettings& settings_;
  StepBoard& board_;
  TrafficCounts& counts_;
  StepTrace& trace_;
  LinkAccess& links_;
  const std::shared_ptr<Bell> bell_;
  std::atomic<bool> stop_{false};
  JobFlag job_;
  alignas(64) Mutex mutex_;  // not on the cache line of bell_, which every mark reads
  std::deque<std::shared_ptr<Job>> jobs_ TRESTLE_GUARDED_BY(mutex_);
  // Of the thread:
  std::unique_ptr<StepRun> run_;  // nullptr: there is no plan
  bool told_ = false;             // tell_other_ranks() has done its work
  Thread thread_;
};

}  // namespace trestle
