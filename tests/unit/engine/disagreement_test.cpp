// When an engine reports ranks that do not run the same operation: at once if it is the only one to report it, later if
// the check of the calls gives a better report.
#include <gtest/gtest.h>

#include <utility>

#include "engine/run/engine.h"
#include "sim/virtual_clock.h"
#include "transport/agreement.h"
#include "unit/engine/engine_of_two.h"

namespace trestle {
namespace disagreement_test {
namespace {

constexpr int64_t kReportNs = 1'000'000'000;  // how long an engine waits for another rank's report

// The test sets the results of its progress.
class TellingTransport : public Transport {
 public:
  std::string address() const override { return ""; }
  Status set_peers(const std::vector<std::string>&, const std::vector<std::string>&) override { return {}; }
  Result<bool> post_send(SendRequest&) override { return false; }
  Result<bool> post_recv(RecvRequest&) override { return false; }
  void release(RecvRequest&) override {}
  Result<bool> progress() override {
    if (error.code != Code::kSuccess) return error;
    if (!heard || agreement_->heard(1, *heard)) return false;
    return agreement_->error();
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  void close(int) override {}

  Error error{Code::kSuccess, ""};
  std::optional<MessageTag> heard;
};

class EngineDisagreement : public testing::Test {
 protected:
  void make(bool calls_checked) {
    auto transport = std::make_unique<TellingTransport>();
    transport_ = transport.get();
    EngineConfig config = config_of_two(clock_);
    config.calls_checked = calls_checked;
    engine_ = engine_of_two(std::move(config), std::move(transport));
  }
  // Drives the engine `later_ns` from now. Returns the code of its failure.
  Code failure_after(int64_t later_ns) {
    clock_.advance_to(clock_.now_ns() + later_ns);
    engine_->try_progress();
    const auto failure = engine_->failure();
    return failure ? failure->code : Code::kSuccess;
  }
  void hear(uint64_t check) {
    transport_->heard = MessageTag{.operation = 4, .check = check};
    engine_->try_progress();
  }

  VirtualClock clock_;
  TellingTransport* transport_ = nullptr;
  std::shared_ptr<Engine> engine_;
};

TEST_F(EngineDisagreement, OfSizesIsToldAtOnce) {
  for (const bool calls_checked : {false, true}) {
    make(calls_checked);
    transport_->error = different_sizes("rank 1", "rank 0", {.operation = 4}, 12, {.operation = 4}, 8);
    EXPECT_EQ(failure_after(0), Code::kInvalidUsage) << "calls checked: " << calls_checked;
  }
}

TEST_F(EngineDisagreement, OfCallsIsToldAtOnceWhereNobodyComparesThem) {
  make(false);
  hear(1);
  EXPECT_EQ(failure_after(0), Code::kSuccess);
  hear(2);
  EXPECT_EQ(failure_after(0), Code::kInvalidUsage);
}

TEST_F(EngineDisagreement, OfCallsIsLeftForAWhileToWhoComparesThem) {
  make(true);
  hear(1);
  hear(2);
  EXPECT_EQ(failure_after(0), Code::kSuccess);
  EXPECT_EQ(failure_after(kReportNs), Code::kSuccess);
  EXPECT_EQ(failure_after(1), Code::kInvalidUsage);
}

}  // namespace
}  // namespace disagreement_test
}  // namespace trestle
