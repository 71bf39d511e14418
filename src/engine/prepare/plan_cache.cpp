#include "engine/prepare/plan_cache.h"

#include <tuple>

#include "algorithms/catalog.h"

namespace trestle {

namespace {

// Only different roots make many plans. Above this number, plans that no Prepared uses any more are dropped.
constexpr size_t kMost = 256;

auto fields(const PlanRequest& r) {
  return std::tuple(r.kind, r.group_size, r.me, r.root, r.in_place);
}

}  // namespace

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

Result<PlanCache::Entry> PlanCache::get(uint16_t algorithm, const PlanRequest& request, bool check) {
  const MutexLock lock(mutex_);
  const Key key{algorithm, request};
  if (const auto found = plans_.find(key); found != plans_.end()) return found->second;
  Entry made = std::make_shared<const Plan>(TRY(build_plan(algorithms()[algorithm], request, check)));
  if (plans_.size() >= kMost) std::erase_if(plans_, [](const auto& plan) { return plan.second.use_count() == 1; });
  plans_.emplace(key, made);
  return made;
}

size_t PlanCache::size() const {
  const MutexLock lock(mutex_);
  return plans_.size();
}

}  // namespace trestle
