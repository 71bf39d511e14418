#include "compress/exchange/decision.h"

#include <array>
#include <bit>
#include <string>

namespace trestle {
namespace {

enum Word : size_t {
  kRatio,
  kElements,
  kMethod,
  kCollective,
  kStartup,
  kPerByte,
  kMeanGain,
  kPlanChanges,
  kGainChanges,
  kLinkChanges,
  kMeasures,
  kWords
};
using Words = std::array<uint64_t, kWords>;

Words words_of(const ExchangeDecision& decision) {
  Words words = {};
  words[kRatio] = std::bit_cast<uint64_t>(decision.plan.ratio);
  words[kElements] = decision.plan.elements;
  words[kMethod] = static_cast<uint64_t>(decision.plan.method);
  words[kCollective] = static_cast<uint64_t>(decision.plan.collective);
  words[kStartup] = std::bit_cast<uint64_t>(decision.cost.startup_s);
  words[kPerByte] = std::bit_cast<uint64_t>(decision.cost.per_byte_s);
  words[kMeanGain] = std::bit_cast<uint64_t>(decision.mean_gain);
  words[kPlanChanges] = decision.plan_changes;
  words[kGainChanges] = decision.gain_changes;
  words[kLinkChanges] = decision.link_changes;
  words[kMeasures] = decision.measures ? 1 : 0;
  return words;
}

ExchangeDecision decision_of(const Words& words) {
  ExchangeDecision decision;
  decision.plan.ratio = std::bit_cast<double>(words[kRatio]);
  decision.plan.elements = words[kElements];
  decision.plan.method = static_cast<SparseMethod>(words[kMethod]);
  decision.plan.collective = static_cast<SparseCollective>(words[kCollective]);
  decision.cost.startup_s = std::bit_cast<double>(words[kStartup]);
  decision.cost.per_byte_s = std::bit_cast<double>(words[kPerByte]);
  decision.mean_gain = std::bit_cast<double>(words[kMeanGain]);
  decision.plan_changes = words[kPlanChanges];
  decision.gain_changes = words[kGainChanges];
  decision.link_changes = words[kLinkChanges];
  decision.measures = words[kMeasures] != 0;
  return decision;
}

// Numbers from another rank must not lead outside of the gradient, nor of the enumerations.
Status check_bounds(const ExchangePlan& plan, const ExchangeSettings& settings, const char* function) {
  if (plan.elements <= settings.count && plan.method <= SparseMethod::kMultiSampling &&
      plan.collective <= SparseCollective::kAllGather)
    return {};
  return Error{Code::kInternalError, std::string(function) + ": rank 0 chose " + std::to_string(plan.elements) +
                                         " elements of a gradient of " + std::to_string(settings.count)};
}

}  // namespace

Status give_decision(const RankCalls& calls, const ExchangeChoice& choice) {
  Words words = words_of(choice.decision());
  if (calls.ranks() == 1) return {};
  return calls.broadcast(words.data(), words.size(), trestleUint64, 0);
}

Status adopt_decision(const RankCalls& calls, const char* function, ExchangeChoice& choice) {
  Words words = {};
  TRY(calls.broadcast(words.data(), words.size(), trestleUint64, 0));
  const ExchangeDecision decision = decision_of(words);
  TRY(check_bounds(decision.plan, choice.settings(), function));
  choice.adopt(decision);
  return {};
}

}  // namespace trestle
