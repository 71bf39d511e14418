// The express path: the calling thread completes a small collective on an idle stream.
#include <gtest/gtest.h>

#include <array>

#include "comm/communicator/communicator.h"

namespace trestle {
namespace communicator_express_test {
namespace {

// Two ranks of this thread. The first caller does not find its peer's part, gives up after a few looks and leaves an
// operation behind. The second caller finds all slots written and does not need to wait.
class ExpressOfTwo : public testing::Test {
 protected:
  void SetUp() override {
    const auto settings = make_settings(parse_config({{"TRESTLE_CALIBRATE", "off"}}), {});
    ASSERT_TRUE(settings.ok()) << settings.error().message;
    auto made = Communicator::create_all(2, settings.value());
    ASSERT_TRUE(made.ok()) << made.error().message;
    ranks_ = std::move(made).value();
  }
  void TearDown() override {
    for (const auto& rank : ranks_) rank->destroy(0);
  }

  // All-reduces 8 bytes.
  void all_reduce(size_t rank, int64_t value) {
    send_[rank] = value;
    Call call;
    call.request.count = 1;
    call.request.type = DataType::kInt64;
    call.send = &send_[rank];
    call.recv = &recv_[rank];
    const Status submitted = ranks_[rank]->submit(call, ranks_[rank]->own_stream());
    ASSERT_TRUE(submitted.ok()) << submitted.error().message;
  }
  CollectiveCounts counts(size_t rank) {
    return ranks_[rank]->engine().statistics().read().collectives[static_cast<size_t>(Collective::kAllReduce)];
  }

  std::vector<std::shared_ptr<Communicator>> ranks_;
  std::array<int64_t, 2> send_{};
  std::array<int64_t, 2> recv_{};
};

TEST_F(ExpressOfTwo, TheCallerOfASmallAllReduceRunsIt) {
  constexpr int kRounds = 50;
  for (int64_t i = 0; i < kRounds; ++i) {
    all_reduce(0, i);
    const uint64_t before = counts(1).by_caller;
    all_reduce(1, 1000 * i);
    if (counts(1).by_caller != before) {
      EXPECT_EQ(ranks_[1]->engine().pending(), 0u) << "it is complete when the call returns";
      EXPECT_EQ(recv_[1], 1001 * i);
    }
    for (const auto& rank : ranks_) ASSERT_TRUE(rank->synchronize().ok());
    EXPECT_EQ(recv_[0], 1001 * i);
    EXPECT_EQ(recv_[1], 1001 * i);
  }
  EXPECT_EQ(counts(0).express, kRounds);
  EXPECT_EQ(counts(0).by_caller, 0u) << "its peer had not called yet";
  EXPECT_EQ(counts(1).express, kRounds);
  // Sometimes another thread drives the rank at that moment and takes over the operation.
  EXPECT_GT(counts(1).by_caller, 0u) << "every one was left to somebody else";
}

// Work that is already on the stream comes first, and no call may overtake it.
TEST_F(ExpressOfTwo, NobodyOvertakesWhatIsOnTheStream) {
  std::array<int64_t, 2> later{};
  all_reduce(0, 1);
  Call call;
  call.request.count = 1;
  call.request.type = DataType::kInt64;
  call.send = &send_[0];
  call.recv = &later[0];
  ASSERT_TRUE(ranks_[0]->submit(call, ranks_[0]->own_stream()).ok());
  EXPECT_EQ(ranks_[0]->engine().pending(), 2u);
  all_reduce(1, 10);
  ASSERT_TRUE(ranks_[1]->synchronize().ok());
  call.send = &send_[1];
  call.recv = &later[1];
  ASSERT_TRUE(ranks_[1]->submit(call, ranks_[1]->own_stream()).ok());
  for (const auto& rank : ranks_) ASSERT_TRUE(rank->synchronize().ok());
  EXPECT_EQ(recv_[0], 11);
  EXPECT_EQ(later[0], 11);
  EXPECT_EQ(later[1], 11);
  EXPECT_EQ(counts(0).by_caller, 0u);
}

}  // namespace
}  // namespace communicator_express_test
}  // namespace trestle
