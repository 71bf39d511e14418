// Operations whose work on data is given to a queue and is not done yet: what they wait for, and how they fail.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "algorithms/catalog.h"
#include "engine/work/delayed_queue.h"
#include "unit/engine/streams.h"

namespace trestle {
namespace {

constexpr int64_t kDecadesNs = int64_t{1} << 60;
constexpr size_t kElements = 4;
const Error kGone{Code::kRemoteError, "rank 1 went away"};
using Values = std::vector<float>;

// The test decides when each piece of work is done.
class GatedQueue : public WorkQueue {
 public:
  void submit(Work& work) override {
    work.state = WorkState::kSubmitted;
    waiting_.push_back(&work);
  }
  bool poll() override {
    if (!next_may_end_ || waiting_.empty()) return false;
    next_may_end_ = false;
    Work& work = *waiting_.front();
    waiting_.pop_front();
    work.result = do_work(work);
    work.state = WorkState::kDone;
    return true;
  }
  int event_fd() const override { return -1; }
  bool prepare_sleep() override { return true; }
  void finish_sleep() override {}
  bool close(int64_t) override {
    waiting_.clear();
    return true;
  }
  void let_next_end() { next_may_end_ = true; }

 private:
  std::deque<Work*> waiting_;
  bool next_may_end_ = false;
};

uint16_t algorithm(std::string_view name) {
  uint16_t index = 0;
  while (algorithms()[index].name != name) ++index;
  return index;
}

// Rank 0 adds what rank 1 sends, which is all zeros, to its own.
class DelayedWork : public Streams {
 protected:
  void begin(std::unique_ptr<WorkQueue> queue, ReduceOp op = ReduceOp::kSum, SharedOp custom = nullptr) {
    use(std::move(queue));
    PrepareRequest request;
    request.collective = Collective::kReduce;
    request.count = kElements;
    request.op = op;
    request.custom = std::move(custom);
    Schedule schedule;
    schedule.bytes = kElements * sizeof(float);
    schedule.chunks = {{schedule.bytes, {{0, PhaseKind::kReduce, algorithm("direct")}}}};
    schedule.orders = {{0, 1, {{0, 0}}}};
    PrepareContext context;
    context.topology = &topology_;
    context.segment_bytes = [](const void*, const std::vector<int32_t>&) { return uint64_t{4096}; };
    auto prepared = prepare(request, schedule, context);
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    Operation* const operation = engine_->acquire(prepared.value());
    const auto region = [](std::vector<float>& data) {
      return private_region(data.data(), data.size() * sizeof(float));
    };
    operation->bind(region(send_), region(recv_), kNumber, 0);
    engine_->count_pending(1);
    a_->enqueue({operation});
    end_ = a_->record();
    drive();
  }
  std::unique_ptr<WorkQueue> delayed(int64_t most_ns) { return DelayedQueue::create(0, most_ns).value(); }
  std::unique_ptr<WorkQueue> gated() {
    auto queue = std::make_unique<GatedQueue>();
    queue_ = queue.get();
    return queue;
  }
  void let_next_end() {
    queue_->let_next_end();
    drive();
  }
  // What the operation waits for. It must be no other rank.
  std::string awaited() {
    const Standing standing = engine_->standing({kNumber});
    EXPECT_EQ(standing.awaited, -1);
    const size_t at = standing.description.find("awaiting ");
    return at == std::string::npos ? standing.description : standing.description.substr(at);
  }
  void fail() {
    engine_->fail(kGone);
    drive();
    EXPECT_EQ(engine_->pending(), 0u);
    ASSERT_TRUE(end_->complete());
    ASSERT_TRUE(end_->failure());
    EXPECT_EQ(end_->failure()->message, kGone.message);
  }

  static constexpr uint64_t kNumber = 1;
  const Values before_ = Values(kElements, -7);
  Values send_ = {1, 2, 3, 4};
  Values recv_ = before_;
  std::shared_ptr<Recording> end_;
  GatedQueue* queue_ = nullptr;

 private:
  void use(std::unique_ptr<WorkQueue> queue) {
    auto transport = std::make_unique<GatedTransport>();
    gate_ = transport.get();
    EngineConfig config = config_of_two(clock_);
    config.work = std::move(queue);
    engine_ = engine_of_two(std::move(config), std::move(transport));
  }
};

TEST_F(DelayedWork, ThatHasNotBegunIsDroppedByAFailure) {
  begin(delayed(kDecadesNs));
  arrive(kNumber);
  EXPECT_EQ(awaited(), "awaiting its own copies and reductions (segment 1 of 1)");
  fail();
  EXPECT_EQ(recv_, before_) << "the queue has written nothing";
}

// Its memory belongs to the user again as soon as the operation has ended.
TEST_F(DelayedWork, ThatRunsIsWaitedForByAFailure) {
  std::atomic<bool> begun{false};
  std::atomic<bool> may_end{false};
  std::atomic<bool> ended{false};
  auto custom = std::make_shared<CustomOp>();
  custom->kind = kUserCommutative;
  custom->fold = [&](std::byte*, std::span<const std::byte* const>, size_t, DataType) -> Status {
    begun = true;
    while (!may_end) std::this_thread::yield();
    ended = true;
    return {};
  };
  begin(delayed(0), kUserCommutative, std::move(custom));
  arrive(kNumber);
  while (!begun) std::this_thread::yield();
  std::thread other([&] { may_end = true; });
  fail();
  EXPECT_TRUE(ended);
  other.join();
}

TEST_F(DelayedWork, IsTheMultiplicationThatComesBeforeTheMessages) {
  auto custom = std::make_shared<CustomOp>();
  const float factor = 3;
  std::memcpy(custom->immediate.data(), &factor, sizeof factor);
  begin(gated(), kPreMulSum, std::move(custom));
  EXPECT_EQ(awaited(), "awaiting its own multiplication of the input");
  EXPECT_EQ(posted(), Numbers{});
  let_next_end();
  EXPECT_EQ(posted(), Numbers{kNumber});
  arrive(kNumber);
  EXPECT_EQ(awaited(), "awaiting its own copies and reductions (segment 1 of 1)");
  let_next_end();
  EXPECT_EQ(engine_->pending(), 0u);
  EXPECT_EQ(recv_, (Values{3, 6, 9, 12}));
}

TEST_F(DelayedWork, OfAMultiplicationIsDroppedByAFailure) {
  begin(delayed(kDecadesNs), kPreMulSum, std::make_shared<CustomOp>());
  EXPECT_EQ(awaited(), "awaiting its own multiplication of the input");
  fail();
  EXPECT_EQ(recv_, before_);
}

TEST_F(DelayedWork, IsTheDivisionThatComesLast) {
  begin(gated(), ReduceOp::kAvg);
  arrive(kNumber);
  let_next_end();
  EXPECT_EQ(awaited(), "awaiting its own division of the output");
  EXPECT_EQ(engine_->pending(), 1u);
  let_next_end();
  EXPECT_EQ(engine_->pending(), 0u);
  EXPECT_EQ(recv_, (Values{0.5, 1, 1.5, 2}));
}

}  // namespace
}  // namespace trestle
