// Engines whose work no thread waits for, for tests of the threads that drive them.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/engine.h"
#include "sim/virtual_clock.h"
#include "unit/engine/engine_of_two.h"

namespace trestle {

// Counts how often it is driven.
class CountingTransport : public Transport {
 public:
  std::string address() const override { return ""; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>&) override { return {}; }
  Result<bool> post_send(SendRequest&) override { return Error{Code::kInternalError, "nobody sends here"}; }
  Result<bool> post_recv(RecvRequest&) override { return Error{Code::kInternalError, "nobody receives here"}; }
  void release(RecvRequest&) override {}
  Result<bool> progress() override {
    driven.fetch_add(1);
    if (while_driven) while_driven();
    return false;
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override {
    if (before_sleep) before_sleep();
    return true;
  }
  void finish_sleep() override {}
  void close(int) override {
    if (while_lingering) while_lingering();
  }

  void put_at(int numa_node) { numa_node_ = numa_node; }

  std::atomic<int> driven{0};
  std::function<void()> while_lingering;
  std::function<void()> while_driven;
  std::function<void()> before_sleep;
};

// An engine with work that no thread waits for.
struct Unattended {
  // spin_us: how long its threads look before they sleep, as TRESTLE_SPIN.
  explicit Unattended(int64_t spin_us = -1) {
    auto owned = std::make_unique<CountingTransport>();
    transport = owned.get();
    EngineConfig config = config_of_two(clock);
    config.spin_us = spin_us;
    engine = engine_of_two(std::move(config), std::move(owned));
    engine->count_pending(1);
  }

  VirtualClock clock;
  CountingTransport* transport = nullptr;
  std::shared_ptr<Engine> engine;
};

inline void wait_for(const std::atomic<int>& count, int least) {
  while (count.load() < least) sched_yield();
}

}  // namespace trestle
