#include "gradient/deft/preserver.h"

#include <cmath>
#include <numbers>

#include "gradient/deft/simulate.h"

namespace trestle {
namespace {

constexpr uint32_t kMostRetries = 10;
constexpr uint32_t kGrowthPermille = 100;

// The probability that a standard normal variable is within +-a, with the sign of a.
double within(double a) {
  return std::erf(a / std::numbers::sqrt2);
}

Status check(const PreserverModel& model) {
  for (const double value : {model.loss, model.least_loss, model.rate, model.drift, model.deviation, model.batch}) {
    if (!std::isfinite(value)) return Error{Code::kInvalidArgument, "a value of the model of the loss is not finite"};
  }
  if (model.deviation < 0) return Error{Code::kInvalidArgument, "the deviation of the gradient is negative"};
  if (model.batch <= 0) return Error{Code::kInvalidArgument, "the batch is not positive"};
  return {};
}

}  // namespace

double expected_loss(const PreserverModel& model, double loss, uint32_t batches) {
  const bool sum = model.merged == MergedUpdate::kSum;
  const auto k = static_cast<double>(batches);
  const double m = loss - model.least_loss - model.rate * model.drift * (sum ? k : 1);
  const double d =
      std::abs(model.rate) * model.deviation / std::sqrt(model.batch) * (sum ? std::sqrt(k) : 1 / std::sqrt(k));
  if (d == 0) return model.least_loss + std::abs(m);
  const double a = m / d;
  return model.least_loss + m * within(a) + d * std::sqrt(2 / std::numbers::pi) * std::exp(-a * a / 2);
}

PreserverRatio compare_updates(const PreserverModel& model, std::span<const uint32_t> batches) {
  PreserverRatio result{model.loss, model.loss};
  for (const uint32_t count : batches) {
    result.merged_loss = expected_loss(model, result.merged_loss, count);
    for (uint32_t i = 0; i < count; ++i) result.single_loss = expected_loss(model, result.single_loss, 1);
  }
  if (result.single_loss != result.merged_loss) result.ratio = result.single_loss / result.merged_loss;
  result.accepted = std::abs(result.ratio - 1) <= model.epsilon;
  return result;
}

Result<PreserverReport> preserve(const DeftSystem& system, const PreserverModel& model) {
  TRY(check(model));
  PreserverReport report;
  while (true) {
    report.capacity_permille = 1000 + kGrowthPermille * report.retries;
    report.batches = TRY(deft_cycle(system, report.capacity_permille));
    report.last = compare_updates(model, report.batches);
    if (report.last.accepted || report.retries == kMostRetries) return report;
    ++report.retries;
  }
}

}  // namespace trestle
