#include "comm/calls/schedule_cache.h"

namespace trestle {

Result<ScheduleCache::Entry> ScheduleCache::get(const SelectionRequest& request, const std::string& options,
                                                const std::function<Result<Schedule>()>& select) {
  static constexpr size_t kMost = 256;
  const Key key{request.collective, request.bytes,        request.element_bytes, request.root, request.decoupled,
                request.rank_order, request.most_sources, request.blocks,        options};
  const MutexLock lock(mutex_);
  const auto known = entries_.find(key);
  if (known != entries_.end()) return known->second;
  Entry made = std::make_shared<const Schedule>(TRY(select()));
  if (entries_.size() == kMost) entries_.clear();
  entries_.emplace(key, made);
  return made;
}

}  // namespace trestle
