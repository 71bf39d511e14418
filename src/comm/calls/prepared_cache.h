// PreparedCache: the prepared calls of one communicator, by what was asked for.
//
// Owned by the communicator; any thread. Bounded: when it is full, all but what persistent requests hold is dropped, so
// a program that repeats its calls plans each once, and one that never repeats a call does not grow.
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
  // Dropped entries are told to `forget`, which must not call the cache.
  explicit PreparedCache(std::function<void(const Prepared*)> forget) : forget_(std::move(forget)) {}

  // What is there, or what `build` makes (called under the cache's lock). Errors: those of `build`.
  Result<Entry> get(const PreparedKey& key, const std::function<Result<Entry>()>& build);
  // From here on the entry stays, until it was unpinned as often as it was pinned. It must be there.
  Result<Entry> pin(const PreparedKey& key, const std::function<Result<Entry>()>& build);
  void unpin(const PreparedKey& key);
  // Drops what was prepared for an operator of the caller's making, but for pinned entries.
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
  std::unordered_map<PreparedKey, Slot, Hash> slots_ TRESTLE_GUARDED_BY(mutex_);
  size_t pinned_ TRESTLE_GUARDED_BY(mutex_) = 0;  // slots with pins
};

}  // namespace trestle
