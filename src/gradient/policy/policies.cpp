#include "gradient/policy/policies.h"

#include <algorithm>

#include "base/text/names.h"
#include "base/text/value_text.h"
#include "gradient/policy/arguments.h"
#include "gradient/policy/buffer_tuner.h"
#include "gradient/policy/by_sizes.h"
#include "gradient/policy/dear.h"
#include "gradient/policy/deft.h"
#include "gradient/policy/mgwfbp_paper.h"
#include "gradient/policy/optimal.h"
#include "gradient/policy/priority.h"
#include "gradient/policy/split_free.h"
#include "gradient/policy/split_shared.h"
#include "gradient/policy/topk.h"
#include "gradient/policy/us_byte.h"

namespace trestle {
namespace {

using Words = PolicyWords;
using Request = StepPlanRequest;
using Planned = Result<PlannedStep>;

uint32_t tensors_of(const Request& request) {
  return static_cast<uint32_t>(request.workload.tensors.size());
}

Planned plan_dear_row(const Request& request) {
  const PolicyArguments& words = request.arguments;
  if (!words.tuned) return timed(plan_dear(request.workload, words.bytes, words.gather), request);
  const auto step_s = [&request, &words](uint32_t mib) {
    const GradientPlan plan = plan_dear(request.workload, uint64_t{mib} << 20, words.gather);
    return time_step(plan, request.workload, request.link).iteration_s;
  };
  const uint64_t mib = tune_buffer(step_s, words.count);
  return timed(plan_dear(request.workload, mib << 20, words.gather), request);
}

Planned plan_split_row(const Request& request) {
  const bool shared = request.arguments.shared;
  return timed((shared ? plan_split_shared : plan_split_free)(request.workload, request.link), request);
}

constexpr uint32_t kMostNearby = 1 << 20;
constexpr std::string_view kDefault[] = {""};
constexpr std::string_view kThreshold[] = {"25M"};
constexpr std::string_view kNearby[] = {"4"};
constexpr std::string_view kDear[] = {"25M:lookahead", "25M:eager", "tuned"};
constexpr std::string_view kSplit[] = {"shared", "free"};
constexpr std::string_view kTopK[] = {"hidden"};

constexpr GradientPolicy kPolicies[] = {
    {"naive", "", "each tensor alone, after the backward pass", no_words,
     [](const Request& r) -> Planned { return timed(plan_naive(tensors_of(r)), r); }, kLibertyNone, kDefault, true},
    {"wfbp", "", "each tensor alone, as soon as it is ready (Poseidon)", no_words,
     [](const Request& r) -> Planned { return timed(plan_wfbp(tensors_of(r)), r); }, kLibertyNone, kDefault, true},
    {"sync", "", "all tensors as one message (SyncEASGD)", no_words,
     [](const Request& r) -> Planned { return timed(plan_sync(tensors_of(r)), r); }, kLibertyNone, kDefault, true},
    {"threshold", "[:BYTES]", "buffers of at most so many bytes (Horovod, DDP)",
     [](Words words) { return bytes_word(words, kThresholdBytes); },
     [](const Request& r) -> Planned { return timed(plan_threshold(r.workload, r.arguments.bytes), r); }, kLibertyNone,
     kThreshold, true},
    {"nearby", "[:N]", "N tensors in a row (DeAR)",
     [](Words words) { return count_word(words, kNearbyTensors, kMostNearby); },
     [](const Request& r) -> Planned { return timed(plan_nearby(tensors_of(r), r.arguments.count), r); }, kLibertyNone,
     kNearby, true},
    {"mgwfbp_paper", "", "merged by Algorithm 1 as printed (MG-WFBP)", no_words,
     [](const Request& r) -> Planned { return timed(plan_mgwfbp_paper(r.workload, r.link.all_reduce), r); },
     kLibertyNone, kDefault},
    {"optimal", "", "merged at best, exactly", no_words,
     [](const Request& r) -> Planned {
       return timed(plan_optimal(r.workload, r.link.all_reduce, r.link.copy_per_byte_s), r);
     },
     kLibertyNone, kDefault},
    {"dear", "[:BYTES|tuned][:eager|lookahead]", "reduce-scatters backward, all-gathers forward (DeAR)", dear_words,
     plan_dear_row, kLibertyNone, kDear, true},
    {"split_optimal", "[:shared|free]", "the same with the best groups, exactly", split_words, plan_split_row,
     kLibertyNone, kSplit},
    {"priority", "[:BYTES[:NEGOTIATION]]", "parts of tensors, the lowest first (ByteScheduler)",
     [](Words words) { return part_words(words, kPartBytes); },
     [](const Request& r) -> Planned {
       return timed(TRY(plan_priority(r.workload, r.arguments.bytes, r.arguments.negotiation_s)), r);
     },
     kLibertyNone, kDefault},
    {"us_byte", "[:BYTES]", "parts merged greedily, the lowest first (stand-in for US-Byte)",
     [](Words words) { return bytes_word(words, kPartBytes); },
     [](const Request& r) -> Planned {
       return timed(TRY(plan_us_byte(r.workload, r.link.all_reduce, r.arguments.bytes, r.link.copy_per_byte_s)), r);
     },
     kLibertyNone, kDefault},
    {"deft", "[:BYTES]", "buffers that may travel steps later, as knapsacks (DeFT)",
     [](Words words) { return bytes_word(words, kThresholdBytes); }, plan_deft, kLibertyStale, kThreshold},
    {"topk", "[:RATIO|hidden]", "halves with the largest elements only (AR-Topk)", ratio_words, plan_topk,
     kLibertyCompress, kTopK},
    {"auto", "", "the fastest of all others by its predicted time", no_words, plan_fastest, kLibertyNone, {}},
};

Result<ChosenPolicy> with_words(const GradientPolicy& policy, std::string_view words) {
  std::string text(policy.name);
  if (!words.empty()) text.append(":").append(words);
  const Result<PolicyArguments> arguments = policy.parse(split(words, ':'));
  if (arguments.ok()) return ChosenPolicy{&policy, arguments.value(), text};
  return Error{arguments.error().code, text + ": " + arguments.error().message + "; write " + std::string(policy.name) +
                                           std::string(policy.syntax)};
}

}  // namespace

std::span<const GradientPolicy> gradient_policies() {
  return kPolicies;
}

Result<ChosenPolicy> parse_gradient_policy(std::string_view text) {
  const size_t colon = std::min(text.find(':'), text.size());
  const GradientPolicy* policy = TRY(row_named(kPolicies, text.substr(0, colon), "a policy"));
  return with_words(*policy, text.substr(std::min(colon + 1, text.size())));
}

bool reads_times(const ChosenPolicy& chosen) {
  return !chosen.policy->by_sizes || chosen.arguments.tuned;
}

std::vector<ChosenPolicy> allowed_policies(uint32_t liberties) {
  std::vector<ChosenPolicy> allowed;
  for (const GradientPolicy& policy : kPolicies) {
    if ((policy.liberties & ~liberties) != 0) continue;
    for (const std::string_view words : policy.variants) allowed.push_back(with_words(policy, words).value());
  }
  return allowed;
}

PlannedStep timed(GradientPlan plan, const StepPlanRequest& request) {
  PlannedStep step;
  step.time = time_step(plan, request.workload, request.link);
  step.plan = std::move(plan);
  return step;
}

Result<PlannedStep> plan_step(const ChosenPolicy& chosen, StepPlanRequest request) {
  if (request.workload.tensors.empty()) return Error{Code::kInvalidArgument, "the workload has no tensors"};
  request.arguments = chosen.arguments;
  PlannedStep step = TRY(chosen.policy->plan(request));
  TRY(check_plan(step.plan, request.workload.tensors.size()));
  if (step.policy.empty()) step.policy = chosen.text;
  return step;
}

Result<PlannedStep> plan_step(const ChosenPolicy& chosen, const GradientWorkload& workload, const GradientLink& link,
                              uint32_t liberties, const std::vector<double>& link_ratios) {
  return plan_step(chosen, {workload, link, {}, liberties, link_ratios, {}, {}});
}

}  // namespace trestle
