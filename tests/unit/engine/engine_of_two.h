// Rank 0 of two, with a transport of the test's own to both ranks.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "engine/run/engine.h"

namespace trestle {

inline EngineConfig config_of_two(Clock& clock) {
  EngineConfig config;
  config.ranks = 2;
  config.name = "rank 0";
  config.clock = &clock;
  return config;
}

inline std::shared_ptr<Engine> engine_of_two(EngineConfig config, std::unique_ptr<Transport> transport) {
  std::vector<Transport*> router{transport.get(), transport.get()};
  std::vector<std::unique_ptr<Transport>> transports;
  transports.push_back(std::move(transport));
  return std::make_shared<Engine>(std::move(config), std::move(transports), std::move(router), nullptr);
}

}  // namespace trestle
