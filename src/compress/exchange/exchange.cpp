#include "compress/exchange/exchange.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/clock.h"
#include "base/hash.h"
#include "compress/ar_topk.h"
#include "compress/exchange/link_measure.h"
#include "kernels/reduce.h"
#include "kernels/sparse.h"

namespace trestle {
namespace {

constexpr const char* kCreate = "TopKCreate";
constexpr const char* kStep = "AllReduceTopK";

uint64_t now_ns() {
  return static_cast<uint64_t>(monotonic_clock().now_ns());
}

uint64_t digest_of(const std::vector<size_t>& layers) {
  Hasher hasher;
  for (const size_t length : layers) hasher.integer(length);
  return hasher.digest();
}

std::vector<SaidArgument> said(const ExchangeArguments& arguments) {
  const ExchangeSettings& settings = arguments.settings;
  const LinkCost cost = settings.cost.value_or(LinkCost{-1, -1});
  return {
      SaidArgument::integer("count", settings.count),
      SaidArgument::integer("method", static_cast<uint64_t>(settings.method)),
      SaidArgument::integer("collective", settings.collective ? 1 + static_cast<uint64_t>(*settings.collective) : 0),
      SaidArgument::integer("op", static_cast<uint64_t>(arguments.op)),
      SaidArgument::number("ratio", settings.ratio),
      SaidArgument::number("startup", cost.startup_s),
      SaidArgument::number("perByte", cost.per_byte_s),
      SaidArgument::integer("ratioRule", static_cast<uint64_t>(settings.rule)),
      SaidArgument::number("timeWeight", settings.time_weight),
      SaidArgument::number("gainWeight", settings.gain_weight),
      SaidArgument::number("compressWeight", settings.compress_weight),
      SaidArgument::integer("reviewSteps", settings.review_steps),
      SaidArgument::integer("steps", arguments.steps),
      SaidArgument::integer("layerCount", settings.layers.size()),
      SaidArgument::digest("layers", digest_of(settings.layers))};
}

// What came from another rank must not lead outside of the gradient.
Status check_indices(const uint32_t* indices, size_t elements, size_t count) {
  const uint32_t* const end = indices + elements;
  const auto wrong = std::find_if(indices, end, [=](uint32_t index) { return index >= count; });
  if (wrong == end) return {};
  return Error{Code::kInternalError, std::string(kStep) + ": element " + std::to_string(*wrong) + " of a gradient of " +
                                         std::to_string(count) + " came from another rank"};
}

}  // namespace

Result<std::shared_ptr<TopKExchange>> TopKExchange::make(trestleComm_t comm, ExchangeArguments arguments,
                                                         const Status& own) {
  RankCalls calls = TRY(RankCalls::make(comm));
  arguments.settings.workers = static_cast<uint32_t>(calls.ranks());
  TRY(compare(calls, kCreate, said(arguments), own));
  const std::shared_ptr<TopKExchange> exchange(new TopKExchange(std::move(calls), std::move(arguments)));
  TRY(exchange->prepare());
  return exchange;
}

Status TopKExchange::prepare() {
  const MutexLock lock(mutex_);
  now_.steps = arguments_.steps;
  if (choice_.needs_cost()) choice_.measured(TRY(measure_link(calls_, kCreate)));
  first_plans_ = choice_.plan_changes();
  TRY(reserve());
  publish();
  return {};
}

// All ranks have the same plan, so all find that there is no room at the same step.
Status TopKExchange::reserve() {
  const ExchangePlan& plan = choice_.plan();
  const size_t words = 2 * plan.elements * (sends_own(plan.method) ? workers() : 1);
  if (words <= room_) return {};
  TRY(all_could(calls_, kStep, memory_.reserve(words)));
  room_ = words;
  return {};
}

Status TopKExchange::step(const float* gradient, float* residual, float* result) {
  const MutexLock lock(mutex_);
  const uint64_t begin = now_ns();
  const uint64_t exchanged_before = now_.exchange_ns;
  const Accumulated sum = accumulate(residual, gradient, count());
  now_.last_nans = sum.nans;
  now_.nans += sum.nans;
  if (count() > 0) {
    if (window_.gains.size() >= choice_.steps_to_review()) TRY(review());
    TRY(reserve());
    std::fill(result, result + count(), 0.0f);
    if (choice_.measures()) measure_candidates({residual, count()}, sum.square_sum);
    const bool own = sends_own(choice_.plan().method);
    TRY(own ? send_own(residual, result, sum.square_sum) : send_one(residual, result, sum.square_sum));
    now_.sent += choice_.plan().elements;
  }
  ++now_.steps;
  now_.compress_ns += now_ns() - begin - (now_.exchange_ns - exchanged_before);
  publish();
  return {};
}

// AR-Topk: all send the elements that one rank names.
Status TopKExchange::send_one(float* residual, float* result, double whole) {
  const ExchangePlan& plan = choice_.plan();
  const bool votes = plan.method == SparseMethod::kVar;
  const size_t k = plan.elements;
  int root = static_cast<int>(star_root(now_.steps + 1, workers()));
  SparseVector top;
  if (votes || root == calls_.rank()) top = top_k({residual, count()}, k);
  const uint64_t begin = now_ns();
  if (votes) root = TRY(elect(top));
  uint32_t* const indices = memory_.words();
  float* const values = memory_.floats() + k;
  if (root == calls_.rank()) std::copy(top.indices.begin(), top.indices.end(), indices);
  TRY(calls_.broadcast(indices, k, trestleUint32, root));
  TRY(check_indices(indices, k, count()));
  gather(values, residual, indices, k);
  const double norm = square_sum(values, k);
  const char* const algorithm = plan.collective == SparseCollective::kTree ? "*tree" : "*ring";
  TRY(calls_.all_reduce(values, k, trestleFloat32, arguments_.op, algorithm));
  const uint64_t took = now_ns() - begin;
  clear_at(residual, indices, k);
  scatter(result, indices, values, k);
  now_.exchange_ns += took;
  now_.root = root;
  const TimedMessage message =
      timed_exchange(plan.collective, static_cast<double>(k), workers(), static_cast<double>(took) / 1e9);
  note_sent(norm, whole, votes ? with_norms(message, workers()) : message);
  return {};
}

Result<int> TopKExchange::elect(const SparseVector& top) const {
  const double norm = square_norm(top.values);
  std::vector<double> norms(workers());
  TRY(calls_.all_gather(&norm, norms.data(), 1, trestleFloat64));
  return static_cast<int>(var_root(norms));
}

// AG-Topk: each rank sends its own elements. They are added in the order of ranks.
Status TopKExchange::send_own(float* residual, float* result, double whole) {
  const size_t k = choice_.plan().elements;
  const SparseVector top = compress({residual, count()}, choice_.plan().ratio);
  const uint64_t begin = now_ns();
  const size_t own = 2 * k * static_cast<size_t>(calls_.rank());
  std::copy(top.indices.begin(), top.indices.end(), memory_.words() + own);
  std::copy(top.values.begin(), top.values.end(), memory_.floats() + own + k);
  TRY(calls_.all_gather(memory_.words() + own, memory_.words(), 2 * k, trestleUint32));
  const uint64_t took = now_ns() - begin;
  for (size_t rank = 0; rank < workers(); ++rank) {
    const uint32_t* const indices = memory_.words() + 2 * k * rank;
    TRY(check_indices(indices, k, count()));
    scatter_add(result, indices, memory_.floats() + 2 * k * rank + k, k);
  }
  if (arguments_.op == trestleAvg) {
    auto* const bytes = reinterpret_cast<std::byte*>(result);
    const std::array<const std::byte*, 1> sources = {bytes};
    reduce(bytes, sources, count(), {DataType::kFloat32, ReduceOp::kAvg, workers(), false});
  }
  clear_at(residual, top.indices.data(), k);
  now_.exchange_ns += took;
  now_.root = -1;
  note_sent(
      square_norm(top.values), whole,
      timed_exchange(SparseCollective::kAllGather, static_cast<double>(k), workers(), static_cast<double>(took) / 1e9));
  return {};
}

SparseVector TopKExchange::compress(std::span<const float> gradient, double ratio) const {
  const ExchangeSettings& settings = arguments_.settings;
  switch (settings.method) {
    case SparseMethod::kLayerwise:
      return layerwise_top_k(gradient, settings.layers, ratio);
    case SparseMethod::kMultiSampling:
      return ms_top_k(gradient, top_k_count(ratio, gradient.size()));
    case SparseMethod::kAuto:
    case SparseMethod::kStar:
    case SparseMethod::kVar:
    case SparseMethod::kExact:
      break;
  }
  return top_k(gradient, top_k_count(ratio, gradient.size()));
}

void TopKExchange::measure_candidates(std::span<const float> gradient, double whole) {
  for (size_t i = 0; i < kRatioCandidates.size(); ++i) {
    const uint64_t begin = now_ns();
    const SparseVector top = compress(gradient, kRatioCandidates[i]);
    const double seconds = static_cast<double>(now_ns() - begin) / 1e9;
    const double gain = compression_gain(square_norm(top.values), whole);
    if (!std::isfinite(gain)) continue;
    window_.candidates[i].gain += gain;
    window_.candidates[i].seconds += seconds;
    window_.candidates[i].steps += 1;
  }
}

void TopKExchange::note_sent(double norm, double whole, TimedMessage message) {
  now_.gain = compression_gain(norm, whole);
  window_.gains.push_back(now_.gain);
  window_.messages.push_back(message);
}

// The least time of any rank is that of the one which came last and waited for none.
Status TopKExchange::review() {
  ExchangeReview review;
  std::vector<double> seconds;
  for (const TimedMessage& message : window_.messages) seconds.push_back(message.seconds);
  std::vector<double> sums = window_.gains;
  for (const Window::Candidate& candidate : window_.candidates)
    sums.insert(sums.end(), {candidate.gain, candidate.seconds, candidate.steps});
  if (workers() > 1) {
    TRY(calls_.all_reduce(seconds.data(), seconds.size(), trestleFloat64, trestleMin));
    TRY(calls_.all_reduce(sums.data(), sums.size(), trestleFloat64, trestleSum));
    review.messages = window_.messages;
    for (size_t i = 0; i < seconds.size(); ++i) review.messages[i].seconds = seconds[i];
  }
  const size_t steps = window_.gains.size();
  for (size_t i = 0; i < steps; ++i) review.gains.push_back(sums[i] / workers());
  for (size_t i = 0; i < kRatioCandidates.size(); ++i) {
    const double* const candidate = &sums[steps + 3 * i];
    if (candidate[2] > 0)
      review.samples.push_back({kRatioCandidates[i], candidate[0] / candidate[2], candidate[1] / candidate[2]});
  }
  choice_.review(review);
  window_ = Window();
  return {};
}

Status TopKExchange::fit(const Status& own) {
  const MutexLock lock(mutex_);
  TRY(compare(calls_, "TopKFit", {}, own));
  choice_.measured(TRY(measure_link(calls_, "TopKFit")));
  publish();
  return {};
}

Status TopKExchange::set_ratio(double ratio, const Status& own) {
  const MutexLock lock(mutex_);
  TRY(compare(calls_, "TopKSetRatio", {SaidArgument::number("ratio", ratio)}, own));
  choice_.set_ratio(ratio);
  window_ = Window();
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
