#include "compress/exchange_choice.h"

#include <algorithm>
#include <cmath>

#include "compress/topk.h"

namespace trestle {
namespace {

constexpr double kFirstRatio = kRatioCandidates.front();  // while nothing is measured

double mean_of_numbers(std::span<const double> values, double otherwise) {
  double sum = 0;
  size_t numbers = 0;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    sum += value;
    ++numbers;
  }
  return numbers == 0 ? otherwise : sum / static_cast<double>(numbers);
}

}  // namespace

ExchangeChoice::ExchangeChoice(const ExchangeSettings& settings)
    : settings_(settings), chooses_ratio_(settings.ratio == 0), measures_(chooses_ratio_ && settings.count > 0) {
  plan_.ratio = chooses_ratio_ ? kFirstRatio : settings.ratio;
  if (settings_.cost) cost_ = *settings_.cost;
  decide();
  plan_changes_ = 0;
  if (settings_.cost) (void)link_changed();
}

bool ExchangeChoice::needs_cost() const {
  const bool open = !settings_.collective && !sends_own(settings_.method);
  return settings_.workers > 1 && settings_.count > 0 && !settings_.cost && (open || chooses_ratio_);
}

void ExchangeChoice::measured(std::span<const TimedMessage> messages) {
  settings_.cost.reset();
  estimate_ = LinkEstimate();
  for (const TimedMessage& message : messages) estimate_.add(message);
  cost_ = estimate_.cost();
  (void)link_changed();
  search();
}

ExchangeDecision ExchangeChoice::decision() const {
  return {plan_, cost_, smoothed_gain_, plan_changes_, gain_changes_, link_changes_, measures_};
}

void ExchangeChoice::adopt(const ExchangeDecision& decision) {
  plan_ = decision.plan;
  cost_ = decision.cost;
  smoothed_gain_ = decision.mean_gain;
  plan_changes_ = decision.plan_changes;
  gain_changes_ = decision.gain_changes;
  link_changes_ = decision.link_changes;
  measures_ = decision.measures;
}

bool ExchangeChoice::link_changed() {
  const bool changed = link_trigger_.update(cost().startup_s, cost().per_byte_s);
  link_changes_ += changed && link_known_;
  link_known_ = true;
  return changed;
}

void ExchangeChoice::set_ratio(double ratio) {
  chooses_ratio_ = measures_ = false;
  gain_trigger_.measured();  // another ratio has another gain
  plan_.ratio = ratio;
  decide();
}

void ExchangeChoice::review(const ExchangeReview& review) {
  for (const TimedMessage& message : review.messages) estimate_.add(message);
  if (!settings_.cost) cost_ = estimate_.cost();
  smoothed_gain_ = mean_of_numbers(review.gains, smoothed_gain_);
  bool gain_changed = false;
  for (const double gain : review.gains) gain_changed = gain_trigger_.add(gain) || gain_changed;
  const bool other_link = link_changed();
  gain_changes_ += gain_changed;
  if (gain_changed) gain_trigger_.measured();
  const bool were_measured = measures_;
  if (were_measured) samples_ = review.samples;
  // If no gain was a number, there is nothing to choose by. Then the next steps measure again.
  measures_ = chooses_ratio_ && ((gain_changed && !were_measured) || samples_.empty());
  // Another ratio has another gain. Changes from then on are measured against that one.
  const double before = plan_.ratio;
  if (were_measured || other_link) search();
  if (plan_.ratio != before) gain_trigger_.measured();
}

Result<RatioChoice> ExchangeChoice::best_ratio(std::vector<RatioSample> samples) const {
  RatioSearch search;
  search.samples = std::move(samples);
  search.exchange = exchange_of(1);
  search.rule = settings_.rule;
  search.time_weight = settings_.time_weight;
  search.gain_weight = settings_.gain_weight;
  search.compress_weight = settings_.compress_weight;
  return choose_ratio(search);
}

SparseExchange ExchangeChoice::exchange_of(double ratio) const {
  SparseExchange exchange =
      sparse_exchange(static_cast<double>(settings_.count), settings_.value_bytes, settings_.workers);
  exchange.ratio = ratio;
  exchange.startup_s = cost().startup_s;
  exchange.per_byte_s = cost().per_byte_s;
  return exchange;
}

void ExchangeChoice::search() {
  if (chooses_ratio_ && !samples_.empty()) {
    const Result<RatioChoice> choice = best_ratio(samples_);
    if (choice.ok()) plan_.ratio = choice.value().ratio;
  }
  decide();
}

// Without the all-gather only rule 5a counts: a ring or a tree.
void ExchangeChoice::decide() {
  const ExchangePlan before = plan_;
  const bool layerwise = settings_.method == SparseMethod::kLayerwise;
  plan_.elements =
      layerwise ? layerwise_count(settings_.layers, plan_.ratio) : top_k_count(plan_.ratio, settings_.count);
  // The part that is really sent, for the rules. It is more than the plan's ratio, because k is rounded up.
  const double sent = static_cast<double>(plan_.elements) / std::max(1.0, static_cast<double>(settings_.count));
  const SparseRules rules = sparse_rules(exchange_of(sent));
  if (sends_own(settings_.method)) {
    plan_.collective = SparseCollective::kAllGather;
  } else if (settings_.collective) {
    plan_.collective = *settings_.collective;
  } else if (settings_.method == SparseMethod::kAuto) {
    plan_.collective = chosen_by(rules);
  } else {
    plan_.collective = rules.ring_beats_tree ? SparseCollective::kRing : SparseCollective::kTree;
  }
  plan_.method = settings_.method;
  if (plan_.method == SparseMethod::kAuto)
    plan_.method = plan_.collective == SparseCollective::kAllGather ? SparseMethod::kExact : SparseMethod::kStar;
  plan_changes_ += plan_ != before;
}

}  // namespace trestle
