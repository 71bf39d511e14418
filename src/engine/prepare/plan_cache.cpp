#include "engine/prepare/plan_cache.h"

#include <tuple>

#include "algorithms/catalog.h"
#include "plan/sums.h"

namespace trestle {

namespace {

// Only different roots make many plans. Above this number, plans that no Prepared uses any more are dropped.
constexpr size_t kMost = 256;

auto fields(const PlanRequest& r) {
  return std::tuple(r.kind, r.group_size, r.me, r.root, r.in_place);
}

}  // namespace

Result<std::vector<uint8_t>> sums_of(const Plan& plan, uint16_t algorithm, const PlanRequest& request) {
  return find_sums(plan, [&](int32_t index) {
    PlanRequest of_peer = request;
    of_peer.me = index;
    return build_plan(algorithms()[algorithm], of_peer, false);
  });
}

bool PlanCache::Key::operator==(const Key& other) const {
  return algorithm == other.algorithm && fields(request) == fields(other.request);
}

size_t PlanCache::Hash::operator()(const Key& key) const {
  const PlanRequest& r = key.request;
  uint64_t h = static_cast<uint64_t>(key.algorithm) << 16 | static_cast<uint64_t>(r.kind) << 8 |
               static_cast<uint64_t>(r.in_place);
  h = (h ^ static_cast<uint64_t>(r.group_size) << 32) * 0x9e3779b97f4a7c15ull;
  h = (h ^ static_cast<uint64_t>(r.me) << 32 ^ static_cast<uint64_t>(r.root)) * 0xc2b2ae3d27d4eb4full;
  return h ^ (h >> 31);
}

Result<PlanCache::Kept*> PlanCache::find(const Key& key, bool check) {
  if (const auto found = plans_.find(key); found != plans_.end()) return &found->second;
  Entry made = std::make_shared<const Plan>(TRY(build_plan(algorithms()[key.algorithm], key.request, check)));
  if (plans_.size() >= kMost) std::erase_if(plans_, [](const auto& kept) { return kept.second.plan.use_count() == 1; });
  return &plans_.emplace(key, Kept{std::move(made), nullptr}).first->second;
}

Result<PlanCache::Entry> PlanCache::get(uint16_t algorithm, const PlanRequest& request, bool check) {
  const MutexLock lock(mutex_);
  return TRY(find({algorithm, request}, check))->plan;
}

Result<PlanCache::Sums> PlanCache::sums(uint16_t algorithm, const PlanRequest& request, bool check) {
  const MutexLock lock(mutex_);
  Kept& kept = *TRY(find({algorithm, request}, check));
  if (kept.sums == nullptr)
    kept.sums = std::make_shared<const std::vector<uint8_t>>(TRY(sums_of(*kept.plan, algorithm, request)));
  return kept.sums;
}

size_t PlanCache::size() const {
  const MutexLock lock(mutex_);
  return plans_.size();
}

}  // namespace trestle
