#include "gradient/executor/step_profile.h"

#include <algorithm>

namespace trestle {

StepProfile::StepProfile(uint32_t tensors, int64_t now_ns)
    : tensors_(tensors), stamps_(new Stamps[tensors]), forward_ns_(tensors), backward_ns_(tensors), begin_ns_(now_ns) {}

void StepProfile::ready(uint32_t tensor, int64_t now_ns) {
  stamps_[tensor].ready.store(now_ns, std::memory_order_relaxed);
}

void StepProfile::waited(uint32_t tensor, int64_t called_ns, int64_t returned_ns) {
  stamps_[tensor].called.store(called_ns, std::memory_order_relaxed);
  stamps_[tensor].returned.store(returned_ns, std::memory_order_relaxed);
}

// The tensors that have this stamp, in the order of their times.
std::vector<uint32_t> StepProfile::by_time(std::atomic<int64_t> Stamps::*stamp) const {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < tensors_; ++i) {
    if ((stamps_[i].*stamp).load(std::memory_order_relaxed) != 0) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](uint32_t i) { return (stamps_[i].*stamp).load(std::memory_order_relaxed); });
  return order;
}

void StepProfile::end_step(int64_t now_ns) {
  const std::vector<uint32_t> forward = by_time(&Stamps::returned);
  const std::vector<uint32_t> backward = by_time(&Stamps::ready);
  const auto add = [](double& sum, int64_t from, int64_t to) {
    sum += static_cast<double>(std::max(to - from, int64_t{0}));
  };
  for (size_t i = 0; i + 1 < forward.size(); ++i) {
    add(forward_ns_[forward[i]], stamps_[forward[i]].returned, stamps_[forward[i + 1]].called);
  }
  int64_t before = begin_ns_;
  if (!forward.empty() && !backward.empty()) {
    const int64_t last = stamps_[forward.back()].returned;
    before = last + (stamps_[backward.front()].ready - last) / 3;
    add(forward_ns_[forward.back()], last, before);
  }
  for (const uint32_t i : backward) {
    add(backward_ns_[i], before, stamps_[i].ready);
    before = stamps_[i].ready;
  }
  for (uint32_t i = 0; i < tensors_; ++i) {
    for (std::atomic<int64_t>* stamp : {&stamps_[i].ready, &stamps_[i].called, &stamps_[i].returned}) stamp->store(0);
  }
  begin_ns_ = now_ns;
  ++steps_;
}

std::vector<double> StepProfile::means(const std::vector<double>& sums) const {
  std::vector<double> means;
  for (const double sum : sums) means.push_back(steps_ == 0 ? 0 : sum / static_cast<double>(steps_) / 1e9);
  return means;
}

}  // namespace trestle
