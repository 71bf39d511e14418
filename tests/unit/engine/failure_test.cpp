// What others see of an engine while it fails.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "unit/engine/engine_of_two.h"

namespace trestle {
namespace failure_test {
namespace {

// Looks whenever it is asked for the time.
class LookingClock final : public Clock {
 public:
  int64_t now_ns() override {
    if (look) look();
    return ++time_;
  }
  std::function<void()> look;

 private:
  int64_t time_ = 0;
};

// A program that was told the failure must not get a success from its next call.
TEST(EngineFailure, IsSeenByAllOrByNobody) {
  LookingClock clock;
  EngineConfig config = config_of_two(clock);
  config.sleeps = false;
  bool told = false;
  config.on_failure = [&](const Error&) { told = true; };
  Engine engine(std::move(config), {}, {}, nullptr);
  int looks = 0;
  clock.look = [&] {
    ++looks;
    EXPECT_EQ(engine.failure() != nullptr, engine.failed());
  };
  engine.fail({Code::kTimeout, "late"});
  clock.look = nullptr;
  EXPECT_GT(looks, 0);
  EXPECT_TRUE(told);
  EXPECT_TRUE(engine.failed());
  EXPECT_EQ(engine.failure()->message, "late");
  EXPECT_GT(engine.failed_ns(), 0);
}

}  // namespace
}  // namespace failure_test
}  // namespace trestle
