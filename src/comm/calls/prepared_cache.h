// PreparedCache: the prepared calls of one communicator, by their requests.
//
// Owned by the communicator; any thread. Bounded: when it is full, everything is dropped except the calls of persistent
// requests and of graphs. So a program that repeats its calls plans each of them once, and one that never repeats a
// call does not grow.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <unordered_map>

#include "base/mutex.h"
#include "base/result.h"
#include "engine/prepare/prepared.h"

namespace trestle {

struct PreparedKey {
  PrepareRequest request;
  bool sending = false;
  bool operator==(const PreparedKey&) const = default;
};

class PreparedCache {
 public:
  using Entry = std::shared_ptr<const Prepared>;
  // Calls `forget` for each dropped entry. It must not call the cache.
  explicit PreparedCache(std::function<void(const Prepared*)> forget) : forget_(std::move(forget)) {}

  // The entry of the key, or what `build` makes (called under the cache's lock). Errors: those of `build`. Finds the
  // entry of the last call without a search.
  Result<Entry> get(const PreparedKey& key, const std::function<Result<Entry>()>& build);
  // As get(). The entry then stays until it was unpinned as often as it was pinned.
  Result<Entry> pin(const PreparedKey& key, const std::function<Result<Entry>()>& build);
  void unpin(const PreparedKey& key);
  // Drops the entries of a custom operator, except pinned ones.
  void drop(const CustomOp* op);

 private:
  struct Hash {
    size_t operator()(const PreparedKey& key) const;
  };
  struct Slot {
    Entry prepared;
    size_t pins = 0;
  };
  Result<Slot*> find_or_build(const PreparedKey& key, const std::function<Result<Entry>()>& build)
      TRESTLE_REQUIRES(mutex_);
  template <class Predicate>
  void drop_unpinned(Predicate&& which) TRESTLE_REQUIRES(mutex_);

  const std::function<void(const Prepared*)> forget_;
  Mutex mutex_;
  using Slots = std::unordered_map<PreparedKey, Slot, Hash>;
  Slots slots_ TRESTLE_GUARDED_BY(mutex_);
  Slots::value_type* last_ TRESTLE_GUARDED_BY(mutex_) = nullptr;  // that was asked for; nullptr: none, or dropped
  size_t pinned_ TRESTLE_GUARDED_BY(mutex_) = 0;                  // slots with pins
};

}  // namespace trestle
