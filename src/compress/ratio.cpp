#include "compress/ratio.h"

#include <algorithm>
#include <cmath>

namespace trestle {
namespace {

constexpr size_t kObjectives = 3;  // time of the exchange, 1 / gain, time to compress
using Objectives = std::array<double, kObjectives>;

bool is_at_least_zero(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value) && value >= 0; });
}

Status check(const RatioSearch& search) {
  const auto refuse = [](const char* why) { return Error{Code::kInvalidArgument, why}; };
  if (search.samples.empty()) return refuse("no compression ratio was measured");
  if (search.points == 0) return refuse("the search for a compression ratio has no points");
  if (search.exchange.workers == 0) return refuse("an exchange has at least one worker");
  for (const RatioSample& sample : search.samples) {
    if (!(sample.ratio > 0 && sample.ratio <= 1)) return refuse("a compression ratio is above 0 and at most 1");
    if (!is_at_least_zero({sample.gain, sample.compress_s}) || sample.gain == 0) {
      return refuse("a measured gain is positive, and a time is not negative");
    }
    const auto same = [&](const RatioSample& other) { return other.ratio == sample.ratio; };
    if (std::count_if(search.samples.begin(), search.samples.end(), same) > 1) {
      return refuse("a compression ratio was measured twice");
    }
  }
  if (!is_at_least_zero({search.exchange.bytes, search.exchange.startup_s, search.exchange.per_byte_s})) {
    return refuse("the costs of an exchange are not negative");
  }
  if (!is_at_least_zero({search.time_weight, search.gain_weight, search.compress_weight})) {
    return refuse("the weights of objectives are not negative");
  }
  return {};
}

RatioChoice at_ratio(const RatioSearch& search, std::span<const RatioSample> samples, double ratio) {
  const RatioSample sample = interpolate(samples, ratio);
  SparseExchange exchange = search.exchange;
  exchange.ratio = ratio;
  const SparseCosts costs = sparse_costs(exchange);
  const SparseCollective collective = cheapest(costs);
  return {ratio, sample.gain, sample.compress_s, costs.of(collective), collective};
}

// The index of the best point.
size_t best_of(const std::vector<RatioChoice>& points, const RatioSearch& search) {
  const auto objectives_of = [](const RatioChoice& point) {
    return Objectives{point.exchange_s, 1 / point.gain, point.compress_s};
  };
  Objectives least = objectives_of(points.front());
  Objectives most = least;
  for (const RatioChoice& point : points) {
    const Objectives objectives = objectives_of(point);
    for (size_t o = 0; o < kObjectives; ++o) {
      least[o] = std::min(least[o], objectives[o]);
      most[o] = std::max(most[o], objectives[o]);
    }
  }
  const Objectives weights = {search.time_weight, search.gain_weight, search.compress_weight};
  size_t best = 0;
  double best_score = INFINITY;
  for (size_t i = 0; i < points.size(); ++i) {
    const Objectives objectives = objectives_of(points[i]);
    double score = 0;
    for (size_t o = 0; o < kObjectives; ++o) {
      if (weights[o] == 0 || most[o] == least[o]) continue;
      const double normal = (objectives[o] - least[o]) / (most[o] - least[o]);
      score = search.rule == RatioRule::kKnee ? score + normal : std::max(score, weights[o] * normal);
    }
    if (score < best_score) {
      best_score = score;
      best = i;
    }
  }
  return best;
}

}  // namespace

RatioSample interpolate(std::span<const RatioSample> samples, double ratio) {
  const auto above = std::find_if(samples.begin(), samples.end(), [&](const auto& s) { return s.ratio >= ratio; });
  if (above == samples.begin() || above == samples.end()) {
    RatioSample nearest = above == samples.end() ? samples.back() : samples.front();
    nearest.ratio = ratio;
    return nearest;
  }
  const RatioSample& low = *(above - 1);
  const double part = std::log(ratio / low.ratio) / std::log(above->ratio / low.ratio);
  return {ratio, low.gain + part * (above->gain - low.gain),
          low.compress_s + part * (above->compress_s - low.compress_s)};
}

Result<RatioChoice> choose_ratio(const RatioSearch& search) {
  TRY(check(search));
  std::vector<RatioSample> samples = search.samples;
  std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.ratio < b.ratio; });
  const double high = samples.back().ratio;
  const double low = samples.front().ratio;
  std::vector<RatioChoice> points = {at_ratio(search, samples, high)};
  for (uint32_t i = 1; i + 1 < search.points; ++i) {
    points.push_back(
        at_ratio(search, samples, high * std::pow(low / high, static_cast<double>(i) / (search.points - 1))));
  }
  if (search.points > 1) points.push_back(at_ratio(search, samples, low));
  return points[best_of(points, search)];
}

}  // namespace trestle
