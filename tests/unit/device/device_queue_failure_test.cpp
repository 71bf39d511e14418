// DeviceQueue over the fake driver: calls of the driver that fail, devices that break, and sleepers.
#include <cuda.h>
#include <poll.h>

#include <thread>

#include "unit/device/with_fake_queue.h"

namespace trestle {
namespace {

class QueuesThatFail : public Queues {};
class QueuesAsleep : public Queues {};

INSTANTIATE_TEST_SUITE_P(Ways, QueuesThatFail, testing::Values(GateWay::kWord, GateWay::kHost), name_of_way);
INSTANTIATE_TEST_SUITE_P(Ways, QueuesAsleep, testing::Values(GateWay::kWord, GateWay::kHost), name_of_way);

TEST_P(QueuesThatFail, AreNotMadeAndLeaveNothing) {
  slow([&] { queue_.reset(); });
  fake().forbid_slow_calls(false);
  const FakeObjects before = fake().objects();
  int calls = -fake().calls();
  {
    const auto made = DeviceQueue::create(*device_, kernels_, GetParam());
    ASSERT_TRUE(made.ok());
    calls += fake().calls();
  }
  EXPECT_GT(calls, 3);
  for (int nth = 0; nth < calls; ++nth) {
    fake().fail(nth, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_FALSE(DeviceQueue::create(*device_, kernels_, GetParam()).ok()) << nth;
    EXPECT_EQ(fake().objects(), before) << nth;
  }
}

// Copies, a reduction and a multiplication, of several parts each.
struct SeveralWorks {
  SeveralWorks(WorkMemory& memory, Rng& rng) {
    const ReduceSpec spec{DataType::kInt32, ReduceOp::kSum, 0, false};
    const WorkShape shapes[] = {{WorkKind::kCopy, {}, 1, 400},
                                {WorkKind::kReduce, spec, 3, 100},
                                {WorkKind::kScale, spec, 1, 100},
                                {WorkKind::kCopy, {}, 1, 400}};
    for (const WorkShape& shape : shapes) works.push_back(std::make_unique<RandomWork>(memory, shape, rng));
  }
  std::vector<std::unique_ptr<RandomWork>> works;
};

TEST_P(QueuesThatFail, EndAllWorkWhicheverCallFails) {
  int refused = 0;
  for (int nth = 0; nth < 400; ++nth) {
    SCOPED_TRACE(nth);
    Rng rng(static_cast<uint64_t>(nth) / 40);
    fake().forbid_slow_calls(false);
    make_queue();
    slow([&] { memory_->fill(rng); });
    SeveralWorks several(*memory_, rng);
    fake().fail(nth, CUDA_ERROR_OUT_OF_MEMORY);
    for (const auto& work : several.works) queue_->submit(work->on_device());
    for (const auto& work : several.works) {
      wait_for(work->on_device());
      if (HasFatalFailure()) return;
    }
    fake().fail(-1, CUDA_SUCCESS);
    bool failed = false;
    for (const auto& work : several.works) {
      const Status& result = work->on_device().result;
      EXPECT_FALSE(failed && result.ok()) << "work behind a failure ends well";
      failed = !result.ok();
      if (failed) {
        EXPECT_NE(result.error().message.find("CUDA_ERROR_OUT_OF_MEMORY"), std::string::npos);
      } else {
        ASSERT_TRUE(do_work(work->on_host()).ok());
      }
    }
    refused += failed;
    if (failed) {
      Work& again = several.works[0]->on_device();
      queue_->submit(again);
      wait_for(again);
      EXPECT_FALSE(again.result.ok()) << "the queue says so for all further work";
    } else {
      slow([&] { ASSERT_TRUE(memory_->is_equal()); });
    }
  }
  EXPECT_GT(refused, 50);
}

TEST_P(QueuesThatFail, EndNothingWhileItRuns) {
  OwnCopy first;
  OwnCopy second;
  submit_held(first);
  fake().fail(1, CUDA_ERROR_LAUNCH_FAILED);  // after the context
  queue_->submit(second.work);
  poll_in_vain();
  EXPECT_EQ(first.work.state, WorkState::kSubmitted) << "it still writes";
  fake().hold_streams(false);
  wait_for(second.work);
  EXPECT_TRUE(first.work.result.ok()) << "it was done before";
  EXPECT_EQ(first.to, 5U);
  ASSERT_FALSE(second.work.result.ok());
  EXPECT_NE(second.work.result.error().message.find("work on device 0 (Fake GPU) failed"), std::string::npos)
      << second.work.result.error().message;
}

TEST_P(QueuesThatFail, EndAllWorkOfABrokenDevice) {
  ManyCopies many(300);
  fake().hold_streams(true);
  submit(many);
  fake().break_device(CUDA_ERROR_ILLEGAL_ADDRESS);
  wait_for(many.copies.back().work);
  for (const OneCopy& copy : many.copies) {
    ASSERT_EQ(copy.work.state, WorkState::kDone);
    ASSERT_FALSE(copy.work.result.ok());
    EXPECT_EQ(copy.work.result.error().code, Code::kUnhandledDeviceError);
  }
  OwnCopy late;
  queue_->submit(late.work);
  EXPECT_TRUE(queue_->poll());
  EXPECT_FALSE(late.work.result.ok());
  EXPECT_TRUE(queue_->close(0));
}

// ---- sleeping

bool rings(DeviceQueue& queue, int timeout_ms) {
  pollfd bell{queue.event_fd(), POLLIN, 0};
  return ::poll(&bell, 1, timeout_ms) == 1;
}

TEST_P(QueuesAsleep, WithoutWorkNeedNoBell) {
  EXPECT_TRUE(queue_->prepare_sleep());
  EXPECT_FALSE(rings(*queue_, 0));
  queue_->finish_sleep();
}

TEST_P(QueuesAsleep, LookAgainWhileWorkIsUnderWay) {
  OwnCopy copy;
  submit_held(copy);
  for (int round = 0; round < 5; ++round) {
    while (!queue_->prepare_sleep()) ASSERT_FALSE(queue_->poll());
    EXPECT_TRUE(rings(*queue_, -1));
    queue_->finish_sleep();
    EXPECT_FALSE(rings(*queue_, 0)) << "it is silent when nobody sleeps";
  }
  fake().hold_streams(false);
  fake().go_on();
  EXPECT_FALSE(queue_->prepare_sleep()) << "there is something to find";
  queue_->finish_sleep();
  EXPECT_TRUE(queue_->poll());
  EXPECT_TRUE(queue_->prepare_sleep());
  queue_->finish_sleep();
}

TEST_P(QueuesAsleep, AreWokenByWorkThatAnotherThreadSubmits) {
  OwnCopy copy;
  ASSERT_TRUE(queue_->prepare_sleep());
  std::thread sleeper([&] { EXPECT_TRUE(rings(*queue_, -1)); });
  queue_->submit(copy.work);
  sleeper.join();
  queue_->finish_sleep();
  wait_for(copy.work);
}

// As a sleeping engine does.
TEST_P(QueuesAsleep, FindTheEndOfAllWork) {
  ManyCopies many(1000);
  submit(many);
  while (many.copies.back().work.state != WorkState::kDone) {
    if (queue_->poll()) continue;
    if (queue_->prepare_sleep()) {
      fake().go_on();
      ASSERT_TRUE(rings(*queue_, -1));
    }
    queue_->finish_sleep();
  }
  EXPECT_EQ(many.to, std::vector<uint64_t>(1000, 5));
}

TEST_P(QueuesAsleep, FindABrokenDevice) {
  OwnCopy copy;
  submit_held(copy);
  fake().break_device(CUDA_ERROR_ILLEGAL_ADDRESS);
  for (int looks = 0; copy.work.state != WorkState::kDone; ++looks) {
    ASSERT_LT(looks, kMostPolls);
    queue_->poll();
    queue_->finish_sleep();
    [[maybe_unused]] const bool may = queue_->prepare_sleep();
  }
  EXPECT_FALSE(copy.work.result.ok());
}

}  // namespace
}  // namespace trestle
