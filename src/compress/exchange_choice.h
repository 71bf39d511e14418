// What the ranks of a sparse exchange do in the next steps: which elements travel, how many, and by which collective. A
// value, one thread; used by compress/exchange.
//
// FLEX (arXiv 2312.02493), sections 3 and 4. Every rank has one, but only rank 0's decides: logarithms and powers may
// differ in their last bit between two hosts, and ranks that send different numbers of elements would wait for each
// other in vain. The others adopt() its decision.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "compress/choice.h"
#include "compress/link_estimate.h"
#include "compress/ratio.h"
#include "compress/triggers.h"

namespace trestle {

// Whose elements travel. The numbers are trestleTopKMethod_t's.
enum class SparseMethod : uint8_t {
  kAuto = 0,           // kStar or kExact, as the collective says
  kStar = 1,           // AR-Topk: one rank's top k, the ranks in turn
  kVar = 2,            // AR-Topk: the top k with the largest norm
  kExact = 3,          // AG-Topk: each rank's own top k
  kLayerwise = 4,      // AG-Topk, LWTopk
  kMultiSampling = 5,  // AG-Topk, MSTopk
};
// Whether each rank sends its own elements, so that only an all-gather can bring them to all.
constexpr bool sends_own(SparseMethod method) {
  return method >= SparseMethod::kExact;
}

struct ExchangeSettings {
  size_t count = 0;                    // elements of the gradient
  size_t value_bytes = sizeof(float);  // of an element that travels
  uint32_t workers = 1;                // ranks
  SparseMethod method = SparseMethod::kAuto;
  std::optional<SparseCollective> collective;  // none: by the rules 5a to 5c
  double ratio = 0;                            // 0: chosen
  std::optional<LinkCost> cost;                // none: measured and kept up to date
  RatioRule rule = RatioRule::kWeighted;       // how a ratio is chosen, and the weights (compress/ratio.h)
  double time_weight = 0.6;
  double gain_weight = 0.4;
  double compress_weight = 0;
  std::vector<size_t> layers;  // of kLayerwise: lengths, whose sum is `count`
  uint32_t review_steps = 20;  // steps from one review to the next
};

struct ExchangePlan {
  double ratio = 1;
  size_t elements = 0;                        // that each rank sends
  SparseMethod method = SparseMethod::kStar;  // never kAuto
  SparseCollective collective = SparseCollective::kRing;
  bool operator==(const ExchangePlan&) const = default;
};

// All that rank 0 has decided, and what statistics say about it.
struct ExchangeDecision {
  ExchangePlan plan;
  LinkCost cost;
  double mean_gain = 0;
  uint64_t plan_changes = 0;
  uint64_t gain_changes = 0;
  uint64_t link_changes = 0;
  bool measures = false;
};

// What the ranks have found since the last review, the same numbers on all of them.
struct ExchangeReview {
  std::vector<double> gains;           // of each step, means over the ranks
  std::vector<TimedMessage> messages;  // with the least time of any rank: the other ranks' times include waits for it
  std::vector<RatioSample> samples;    // of the candidates, if they were measured; else empty
};

class ExchangeChoice {
 public:
  explicit ExchangeChoice(const ExchangeSettings& settings);

  const ExchangeSettings& settings() const { return settings_; }
  const ExchangePlan& plan() const { return plan_; }
  // Steps from one review to the next. While candidates are measured the settings do not decide it.
  uint32_t steps_to_review() const { return measures() ? kMeasuredSteps : settings_.review_steps; }
  // Whether the gains of kRatioCandidates are to be measured in the coming steps.
  bool measures() const { return measures_; }
  // Whether a decision depends on the costs of the links, and none were given.
  bool needs_cost() const;
  LinkCost cost() const { return cost_; }

  ExchangeDecision decision() const;
  // Takes over rank 0's decision. Allocates nothing.
  void adopt(const ExchangeDecision& decision);

  // Measured by messages of their own. Forgets what was known before, also costs that were given.
  void measured(std::span<const TimedMessage> messages);
  // From now on this ratio, above 0 and at most 1.
  void set_ratio(double ratio);
  void review(const ExchangeReview& review);
  // By the settings' objectives and the present costs. Errors: choose_ratio's.
  Result<RatioChoice> best_ratio(std::vector<RatioSample> samples) const;

  double smoothed_gain() const { return smoothed_gain_; }  // mean of the last review's; 0: there was none
  uint64_t gain_changes() const { return gain_changes_; }  // found by GainTrigger
  uint64_t link_changes() const { return link_changes_; }  // found by LinkTrigger; its first search does not count
  uint64_t plan_changes() const { return plan_changes_; }

  // The paper measures ten iterations from an in-memory checkpoint. Here ten steps of the training are measured.
  static constexpr uint32_t kMeasuredSteps = 10;

 private:
  bool link_changed();
  void search();
  void decide();
  SparseExchange exchange_of(double ratio) const;

  ExchangeSettings settings_;
  ExchangePlan plan_;
  LinkEstimate estimate_;
  LinkCost cost_;
  GainTrigger gain_trigger_;
  LinkTrigger link_trigger_;
  std::vector<RatioSample> samples_;
  bool chooses_ratio_;
  bool measures_;
  bool link_known_ = false;
  double smoothed_gain_ = 0;
  uint64_t gain_changes_ = 0;
  uint64_t link_changes_ = 0;
  uint64_t plan_changes_ = 0;
};

}  // namespace trestle
