// GradientScheduler: makes plans, and brings in what plans have delayed.
#include "gradient/executor/agreement.h"
#include "gradient/executor/links/link_meeting.h"
#include "gradient/executor/plan_bytes.h"
#include "gradient/executor/run/sparse_memory.h"
#include "gradient/executor/scheduler.h"
#include "gradient/policy/topk.h"

namespace trestle {

// There is no executor yet, so this thread may use the communicators.
Status GradientScheduler::refuse_on_all(const char* function, const Status& own) {
  TRY(meet_on_links(*access_, function));
  return TRY(RankAgreement::make(comms_.front(), *access_)).agree(function, {}, own);
}

StepPlanRequest GradientScheduler::request(const GradientWorkload& workload, const GradientLink& link,
                                           const std::vector<TensorEntry>& tensors) const {
  // If a communicator cannot say its size, it has failed. Then the call that plans ends with that failure.
  int ranks = 1;
  (void)trestleCommCount(comms_.front(), &ranks);
  // So auto does not choose a policy that these tensors rule out.
  const uint32_t liberties =
      check_compressible(tensors).ok() ? settings_.liberties : settings_.liberties & ~uint32_t{kLibertyCompress};
  StepPlanRequest asked{workload, link, {}, liberties, {}, {}, {}};
  asked.network = as_ring(link.all_reduce, static_cast<uint32_t>(ranks));
  const MutexLock lock(mutex_);
  asked.link_ratios = link_ratios_;
  asked.loss = loss_;
  return asked;
}

Result<PlannedStep> GradientScheduler::planned(const std::string& policy,
                                               const std::vector<TensorEntry>& tensors) const {
  const ChosenPolicy chosen = TRY(parse_gradient_policy(policy));
  const uint32_t missing = chosen.policy->liberties & ~settings_.liberties;
  if ((missing & kLibertyStale) != 0) {
    return invalid_usage(chosen.text +
                         " uses gradients of earlier steps, which the config's `allow` does not permit "
                         "(trestleGradAllowStale)");
  }
  if ((missing & kLibertyCompress) != 0) {
    return invalid_usage(
        chosen.text +
        " leaves the smaller elements of gradients for later steps, which the config's `allow` does not permit "
        "(trestleGradAllowCompression)");
  }
  GradientLink link;
  {
    const MutexLock lock(mutex_);
    if (!times_ && reads_times(chosen))
      return invalid_usage(chosen.text +
                           " needs the tensors' times and the link's costs: GradProfileBegin and GradProfileEnd, "
                           "or GradSetTimes, come first");
    if (times_) link = times_->link;
  }
  const GradientWorkload work = workload(tensors);
  PlannedStep step = TRY(plan_step(chosen, request(work, link, tensors)));
  if (step.compressed) TRY(check_compressible(tensors));
  fix_order(step.plan, work, link);
  step.time.messages.clear();
  return step;
}

Status GradientScheduler::plan(const char* policy) {
  const std::string text = policy == nullptr ? "" : policy;
  std::unique_ptr<Running> fresh;
  const Result<Running*> made = candidate(fresh);
  if (!made.ok()) return refuse_on_all("GradPlan", made.error());
  Running& now = *made.value();
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (!now.board.between_steps()) return invalid_usage(kStepUnderWay);
  Status own = check_apart(now.tensors);
  if (policy == nullptr) own = Error{Code::kInvalidArgument, "policy is NULL"};
  if (now.tensors.empty()) own = invalid_usage("no tensor is registered");
  if (now.board.forward_over()) now.executor->wake();
  TRY(run(now, std::move(fresh), [this, &now, text, own] { return plan_on_thread(now, text, own); }));
  has_plan_.store(true, std::memory_order_release);
  plans_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status GradientScheduler::plan_on_thread(Running& now, const std::string& policy, const Status& refusal) {
  TRY(meet_on_links(*access_, "GradPlan"));
  const RankAgreement agreement = TRY(RankAgreement::make(comms_.front(), *access_));
  Status own = refusal;
  if (own.ok() && now.executor->pending() > 0) {
    const uint32_t pending = now.executor->pending();
    own = invalid_usage("gradients of " + std::to_string(pending) + (pending == 1 ? " step" : " steps") +
                        " are pending, which a new plan would lose: GradDrain comes first");
  }
  std::vector<std::byte> mine;
  if (own.ok() && agreement.rank() == 0) {
    auto made = plan_as_bytes(policy, now.tensors);
    own = made.ok() ? Status() : made.error();
    if (made.ok()) mine = std::move(made).value();
  }
  TRY(agreement.agree("GradPlan", facts_of(settings_, now.tensors, {{"policy", policy}}), own));
  const std::vector<std::byte> bytes = TRY(agreement.from_rank_0(std::move(mine)));
  PlannedStep step;
  std::unique_ptr<StepRun> prepared;
  const auto prepare = [&]() -> Status {
    step = TRY(plan_from_bytes(bytes));
    TRY(check_plan(step.plan, now.tensors.size()));
    prepared = TRY(now.executor->prepare(step, workload(now.tensors)));
    return {};
  };
  TRY(agreement.agree("GradPlan", {{"the checksum of rank 0's plan", std::to_string(checksum(bytes))}}, prepare()));
  now.executor->install(std::move(prepared));
  const MutexLock lock(mutex_);
  planned_ = std::move(step);
  return {};
}

Result<std::vector<std::byte>> GradientScheduler::plan_as_bytes(const std::string& policy,
                                                                const std::vector<TensorEntry>& tensors) const {
  return plan_bytes(TRY(planned(policy, tensors)));
}

Result<uint32_t> GradientScheduler::bring_in() {
  Running& step = *TRY(running_step("bring in"));
  // All ranks have a plan, or none. Without one, steps are only measured, and nothing is delayed.
  if (!has_plan_.load(std::memory_order_acquire)) return 0;
  if (!step.board.between_steps()) return invalid_usage(kStepUnderWay);
  Status own;
  for (uint32_t i = 0; i < step.tensors.size() && !updates() && own.ok(); ++i) {
    if (!step.board.is_waited(i)) {
      own = invalid_usage("the result of " + named(step, i) +
                          " of the last step was not waited for, and this call replaces it: GradWaitParam or "
                          "GradSynchronize comes first");
    }
  }
  if (step.board.forward_over()) step.executor->wake();
  const auto batches = std::make_shared<uint32_t>();
  TRY(step.executor->run([this, &step, own, batches]() -> Status {
    TRY(meet_on_links(*access_, "GradDrain"));
    const RankAgreement agreement = TRY(RankAgreement::make(comms_.front(), *access_));
    Facts steps = {{"ended steps", std::to_string(step.board.ended())}};
    TRY(agreement.agree("GradDrain", facts_of(settings_, step.tensors, std::move(steps)), own));
    *batches = TRY(step.executor->bring_in());
    return {};
  }));
  // This call counts as the wait for all results, so the program need not wait for them again.
  for (uint32_t i = 0; i < step.tensors.size(); ++i) TRY(step.board.wait(i));
  return *batches;
}

Result<std::string> GradientScheduler::plan_json() const {
  const MutexLock lock(mutex_);
  if (!planned_) return invalid_usage("there is no plan: GradPlan comes first");
  return trestle::plan_json(*planned_);
}

Result<double> GradientScheduler::simulate(const std::string& policy) const {
  std::vector<TensorEntry> tensors;
  GradientLink link;
  {
    const MutexLock lock(mutex_);
    if (!times_) return invalid_usage("there are no times: GradProfileEnd or GradSetTimes comes first");
    tensors = registered_;
    link = times_->link;
  }
  const ChosenPolicy chosen = TRY(parse_gradient_policy(policy));
  const GradientWorkload work = workload(tensors);
  return TRY(plan_step(chosen, request(work, link, tensors))).time.iteration_s;
}

}  // namespace trestle
