// GradientScheduler: measures times and the loss, or takes them from the program.
#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "gradient/executor/agreement.h"
#include "gradient/executor/link_measure.h"
#include "gradient/executor/links/link_meeting.h"
#include "gradient/executor/plan_bytes.h"
#include "gradient/executor/scheduler.h"
#include "gradient/policy/by_sizes.h"
#include "gradient/policy/deft.h"

namespace trestle {
namespace {

// How many times as long a message takes on another link as on the first one. This may depend on its size; a bucket of
// the default size counts, or all bytes if there are fewer. A link that measures as faster than the first one counts as
// equal to it.
double ratio_of(const MessageCost& other, const MessageCost& first, uint64_t all_bytes) {
  const uint64_t bytes = std::clamp<uint64_t>(all_bytes, 1, kThresholdBytes);
  const double ratio = other.of(bytes) / first.of(bytes);
  return ratio > 1 ? std::min(ratio, kMostLinkRatio) : 1;  // also where a cost is 0
}

}  // namespace

Status GradientScheduler::profile_begin() {
  std::unique_ptr<Running> fresh;
  Running& now = *TRY(candidate(fresh));
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (now.tensors.empty()) return invalid_usage("no tensor is registered");
  if (now.profile != nullptr) return invalid_usage("times are measured already: GradProfileEnd comes first");
  if (!now.board.between_steps()) return invalid_usage(kStepUnderWay);
  now.profile = std::make_unique<StepProfile>(static_cast<uint32_t>(now.tensors.size()), monotonic_clock().now_ns());
  now.measuring.store(now.profile.get(), std::memory_order_release);
  publish(std::move(fresh));
  return {};
}

Status GradientScheduler::profile_end() {
  std::unique_ptr<Running> fresh;
  const Result<Running*> made = candidate(fresh);
  if (!made.ok()) return refuse_on_all("GradProfileEnd", made.error());
  Running& now = *made.value();
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (!now.board.between_steps()) return invalid_usage(kStepUnderWay);
  Status own;
  if (now.profile == nullptr) {
    own = invalid_usage("no times are measured: GradProfileBegin comes first");
  } else if (now.profile->steps() == 0) {
    own = invalid_usage("no step has ended since GradProfileBegin");
  }
  if (now.board.forward_over()) now.executor->wake();
  TRY(run(now, std::move(fresh), [this, &now, own] { return profile_on_thread(now, own); }));
  now.measuring.store(nullptr, std::memory_order_release);
  now.profile.reset();
  return {};
}

Status GradientScheduler::profile_on_thread(Running& now, const Status& own) {
  TRY(meet_on_links(*access_, "GradProfileEnd"));
  const RankAgreement agreement = TRY(RankAgreement::make(comms_.front(), *access_));
  TRY(agreement.agree("GradProfileEnd", facts_of(settings_, now.tensors), own));
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

// A job of the executor, so that its thread has noted all its events of earlier steps before.
Status GradientScheduler::trace_begin(size_t events) {
  std::unique_ptr<Running> fresh;
  Running& now = *TRY(candidate(fresh));
  if (auto failure = now.board.failure()) return *std::move(failure);
  if (now.tensors.empty()) return invalid_usage("no tensor is registered");
  if (!now.board.between_steps()) return invalid_usage(kStepUnderWay);
  if (now.board.forward_over()) now.executor->wake();
  return run(now, std::move(fresh), [&now, events]() -> Status { return now.trace.begin(events); });
}

Result<std::string> GradientScheduler::trace_json() const {
  Running* const now = running();
  if (now == nullptr || !now->trace.on()) return invalid_usage("nothing is traced: GradTraceBegin comes first");
  int rank = 0;
  (void)trestleCommUserRank(comms_.front(), &rank);  // the events of a failed scheduler are worth a look, too
  return trestle::trace_json(now->trace.events(), now->tensors, rank);
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
  const std::vector<TensorPlace> places = tensor_places(tensors);
  for (size_t i = 0; i < tensors.size(); ++i) {
    GradientTensor tensor{tensors[i].name, tensors[i].bytes(), 0, 0, places[i]};
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

Result<LossEstimate> GradientScheduler::measure_loss(double samples, const Status& asked) {
  // All ranks have a plan, or none.
  if (has_plan_.load(std::memory_order_acquire))
    return invalid_usage("there is a plan, so the gradients' memory has results: measure steps before the first plan");
  std::unique_ptr<Running> fresh;
  const Result<Running*> made = candidate(fresh);
  if (!made.ok()) return refuse_on_all("GradMeasureLoss", made.error()).error();
  Running& step = *made.value();
  Status own = asked;
  if (own.ok() && fresh != nullptr) {
    own = invalid_usage("there is no plan yet, and no times are measured: GradProfileBegin comes first");
  } else if (own.ok() && !step.board.between_steps()) {
    own = invalid_usage(kStepUnderWay);
  } else if (own.ok() && step.board.ended() == 0) {
    own = invalid_usage("no step has ended, so there are no gradients to measure");
  }
  const auto estimate = std::make_shared<LossEstimate>();
  TRY(run(step, std::move(fresh), [this, &step, own, samples, estimate]() -> Status {
    TRY(meet_on_links(*access_, "GradMeasureLoss"));
    const RankAgreement agreement = TRY(RankAgreement::make(comms_.front(), *access_));
    const Facts facts = facts_of(settings_, step.tensors, {{"batch", exact_text(samples)}});
    TRY(agreement.agree("GradMeasureLoss", facts, own));
    std::vector<const std::byte*> gradients;
    for (uint32_t i = 0; i < step.tensors.size(); ++i) {
      const std::byte* const given = step.board.gradient(i);
      gradients.push_back(given != nullptr ? given : step.tensors[i].gradient);
    }
    *estimate = TRY(trestle::measure_loss(comms_.front(), agreement, step.tensors, gradients, samples));
    return {};
  }));
  return *estimate;
}

Result<std::string> GradientScheduler::profile_json() const {
  std::vector<TensorEntry> tensors;
  {
    const MutexLock lock(mutex_);
    if (!times_) return invalid_usage("there are no times: GradProfileEnd or GradSetTimes comes first");
    tensors = registered_;
  }
  return workload_json(workload(tensors));
}

}  // namespace trestle
