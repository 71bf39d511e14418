// GradientScheduler: measures times and makes plans.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/clock.h"
#include "gradient/executor/agreement.h"
#include "gradient/executor/link_measure.h"
#include "gradient/executor/plan_bytes.h"
#include "gradient/executor/scheduler.h"
#include "gradient/policy/deft.h"
#include "gradient/policy/threshold.h"
#include "gradient/policy/topk.h"

namespace trestle {
namespace {

Error usage(std::string sentence) {
  return {Code::kInvalidUsage, std::move(sentence)};
}

// How much longer a message takes on another link. Where that depends on its size, a bucket of the default size counts.
// A link that measures as faster than the first one counts as equal to it.
double ratio_of(const MessageCost& other, const MessageCost& first, uint64_t all_bytes) {
  const uint64_t bytes = std::clamp<uint64_t>(all_bytes, 1, kThresholdBytes);
  const double ratio = other.of(bytes) / first.of(bytes);
  return ratio > 1 ? std::min(ratio, kMostLinkRatio) : 1;  // also where a cost is 0
}

Error not_carried_out(const ChosenPolicy& chosen, const PlannedStep& step) {
  char ratio[32];
  std::snprintf(ratio, sizeof ratio, "%.3g", step.compressed->ratio);
  return usage((chosen.text == step.policy ? chosen.text : chosen.text + " takes " + step.policy) + " with the ratio " +
               ratio +
               ", which a scheduler does not carry out: use trestleAllReduceTopK, or plan another policy, or leave "
               "trestleGradAllowCompression out of the config's `allow`");
}

const char* const kStepUnderWay = "a step is under way, because gradients are ready: GradStepEnd comes first";

}  // namespace

// ---- times

Status GradientScheduler::profile_begin() {
  std::unique_ptr<Running> fresh;
  Running& now = *TRY(candidate(fresh));
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (now.tensors.empty()) return usage("no tensor is registered");
  if (now.profile != nullptr) return usage("times are measured already: GradProfileEnd comes first");
  if (!now.board.between_steps()) return usage(kStepUnderWay);
  now.profile = std::make_unique<StepProfile>(static_cast<uint32_t>(now.tensors.size()), monotonic_clock().now_ns());
  now.measuring.store(now.profile.get(), std::memory_order_release);
  publish(std::move(fresh));
  return {};
}

Status GradientScheduler::profile_end() {
  std::unique_ptr<Running> fresh;
  Running& now = *TRY(candidate(fresh));
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (!now.board.between_steps()) return usage(kStepUnderWay);
  Status own;
  if (now.profile == nullptr) {
    own = usage("no times are measured: GradProfileBegin comes first");
  } else if (now.profile->steps() == 0) {
    own = usage("no step has ended since GradProfileBegin");
  }
  if (now.board.forward_over()) now.executor->wake();
  TRY(now.executor->run([&] { return profile_on_thread(now, own); }));
  now.measuring.store(nullptr, std::memory_order_release);
  now.profile.reset();
  return {};
}

Status GradientScheduler::profile_on_thread(Running& now, const Status& own) {
  TRY(check_links());
  const RankAgreement agreement = TRY(RankAgreement::make(comms_.front()));
  TRY(agreement.compare("GradProfileEnd", "", settings_, now.tensors, own));
  std::vector<double> both = now.profile->forward_s();
  const std::vector<double> backward = now.profile->backward_s();
  both.insert(both.end(), backward.begin(), backward.end());
  both = TRY(agreement.means(std::move(both)));
  Times times;
  const auto middle = both.begin() + static_cast<std::ptrdiff_t>(now.tensors.size());
  times.forward_s.assign(both.begin(), middle);
  times.backward_s.assign(middle, both.end());
  times.link = TRY(measure_link(comms_.front(), agreement));
  std::vector<double> ratios;
  for (size_t link = 1; link < comms_.size(); ++link) {
    const MessageCost other = TRY(measure_link(comms_[link], agreement)).all_reduce;
    ratios.push_back(ratio_of(other, times.link.all_reduce, workload(now.tensors).bytes()));
  }
  const MutexLock lock(mutex_);
  times_ = std::move(times);
  link_ratios_ = std::move(ratios);
  return {};
}

Status GradientScheduler::set_link_ratios(std::vector<double> ratios) {
  for (size_t link = 0; link < ratios.size(); ++link) {
    const bool right = link == 0 ? ratios[link] == 1 : ratios[link] >= 1 && ratios[link] <= kMostLinkRatio;
    if (right) continue;
    return Error{Code::kInvalidArgument, "the ratio of link " + std::to_string(link) + " is " +
                                             std::to_string(ratios[link]) +
                                             ": 1 for link 0, which is the fastest, and 1 to 1000 for the others"};
  }
  const MutexLock lock(mutex_);
  link_ratios_.assign(ratios.begin() + 1, ratios.end());
  return {};
}

Status GradientScheduler::set_times(std::vector<double> forward_s, std::vector<double> backward_s,
                                    const GradientLink& link) {
  const auto wrong = [](double value) { return !std::isfinite(value) || value < 0; };
  const auto refused = [](const std::string& what, double value) {
    return Error{Code::kInvalidArgument, what + " is " + std::to_string(value) + ": finite and not negative"};
  };
  for (size_t i = 0; i < forward_s.size(); ++i) {
    if (wrong(forward_s[i])) return refused("the forward time of tensor " + std::to_string(i), forward_s[i]);
    if (wrong(backward_s[i])) return refused("the backward time of tensor " + std::to_string(i), backward_s[i]);
  }
  for (const MessageCost& cost : {link.all_reduce, link.reduce_scatter, link.all_gather}) {
    if (wrong(cost.startup_s)) return refused("a startup", cost.startup_s);
    if (wrong(cost.per_byte_s)) return refused("a time per byte", cost.per_byte_s);
  }
  const MutexLock lock(mutex_);
  times_ = Times{std::move(forward_s), std::move(backward_s), link};
  return {};
}

GradientWorkload GradientScheduler::workload(const std::vector<TensorEntry>& tensors) const {
  const MutexLock lock(mutex_);
  GradientWorkload workload;
  for (size_t i = 0; i < tensors.size(); ++i) {
    GradientTensor tensor{tensors[i].name, tensors[i].bytes(), 0, 0};
    // Tensors that were registered after the times were supplied have none.
    if (times_ && i < times_->forward_s.size()) tensor.forward_s = times_->forward_s[i];
    if (times_ && i < times_->backward_s.size()) tensor.backward_s = times_->backward_s[i];
    workload.tensors.push_back(std::move(tensor));
  }
  return workload;
}

void GradientScheduler::set_loss(const std::optional<PreserverModel>& model) {
  const MutexLock lock(mutex_);
  loss_ = model;
}

Result<LossEstimate> GradientScheduler::measure_loss(double samples) {
  Running& step = *TRY(running_step("measure"));
  if (!step.board.between_steps()) return usage(kStepUnderWay);
  if (step.board.forward_over()) step.executor->wake();
  LossEstimate estimate;
  TRY(step.executor->run([&]() -> Status {
    TRY(check_links());
    const RankAgreement agreement = TRY(RankAgreement::make(comms_.front()));
    Status own;
    if (step.board.ended() == 0) own = usage("no step has ended, so there are no gradients to measure");
    if (has_plan_.load(std::memory_order_acquire))
      own = usage("there is a plan, so the gradients' memory has results: measure steps before the first plan");
    TRY(agreement.compare("GradMeasureLoss", "", settings_, step.tensors, own));
    std::vector<const std::byte*> gradients;
    for (uint32_t i = 0; i < step.tensors.size(); ++i) {
      const std::byte* const given = step.board.gradient(i);
      gradients.push_back(given != nullptr ? given : step.tensors[i].gradient);
    }
    estimate = TRY(trestle::measure_loss(comms_.front(), agreement, step.tensors, gradients, samples));
    return {};
  }));
  return estimate;
}

Result<std::string> GradientScheduler::profile_json() const {
  std::vector<TensorEntry> tensors;
  {
    const MutexLock lock(mutex_);
    if (!times_) return usage("there are no times: GradProfileEnd or GradSetTimes comes first");
    tensors = registered_;
  }
  return workload_json(workload(tensors));
}

// ---- plans

Status GradientScheduler::check_links() {
  if (links_are_right_) return {};
  link_check_ = TRY(LinkCheck::start(comms_));
  TRY(link_check_->finish());
  link_check_.reset();
  links_are_right_ = true;
  return {};
}

PolicyRequest GradientScheduler::request(const GradientWorkload& workload, const GradientLink& link) const {
  // A communicator that cannot say its size has failed, and the call that plans ends with that.
  int ranks = 1;
  (void)trestleCommCount(comms_.front(), &ranks);
  const MutexLock lock(mutex_);
  return {workload,
          link,
          {},
          settings_.liberties,
          link_ratios_,
          loss_,
          as_ring(link.all_reduce, static_cast<uint32_t>(ranks))};
}

Result<PlannedStep> GradientScheduler::planned(const std::string& policy,
                                               const std::vector<TensorEntry>& tensors) const {
  const ChosenPolicy chosen = TRY(parse_gradient_policy(policy));
  const uint32_t missing = chosen.policy->liberties & ~settings_.liberties;
  if ((missing & kLibertyStale) != 0) {
    return usage(chosen.text +
                 " uses gradients of earlier steps, which the config's `allow` does not permit "
                 "(trestleGradAllowStale)");
  }
  if ((missing & kLibertyCompress) != 0) {
    return usage(
        chosen.text +
        " leaves the smaller elements of gradients for later steps, which the config's `allow` does not permit "
        "(trestleGradAllowCompression)");
  }
  GradientLink link;
  {
    const MutexLock lock(mutex_);
    if (!times_ && reads_times(chosen))
      return usage(chosen.text +
                   " needs the tensors' times and the link's costs: GradProfileBegin and GradProfileEnd, "
                   "or GradSetTimes, come first");
    if (times_) link = times_->link;
  }
  const GradientWorkload work = workload(tensors);
  PlannedStep step = TRY(plan_step(chosen, request(work, link)));
  if (step.compressed) return not_carried_out(chosen, step);
  fix_order(step.plan, work, link.all_reduce);
  step.time.messages.clear();
  return step;
}

Status GradientScheduler::plan(const char* policy) {
  std::unique_ptr<Running> fresh;
  Running& now = *TRY(candidate(fresh));
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (!now.board.between_steps()) return usage(kStepUnderWay);
  Status own = check_apart(now.tensors);
  if (policy == nullptr) own = Error{Code::kInvalidArgument, "policy is NULL"};
  if (now.tensors.empty()) own = usage("no tensor is registered");
  if (now.board.forward_over()) now.executor->wake();
  const std::string text = policy == nullptr ? "" : policy;
  TRY(now.executor->run([&] { return plan_on_thread(now, text, own); }));
  publish(std::move(fresh));
  has_plan_.store(true, std::memory_order_release);
  plans_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

Status GradientScheduler::plan_on_thread(Running& now, const std::string& policy, const Status& refusal) {
  TRY(check_links());
  const RankAgreement agreement = TRY(RankAgreement::make(comms_.front()));
  Status own = refusal;
  if (own.ok() && now.executor->pending() > 0) {
    const uint32_t pending = now.executor->pending();
    own = usage("gradients of " + std::to_string(pending) + (pending == 1 ? " step" : " steps") +
                " are pending, which a new plan would lose: GradDrain comes first");
  }
  TRY(agreement.compare("GradPlan", policy, settings_, now.tensors, own));
  Result<std::vector<std::byte>> mine = std::vector<std::byte>();
  if (agreement.rank() == 0) {
    const Result<PlannedStep> step = planned(policy, now.tensors);
    mine = step.ok() ? Result<std::vector<std::byte>>(plan_bytes(step.value())) : step.error();
  }
  const std::vector<std::byte> bytes = TRY(agreement.from_rank_0(mine));
  PlannedStep step = TRY(plan_from_bytes(bytes));
  TRY(check_plan(step.plan, now.tensors.size()));
  Result<std::unique_ptr<StepRun>> prepared = now.executor->prepare(step.plan, workload(now.tensors));
  TRY(agreement.all_could("GradPlan", prepared.ok() ? Status() : prepared.error()));
  now.executor->install(std::move(prepared).value());
  const MutexLock lock(mutex_);
  planned_ = std::move(step);
  return {};
}

Result<uint32_t> GradientScheduler::bring_in() {
  Running& step = *TRY(running_step("bring in"));
  if (!step.board.between_steps()) return usage(kStepUnderWay);
  Status own;
  for (uint32_t i = 0; i < step.tensors.size() && !updates() && own.ok(); ++i) {
    if (!step.board.is_waited(i)) {
      own = usage("the result of " + named(step, i) +
                  " of the last step was not waited for, and this call replaces it: GradWaitParam or "
                  "GradSynchronize comes first");
    }
  }
  if (step.board.forward_over()) step.executor->wake();
  uint32_t batches = 0;
  TRY(step.executor->run([&]() -> Status {
    TRY(check_links());
    const RankAgreement agreement = TRY(RankAgreement::make(comms_.front()));
    TRY(agreement.compare("GradDrain", std::to_string(step.board.ended()), settings_, step.tensors, own));
    batches = TRY(step.executor->bring_in());
    return {};
  }));
  // This call has waited for all results, so nobody need wait for them again.
  for (uint32_t i = 0; i < step.tensors.size(); ++i) TRY(step.board.wait(i));
  return batches;
}

Result<std::string> GradientScheduler::plan_json() const {
  const MutexLock lock(mutex_);
  if (!planned_) return usage("there is no plan: GradPlan comes first");
  return trestle::plan_json(*planned_);
}

Result<double> GradientScheduler::simulate(const std::string& policy) const {
  std::vector<TensorEntry> tensors;
  GradientLink link;
  {
    const MutexLock lock(mutex_);
    if (!times_) return usage("there are no times: GradProfileEnd or GradSetTimes comes first");
    tensors = registered_;
    link = times_->link;
  }
  const ChosenPolicy chosen = TRY(parse_gradient_policy(policy));
  const GradientWorkload work = workload(tensors);
  return TRY(plan_step(chosen, request(work, link))).time.iteration_s;
}

}  // namespace trestle
