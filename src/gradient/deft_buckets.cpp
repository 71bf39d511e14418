#include "gradient/deft_buckets.h"

#include <cmath>

namespace trestle {
namespace {

constexpr uint64_t kMostUs = 100'000'000;

uint64_t total(std::span<const DeftBucket> buckets, uint64_t DeftBucket::*member) {
  uint64_t sum = 0;
  for (const DeftBucket& bucket : buckets) sum += bucket.*member;
  return sum;
}

bool is_too_long(const DeftBucket& bucket) {
  return bucket.forward_us > kMostUs || bucket.backward_us > kMostUs || bucket.comm_us > kMostUs;
}

uint64_t to_us(double seconds) {
  return static_cast<uint64_t>(std::llround(seconds * 1e6));
}

}  // namespace

uint64_t forward_us(std::span<const DeftBucket> buckets) {
  return total(buckets, &DeftBucket::forward_us);
}

uint64_t backward_us(std::span<const DeftBucket> buckets) {
  return total(buckets, &DeftBucket::backward_us);
}

uint64_t comm_us(std::span<const DeftBucket> buckets) {
  return total(buckets, &DeftBucket::comm_us);
}

uint64_t room_us(std::span<const DeftBucket> buckets, uint32_t bucket) {
  return backward_us(buckets.first(bucket));
}

Status check_deft(const DeftSystem& system) {
  const auto refuse = [](const char* why) { return Error{Code::kInvalidArgument, why}; };
  if (system.buckets.empty()) return refuse("delayed updates need at least one bucket");
  if (system.links.empty()) return refuse("delayed updates need at least one link");
  if (system.links.front().slowdown_permille != 1000)
    return refuse("the first link is the one that others are compared to");
  for (const DeftLink& link : system.links) {
    if (link.slowdown_permille < 1000) return refuse("the first link must be the fastest one");
  }
  for (const DeftBucket& bucket : system.buckets) {
    if (is_too_long(bucket)) return refuse("a bucket takes more than 100 s");
  }
  const DeftBucket all{forward_us(system.buckets), backward_us(system.buckets), comm_us(system.buckets)};
  if (is_too_long(all)) return refuse("a pass, or all messages of a step, take more than 100 s");
  if (all.forward_us == 0) return refuse("delayed updates need a forward pass that takes time");
  return {};
}

std::vector<DeftBucket> vgg19_buckets(Vgg19Table table) {
  const uint64_t fourth = table == Vgg19Table::kPrinted ? 178643 : 188643;
  return {{1238, 72496, 1968},  {28799, 12786, 11262}, {4801, 4872, 15447},
          {1899, 2319, fourth}, {326, 484, 31754},     {103, 162, 8651}};
}

std::vector<DeftBucket> equal_buckets(uint32_t count, const DeftBucket& totals) {
  std::vector<DeftBucket> buckets(count);
  for (uint32_t i = 0; i < count; ++i) {
    const auto share = [&](uint64_t us) { return us / count + (i < us % count ? 1 : 0); };
    buckets[i] = {share(totals.forward_us), share(totals.backward_us), share(totals.comm_us)};
  }
  return buckets;
}

std::vector<DeftBucket> deft_buckets(const GradientWorkload& workload, std::span<const TensorGroup> groups,
                                     const MessageCost& cost) {
  std::vector<DeftBucket> buckets;
  for (const TensorGroup& group : groups) {
    double forward_s = 0;
    double backward_s = 0;
    uint64_t bytes = 0;
    for (uint32_t i = group.first; i <= group.last; ++i) {
      forward_s += workload.tensors[i].forward_s;
      backward_s += workload.tensors[i].backward_s;
      bytes += workload.tensors[i].bytes;
    }
    buckets.push_back({to_us(forward_s), to_us(backward_s), to_us(cost.of(bytes))});
  }
  return buckets;
}

}  // namespace trestle
