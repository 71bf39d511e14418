#include "compress/exchange/exchange.h"

#include <algorithm>
#include <string>

#include "compress/exchange/decision.h"
#include "compress/exchange/link_measure.h"

namespace trestle {
namespace {

constexpr const char* kCreate = "TopKCreate";
constexpr const char* kStep = "AllReduceTopK";

std::string text_of(const std::vector<size_t>& lengths) {
  std::string text;
  for (const size_t length : lengths) text.append(text.empty() ? "" : ",").append(std::to_string(length));
  return text;
}

template <class Number>
std::string text_of(Number number) {
  return std::to_string(static_cast<uint64_t>(number));
}

Facts facts_of(const ExchangeArguments& arguments) {
  const ExchangeSettings& settings = arguments.settings;
  const LinkCost cost = settings.cost.value_or(LinkCost{-1, -1});
  return {{"count", text_of(settings.count)},
          {"type", to_string(arguments.type)},
          {"method", text_of(settings.method)},
          {"collective", text_of(settings.collective ? 1 + static_cast<uint64_t>(*settings.collective) : 0)},
          {"op", text_of(arguments.op)},
          {"ratio", exact_text(settings.ratio)},
          {"startup", exact_text(cost.startup_s)},
          {"perByte", exact_text(cost.per_byte_s)},
          {"ratioRule", text_of(settings.rule)},
          {"timeWeight", exact_text(settings.time_weight)},
          {"gainWeight", exact_text(settings.gain_weight)},
          {"compressWeight", exact_text(settings.compress_weight)},
          {"reviewSteps", text_of(settings.review_steps)},
          {"steps", text_of(arguments.steps)},
          {"layers", text_of(settings.layers)}};
}

}  // namespace

Result<std::shared_ptr<TopKExchange>> TopKExchange::make(trestleComm_t comm, ExchangeArguments arguments,
                                                         const Status& own) {
  RankCalls calls = TRY(RankCalls::make(comm, std::move(arguments.end_without_memory)));
  arguments.settings.workers = static_cast<uint32_t>(calls.ranks());
  arguments.settings.value_bytes = arguments.type == DataType::kFloat64 ? sizeof(double) : sizeof(float);
  const std::shared_ptr<TopKExchange> exchange(new TopKExchange(std::move(calls), std::move(arguments)));
  TRY(exchange->calls_.agree(kCreate, facts_of(exchange->arguments_), own));
  TRY(exchange->prepare());
  return exchange;
}

void TopKExchange::Window::clear() {
  gains.clear();
  messages.clear();
  candidates = {};
}

Status TopKExchange::prepare() {
  const MutexLock lock(mutex_);
  now_.steps = arguments_.steps;
  const bool measures = choice_.needs_cost();
  const std::vector<TimedMessage> messages =
      measures ? TRY(measure_link(calls_, kCreate)) : std::vector<TimedMessage>();
  TRY(decide(calls_, kCreate, choice_, [&](ExchangeChoice& choice) {
    if (measures) choice.measured(messages);
  }));
  first_plans_ = choice_.plan_changes();
  TRY(reserve(kCreate));
  publish();
  return {};
}

size_t TopKExchange::part_bytes() const {
  const size_t elements = choice_.plan().elements;
  return type() == DataType::kFloat64 ? Part<double>::bytes(elements) : Part<float>::bytes(elements);
}

// The ranks' parts, and behind them the float32 sums from which 16-bit results are rounded.
size_t TopKExchange::memory_bytes() const {
  if (!sends_own(choice_.plan().method)) return part_bytes();
  return part_bytes() * workers() + (is_narrow() ? count() * sizeof(float) : 0);
}

// All ranks have the same plan, so all find that there is no room at the same step.
Status TopKExchange::reserve(const char* function) {
  norms_.resize(workers());
  const size_t bytes = memory_bytes();
  if (bytes <= room_) return {};
  TRY(calls_.agree(function, {}, memory_.reserve(bytes)));
  room_ = bytes;
  return {};
}

Status TopKExchange::review() {
  std::vector<double> seconds;
  for (const TimedMessage& message : window_.messages) seconds.push_back(message.seconds);
  std::vector<double> sums(window_.gains.begin(), window_.gains.end());
  for (const Window::Candidate& candidate : window_.candidates)
    sums.insert(sums.end(), {candidate.gain, candidate.seconds, candidate.steps});
  if (workers() > 1) {
    // The rank that came last waited for no other, so it has the least time.
    TRY(calls_.all_reduce(seconds.data(), seconds.size(), trestleFloat64, trestleMin));
    TRY(calls_.all_reduce(sums.data(), sums.size(), trestleFloat64, trestleSum));
  }
  const ExchangeReview review = found(seconds, sums);
  TRY(decide(calls_, kStep, choice_, [&](ExchangeChoice& choice) { choice.review(review); }));
  window_.clear();
  return {};
}

// After the all-reduces.
ExchangeReview TopKExchange::found(const std::vector<double>& seconds, const std::vector<double>& sums) const {
  ExchangeReview review;
  const size_t steps = window_.gains.size();
  if (workers() > 1) review.messages = window_.messages;
  for (size_t i = 0; i < review.messages.size(); ++i) review.messages[i].seconds = seconds[i];
  for (size_t i = 0; i < steps; ++i) review.gains.push_back(sums[i] / workers());
  for (size_t i = 0; i < kRatioCandidates.size(); ++i) {
    const double* const candidate = &sums[steps + 3 * i];
    if (candidate[2] > 0)
      review.samples.push_back({kRatioCandidates[i], candidate[0] / candidate[2], candidate[1] / candidate[2]});
  }
  return review;
}

Status TopKExchange::fit(const Status& own) {
  const MutexLock lock(mutex_);
  TRY(calls_.agree("TopKFit", {}, own));
  const std::vector<TimedMessage> messages = TRY(measure_link(calls_, "TopKFit"));
  TRY(decide(calls_, "TopKFit", choice_, [&](ExchangeChoice& choice) { choice.measured(messages); }));
  publish();
  return {};
}

Status TopKExchange::set_ratio(double ratio, const Status& own) {
  const MutexLock lock(mutex_);
  TRY(calls_.agree("TopKSetRatio", {{"ratio", exact_text(ratio)}}, own));
  TRY(decide(calls_, "TopKSetRatio", choice_, [&](ExchangeChoice& choice) { choice.set_ratio(ratio); }));
  window_.clear();
  publish();
  return {};
}

Result<RatioChoice> TopKExchange::best_ratio(std::vector<RatioSample> samples) const {
  const MutexLock lock(mutex_);
  return choice_.best_ratio(std::move(samples));
}

void TopKExchange::publish() {
  now_.plan = choice_.plan();
  now_.cost = choice_.cost();
  now_.mean_gain = choice_.smoothed_gain();
  now_.plan_changes = choice_.plan_changes() - first_plans_;
  now_.gain_changes = choice_.gain_changes();
  now_.link_changes = choice_.link_changes();
  now_.measures = choice_.measures();
  const MutexLock lock(shown_mutex_);
  shown_ = now_;
}

ExchangeStatistics TopKExchange::statistics() const {
  const MutexLock lock(shown_mutex_);
  return shown_;
}

}  // namespace trestle
