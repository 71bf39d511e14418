// DeviceQueue on a GPU: the same work as on the host, bit by bit, both ways of marks, awake and asleep.
#include <poll.h>

#include "engine/work/device_queue.h"
#include "gpu/first_device.h"
#include "support/device_work.h"

namespace trestle {
namespace {

class GpuQueue : public OnFirstDevice, public testing::WithParamInterface<GateWay> {
 protected:
  void SetUp() override {
    OnFirstDevice::SetUp();
    if (IsSkipped()) return;
    const GateWay way = device_->supports_word_waits() ? GetParam() : GateWay::kHost;
    auto queue = DeviceQueue::create(*device_, nullptr, way);
    ASSERT_TRUE(queue.ok()) << queue.error().message;
    queue_ = std::move(queue).value();
    memory_ = std::make_unique<WorkMemory>(*device_, uint64_t{4} << 20);
  }
  void TearDown() override {
    queue_.reset();
    memory_.reset();
    OnFirstDevice::TearDown();
  }
  // As a sleeping engine does.
  void wait_for(const Work& work) {
    while (work.state != WorkState::kDone) {
      if (queue_->poll()) continue;
      pollfd bell{queue_->event_fd(), POLLIN, 0};
      if (queue_->prepare_sleep()) {
        ASSERT_GE(::poll(&bell, 1, -1), 0);
      }
      queue_->finish_sleep();
    }
  }
  void check(const WorkShape& shape) {
    memory_->fill(rng_);
    RandomWork random(*memory_, shape, rng_);
    queue_->submit(random.on_device());
    wait_for(random.on_device());
    ASSERT_TRUE(random.on_device().result.ok()) << random.on_device().result.error().message;
    ASSERT_TRUE(do_work(random.on_host()).ok());
    ASSERT_TRUE(memory_->is_equal()) << "kind " << static_cast<int>(shape.kind) << " " << to_string(shape.spec.type)
                                     << " operator " << static_cast<int>(shape.spec.op) << ", " << shape.sources
                                     << " sources, " << shape.elements << " elements";
  }

  Rng rng_{17};
  std::unique_ptr<DeviceQueue> queue_;
  std::unique_ptr<WorkMemory> memory_;
};

INSTANTIATE_TEST_SUITE_P(Ways, GpuQueue, testing::Values(GateWay::kWord, GateWay::kHost), [](const auto& info) {
  return std::string(info.param == GateWay::kWord ? "ByWord" : "ByEvent");
});

TEST_P(GpuQueue, DoesEveryKindOfWorkAsTheHostDoes) {
  for (const uint64_t elements : {1, 300, 20'000}) {
    for_work_shapes(elements, [&](const WorkShape& shape) {
      if (!HasFatalFailure()) check(shape);
    });
  }
}

TEST_P(GpuQueue, CopiesPiecesOfAnyLength) {
  for (int round = 0; round < 40; ++round) {
    check({WorkKind::kCopy, {}, 1, uint64_t{1} << (round % 21)});
    if (HasFatalFailure()) return;
  }
}

// One sum again and again, in place.
struct Additions {
  explicit Additions(std::byte* base)
      : write{base, kBytes}, first{base, kBytes}, second{base + kBytes, kBytes}, works(1000) {
    for (Work& work : works) {
      work.kind = WorkKind::kReduce;
      work.spec.type = DataType::kUint32;
      work.reduce = find_reduce(DataType::kUint32, ReduceOp::kSum);
      work.destination = {&write, 1};
      work.sources = sources;
    }
  }
  static constexpr size_t kBytes = 64;
  Piece write;
  ConstPiece first;
  ConstPiece second;
  std::array<std::span<const ConstPiece>, 2> sources{std::span(&first, 1), std::span(&second, 1)};
  std::vector<Work> works;
};

TEST_P(GpuQueue, KeepsTheOrder) {
  memory_->fill(rng_);
  Additions there(memory_->on_device());
  Additions here(memory_->on_host());
  for (Work& work : there.works) queue_->submit(work);
  wait_for(there.works.back());
  for (const Work& work : there.works) {
    ASSERT_EQ(work.state, WorkState::kDone);
    ASSERT_TRUE(work.result.ok());
  }
  for (const Work& work : here.works) ASSERT_TRUE(do_work(work).ok());
  EXPECT_TRUE(memory_->is_equal());
}

TEST_P(GpuQueue, WaitsForWorkWhenItCloses) {
  memory_->fill(rng_);
  RandomWork random(*memory_, {WorkKind::kCopy, {}, 1, 100'000}, rng_);
  queue_->submit(random.on_device());
  EXPECT_TRUE(queue_->close(INT64_MAX));
  ASSERT_TRUE(do_work(random.on_host()).ok());
  EXPECT_TRUE(memory_->is_equal());
}

}  // namespace
}  // namespace trestle
