#include "gradient/deft/queues.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace trestle {
namespace {

constexpr size_t kMostSelections = 256;  // in a longer cycle some are computed again

}  // namespace

Result<DeftQueues> DeftQueues::make(DeftSystem system, uint32_t capacity_permille) {
  std::vector<DeftItem> items = TRY(deft_partition(system));
  if (capacity_permille < 1000) {
    return Error{Code::kInvalidArgument, "a knapsack is not smaller than its pass"};
  }
  return DeftQueues(std::move(system), std::move(items), capacity_permille);
}

DeftQueues::DeftQueues(DeftSystem system, std::vector<DeftItem> items, uint32_t capacity_permille)
    : system_(std::move(system)), items_(std::move(items)) {
  forward_capacities_us_ = capacities(forward_us(system_.buckets) * capacity_permille / 1000);
  backward_capacities_us_ = capacities(backward_us(system_.buckets) * capacity_permille / 1000);
}

std::vector<uint64_t> DeftQueues::capacities(uint64_t pass_us) const {
  std::vector<uint64_t> capacities;
  for (const DeftLink& link : system_.links) capacities.push_back(link.carries_us(pass_us));
  return capacities;
}

void DeftQueues::remove_from_current(const DeftSends& sends) {
  for (const std::vector<uint32_t>& link : sends) {
    for (const uint32_t id : link) std::erase(state_.current, id);
  }
}

void DeftQueues::restart() {
  state_ = {};
  in_iteration_ = false;
  iterations_ = 0;
  updated_batches_ = 0;
}

DeftPass DeftQueues::forward() {
  CHECK(!in_iteration_, "two forward passes in a row");
  in_iteration_ = true;
  DeftPass pass{{}, DeftSends(system_.links.size()), DeftSends(system_.links.size())};
  if (state_.current.empty()) return pass;
  pass.which = DeftCase::kForward;
  pass.sends = deft_place(items_, state_.current, forward_capacities_us_).sends;
  remove_from_current(pass.sends);
  return pass;
}

const DeftSends& DeftQueues::select(const std::vector<uint64_t>& left_us) {
  if (selections_.size() == kMostSelections) selections_.clear();
  const auto [place, is_new] = selections_.try_emplace(left_us);
  if (is_new) place->second = deft_select(system_, items_, left_us);
  return place->second;
}

// The current set has left. Notes its update, and makes the future set the current one.
void DeftQueues::next_set(DeftPass& pass, const std::vector<uint64_t>& left_us) {
  pass.update_batches = state_.current_batches;
  updated_batches_ += pass.update_batches;
  pass.next_batches = state_.future_batches;
  pass.next_sends = select(left_us);
  state_.current.resize(items_.size());
  std::iota(state_.current.begin(), state_.current.end(), 0);
  remove_from_current(pass.next_sends);
  state_.current_batches = state_.future_batches;
  state_.future_batches = 0;
}

DeftPass DeftQueues::backward() {
  CHECK(in_iteration_, "a backward pass without its forward pass");
  in_iteration_ = false;
  DeftPass pass{{}, DeftSends(system_.links.size()), DeftSends(system_.links.size())};
  ++state_.future_batches;
  if (state_.current.empty()) {
    pass.which = DeftCase::kBackwardFuture;
    next_set(pass, backward_capacities_us_);
  } else {
    DeftPlaced placed = deft_place(items_, state_.current, backward_capacities_us_);
    pass.sends = std::move(placed.sends);
    remove_from_current(pass.sends);
    pass.which = state_.current.empty() ? DeftCase::kBackwardRest : DeftCase::kBackwardPart;
    if (state_.current.empty()) next_set(pass, placed.left_us);
  }
  ++iterations_;
  CHECK(updated_batches_ + pending() == iterations_, "a batch is lost or is in two updates");
  return pass;
}

}  // namespace trestle
