// PlanCache: the plans of one rank, by the values that they depend on. Bytes are not among these, so calls of any count
// share a plan.
//
// Owned by the communicator; any thread. Plans are immutable and shared with the Prepareds that use them.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/result.h"
#include "plan/plan.h"

namespace trestle {

// find_sums() of a plan for this request.
Result<std::vector<uint8_t>> sums_of(const Plan& plan, uint16_t algorithm, const PlanRequest& request);

class PlanCache {
 public:
  using Entry = std::shared_ptr<const Plan>;
  // The plan of algorithms()[algorithm] for the request. Built at the first call (and with `check` checked
  // symbolically).
  Result<Entry> get(uint16_t algorithm, const PlanRequest& request, bool check);
  // find_sums() of that plan (plan/sums.h).
  using Sums = std::shared_ptr<const std::vector<uint8_t>>;
  Result<Sums> sums(uint16_t algorithm, const PlanRequest& request, bool check);
  size_t size() const;

 private:
  struct Key {
    uint16_t algorithm = 0;
    PlanRequest request;
    bool operator==(const Key& other) const;
  };
  struct Kept {
    Entry plan;
    Sums sums;  // when they were asked for
  };
  struct Hash {
    size_t operator()(const Key& key) const;
  };

  Result<Kept*> find(const Key& key, bool check) TRESTLE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::unordered_map<Key, Kept, Hash> plans_ TRESTLE_GUARDED_BY(mutex_);
};

}  // namespace trestle
