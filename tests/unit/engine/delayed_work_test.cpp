// Operations whose work on data is given to a queue and is not done yet: what they wait for, and how they fail.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "algorithms/catalog.h"
#include "memory/place.h"
#include "support/delayed_queue.h"
#include "unit/engine/streams.h"

namespace trestle {
namespace delayed_work_test {
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
  // Pieces of work that were submitted and are not done.
  size_t waiting() const { return waiting_.size(); }
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
  void begin(std::unique_ptr<WorkQueue> queue, ReduceOp op = ReduceOp::kSum, SharedOp custom = nullptr,
             uint64_t segment_bytes = 4096) {
    use(std::move(queue));
    PrepareRequest request;
    request.collective = Collective::kReduce;
    request.count = send_.size();
    request.op = op;
    request.custom = std::move(custom);
    Schedule schedule;
    schedule.bytes = send_.size() * sizeof(float);
    schedule.chunks = {{schedule.bytes, {{0, PhaseKind::kReduce, algorithm("direct")}}}};
    schedule.orders = {{0, 1, {{0, 0}}}};
    PrepareContext context;
    context.topology = &topology_;
    context.segment_bytes = [](const void* bytes, const std::vector<int32_t>&) {
      return *static_cast<const uint64_t*>(bytes);
    };
    context.self = &segment_bytes;
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

// A device gets few large pieces of work, because each costs time to begin.
TEST_F(DelayedWork, IsCutByThePlaceOfTheData) {
  constexpr uint64_t kBytes = uint64_t{8} << 20;
  constexpr uint64_t kByTransport = uint64_t{256} << 10;
  const std::pair<MemoryPlace, uint64_t> cases[] = {{MemoryPlace::kHost, 32}, {MemoryPlace::kDevice, 2}};
  for (const auto& [place, pieces] : cases) {
    SCOPED_TRACE(facts_of(place).name);
    const uint64_t segment = most_segment_bytes(place, kByTransport);
    send_ = Values(kBytes / sizeof(float), 1);
    recv_ = Values(send_.size(), -7);
    begin(gated(), ReduceOp::kSum, nullptr, segment);
    uint64_t done = 0;
    for (; engine_->pending() != 0 && done < 100; ++done) {
      drive();
      gate_->arrive_some(0, kSegmentsInFlight);
      drive();
      ASSERT_GT(queue_->waiting(), 0u);
      EXPECT_LE(queue_->waiting(), kSegmentsInFlight);
      let_next_end();
    }
    EXPECT_EQ(done, pieces);
    EXPECT_TRUE(recv_ == send_) << "the other rank's data are zeros";
  }
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
}  // namespace delayed_work_test
}  // namespace trestle
