// ScheduleCache: the schedules of one communicator, by the values that they depend on. Calls that differ in other
// values (in place or not, operator, types of one size) share a schedule, because planning takes milliseconds.
//
// Owned by the communicator; any thread. Bounded: when it is full it is emptied.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/mutex.h"
#include "base/result.h"
#include "sched/schedule.h"
#include "sched/select/select.h"

namespace trestle {

class ScheduleCache {
 public:
  using Entry = std::shared_ptr<const Schedule>;

  // The schedule of the request, or what `select` makes (called under the cache's lock). Errors: those of `select`.
  // `options`: everything else that the choice depends on.
  Result<Entry> get(const SelectionRequest& request, const std::string& options,
                    const std::function<Result<Schedule>()>& select);

 private:
  using Key = std::tuple<Collective, uint64_t, uint32_t, int32_t, bool, bool, uint32_t, BlockBytes, std::string>;

  Mutex mutex_;
  std::map<Key, Entry> entries_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
