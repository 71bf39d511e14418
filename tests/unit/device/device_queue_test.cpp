// DeviceQueue over the fake driver: what the work does, its order, and how much is under way.
#include <cuda.h>

#include <deque>

#include "base/clock.h"
#include "unit/device/with_fake_queue.h"

namespace trestle {
namespace {

INSTANTIATE_TEST_SUITE_P(Ways, Queues, testing::Values(GateWay::kWord, GateWay::kHost), name_of_way);

TEST_P(Queues, DoEveryKindOfWorkAsTheHostDoes) {
  Rng rng(1);
  const auto check = [&](const WorkShape& shape) {
    for (int round = 0; round < 2; ++round) {
      slow([&] { memory_->fill(rng); });
      RandomWork random(*memory_, shape, rng);
      queue_->submit(random.on_device());
      wait_for(random.on_device());
      ASSERT_TRUE(random.on_device().result.ok()) << random.on_device().result.error().message;
      ASSERT_TRUE(do_work(random.on_host()).ok());
      slow([&] { ASSERT_TRUE(memory_->is_equal()); });
    }
  };
  for (const uint64_t elements : {3, 257}) {
    for_work_shapes(elements, [&](const WorkShape& shape) {
      if (HasFatalFailure()) return;
      SCOPED_TRACE(testing::Message() << "kind " << static_cast<int>(shape.kind) << " " << to_string(shape.spec.type)
                                      << " operator " << static_cast<int>(shape.spec.op) << ", " << shape.sources
                                      << " sources, " << elements << " elements");
      check(shape);
    });
  }
}

TEST_P(Queues, KeepFewLaunchesUnderWay) {
  Rng rng(2);
  // Every element lies alone, so there are thousands of launches.
  constexpr size_t kElements = 3000;
  slow([&] { memory_->fill(rng); });
  std::vector<Piece> write;
  std::vector<ConstPiece> read;
  std::vector<Piece> host_write;
  std::vector<ConstPiece> host_read;
  for (size_t i = 0; i < kElements; ++i) {
    const size_t to = 3 * i;
    const size_t from = 10'000 + 2 * i;
    write.push_back({memory_->on_device() + to, 1});
    read.push_back({memory_->on_device() + from, 1});
    host_write.push_back({memory_->on_host() + to, 1});
    host_read.push_back({memory_->on_host() + from, 1});
  }
  const std::array<std::span<const ConstPiece>, 2> sources = {read, read};
  const std::array<std::span<const ConstPiece>, 2> host_sources = {host_read, host_read};
  Work work;
  work.kind = WorkKind::kReduce;
  work.spec.type = DataType::kInt8;
  work.reduce = find_reduce(DataType::kInt8, ReduceOp::kSum);
  Work host = work;
  work.destination = write;
  work.sources = sources;
  host.destination = host_write;
  host.sources = host_sources;

  fake().hold_streams(true);
  queue_->submit(work);
  poll_in_vain();
  const int held = fake().submitted();
  EXPECT_GT(held, 100);
  EXPECT_LE(held, static_cast<int>(DeviceQueue::kMostCommands));
  fake().hold_streams(false);
  wait_for(work);
  EXPECT_LE(fake().most_waiting(), static_cast<int>(DeviceQueue::kMostCommands));
  EXPECT_GT(fake().submitted(), static_cast<int>(kElements));
  ASSERT_TRUE(work.result.ok());
  ASSERT_TRUE(do_work(host).ok());
  slow([&] { EXPECT_TRUE(memory_->is_equal()); });
}

TEST_P(Queues, CopyThousandsOfPiecesInFewLaunches) {
  Rng rng(3);
  constexpr size_t kPieces = 4000;
  slow([&] { memory_->fill(rng); });
  std::vector<uint64_t> to(3 * kPieces);
  std::vector<Piece> write;
  std::vector<ConstPiece> read;
  for (size_t i = 0; i < kPieces; ++i) {
    write.push_back({reinterpret_cast<std::byte*>(to.data() + 2 * i), 8});
    read.push_back({memory_->on_device() + 16 * i, 8});
  }
  const std::array<std::span<const ConstPiece>, 1> sources = {read};
  Work work;
  work.destination = write;
  work.sources = sources;
  const int before = fake().submitted();
  queue_->submit(work);
  EXPECT_LE(fake().submitted() - before, 2) << "one launch for the rows, and a mark";
  wait_for(work);
  for (size_t i = 0; i < kPieces; ++i) EXPECT_EQ(std::memcmp(&to[2 * i], memory_->on_host() + 16 * i, 8), 0);
}

// Equal pieces at equal distances that are no multiples of a pack, so that each is a copy of its own: thousands of them
// are collected, and must not be submitted all at once.
TEST_P(Queues, KeepFewLaunchesOfManyOddRowsUnderWay) {
  Rng rng(4);
  constexpr size_t kRows = 60'000;
  constexpr size_t kBytes = 100;
  constexpr size_t kDistance = kBytes + 1;
  slow([&] { memory_->fill(rng); });
  std::vector<std::byte> to(kRows * kDistance);
  std::vector<Piece> write;
  std::vector<ConstPiece> read;
  for (size_t i = 0; i < kRows; ++i) {
    write.push_back({to.data() + i * kDistance, kBytes});
    read.push_back({memory_->on_device() + i % 600 * kDistance, kBytes});
  }
  const std::array<std::span<const ConstPiece>, 1> sources = {read};
  Work work;
  work.destination = write;
  work.sources = sources;
  fake().hold_streams(true);
  queue_->submit(work);
  poll_in_vain();
  EXPECT_LE(fake().most_waiting(), static_cast<int>(DeviceQueue::kMostCommands));
  fake().hold_streams(false);
  wait_for(work);
  EXPECT_LE(fake().most_waiting(), static_cast<int>(DeviceQueue::kMostCommands));
  ASSERT_TRUE(work.result.ok());
  for (const size_t i : {size_t{0}, size_t{63}, size_t{64}, kRows - 1}) {
    EXPECT_EQ(std::memcmp(to.data() + i * kDistance, memory_->on_host() + i % 600 * kDistance, kBytes), 0) << i;
  }
}

// Each copies what the one before it has written, so that any other order shows. There are more than marks.
TEST_P(Queues, KeepTheOrderWhenAllMarksAreUsed) {
  constexpr size_t kWorks = 500;
  std::vector<uint64_t> values(kWorks + 1);
  values[0] = 42;
  std::deque<OneCopy> copies;
  fake().hold_streams(true);
  for (size_t i = 0; i < kWorks; ++i) {
    OneCopy& copy = copies.emplace_back(values[i], values[i + 1]);
    queue_->submit(copy.work);
    EXPECT_EQ(copy.work.state, WorkState::kSubmitted);
  }
  poll_in_vain();
  EXPECT_LT(fake().submitted(), static_cast<int>(kWorks)) << "more than marks were submitted";
  fake().hold_streams(false);
  while (copies.back().work.state != WorkState::kDone) {
    fake().go_on();
    queue_->poll();
    const auto is_done = [](const OneCopy& copy) { return copy.work.state == WorkState::kDone; };
    EXPECT_TRUE(std::is_partitioned(copies.begin(), copies.end(), is_done));
  }
  for (const OneCopy& copy : copies) {
    EXPECT_TRUE(copy.work.result.ok());
    EXPECT_TRUE(copy.touched);
  }
  EXPECT_EQ(values.back(), 42U);
}

TEST_P(Queues, EndWorkThatTouchesNothingInItsTurn) {
  OwnCopy copy;
  Work nothing;
  nothing.bytes = 1 << 20;
  queue_->submit(nothing);
  EXPECT_TRUE(queue_->poll());
  EXPECT_EQ(nothing.state, WorkState::kDone);
  submit_held(copy);
  queue_->submit(nothing);
  poll_in_vain();
  fake().hold_streams(false);
  wait_for(nothing);
  EXPECT_EQ(copy.work.state, WorkState::kDone);
  EXPECT_TRUE(nothing.result.ok());
}

TEST_P(Queues, RefuseWhatADeviceCannotDoAndGoOn) {
  OwnCopy fold;
  fold.work.kind = WorkKind::kFold;
  OwnCopy many;
  many.work.kind = WorkKind::kReduce;
  const std::vector<std::span<const ConstPiece>> sources(129, many.copy.source);
  many.work.sources = sources;
  OwnCopy copy;
  for (Work* const work : {&fold.work, &many.work, &copy.work}) queue_->submit(*work);
  wait_for(copy.work);
  ASSERT_FALSE(fold.work.result.ok());
  EXPECT_EQ(fold.work.result.error().code, Code::kInvalidUsage);
  EXPECT_NE(fold.work.result.error().message.find("user-defined reduction"), std::string::npos);
  ASSERT_FALSE(many.work.result.ok());
  EXPECT_NE(many.work.result.error().message.find("129 sources"), std::string::npos);
  EXPECT_EQ(fold.to, 0U);
  EXPECT_EQ(many.to, 0U);
  EXPECT_TRUE(copy.work.result.ok());
  EXPECT_EQ(copy.to, copy.from);
}

// ---- the end

TEST_P(Queues, CloseWaitsForWorkThatHasBegunAndDropsTheRest) {
  ManyCopies many(500);
  fake().hold_streams(true);
  submit(many);
  EXPECT_FALSE(queue_->close(monotonic_clock().now_ns())) << "the streams are held";
  EXPECT_FALSE(queue_->close(0));
  fake().hold_streams(false);
  EXPECT_TRUE(queue_->close(INT64_MAX));
  const std::vector<uint64_t> then = many.to;
  EXPECT_EQ(then.front(), many.from);
  EXPECT_EQ(then.back(), 0U) << "it had not begun";
  fake().go_on();
  EXPECT_FALSE(queue_->poll());
  EXPECT_TRUE(queue_->close(0));
  EXPECT_EQ(many.to, then);
  for (const OneCopy& copy : many.copies) EXPECT_EQ(copy.work.state, WorkState::kSubmitted);
  OwnCopy late;
  queue_->submit(late.work);
  EXPECT_FALSE(queue_->poll());
  EXPECT_TRUE(queue_->prepare_sleep());
  EXPECT_EQ(late.to, 0U);
}

TEST_P(Queues, CloseOfABrokenDeviceEndsAtOnce) {
  OwnCopy copy;
  submit_held(copy);
  fake().break_device(CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_TRUE(queue_->close(INT64_MAX));
}

}  // namespace
}  // namespace trestle
