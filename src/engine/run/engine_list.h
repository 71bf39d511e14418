// Lists of engines that several threads read without a lock: a list is never changed, but replaced by another one.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/run/engine.h"

namespace trestle {

// Weak: an engine whose communicator was destroyed is freed, even if a sleeping thread holds the list.
using EngineList = std::vector<std::weak_ptr<Engine>>;

inline std::shared_ptr<const EngineList> with_engine(const EngineList& list, const std::shared_ptr<Engine>& engine) {
  auto next = std::make_shared<EngineList>(list);
  next->push_back(engine);
  return next;
}

// Leaves out those that are gone, too.
inline std::shared_ptr<const EngineList> without_engine(const EngineList& list, const Engine* engine) {
  auto next = std::make_shared<EngineList>(list);
  std::erase_if(*next, [engine](const auto& one) {
    const auto other = one.lock();
    return other == nullptr || other.get() == engine;
  });
  return next;
}

}  // namespace trestle
