// Work on data: the same result however the memory is cut into pieces, and a delayed queue that keeps the order.
#include "engine/work/work.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "support/delayed_queue.h"

namespace trestle {
namespace work_test {
namespace {

constexpr size_t kElements = 1000;
using Values = std::vector<float>;

Values random_values(Rng& rng) {
  Values values(kElements);
  for (float& value : values) value = static_cast<float>(rng.uniform());
  return values;
}

// The memory of `values` in consecutive pieces, each of whole elements.
template <class P, class V>
std::vector<P> cut(V& values, Rng& rng) {
  std::vector<P> pieces;
  for (size_t at = 0; at < values.size();) {
    const size_t take = std::min(values.size() - at, rng.below(kElements / 3) + 1);
    pieces.push_back({reinterpret_cast<decltype(P::data)>(values.data() + at), take * sizeof(float)});
    at += take;
  }
  return pieces;
}

// One work, with the lists that it points to.
struct Case {
  Case(WorkKind kind, const std::vector<Values>& from, Rng& rng) : to(kElements) {
    for (const Values& values : from) read.push_back(cut<ConstPiece>(values, rng));
    for (const auto& pieces : read) sources.emplace_back(pieces);
    write = cut<Piece>(to, rng);
    work.kind = kind;
    work.bytes = kElements * sizeof(float);
    work.source_count = static_cast<uint32_t>(from.size());
    work.destination = write;
    work.sources = sources;
    work.reduce = find_reduce(DataType::kFloat32, ReduceOp::kSum);
  }
  Values to;
  std::vector<std::vector<ConstPiece>> read;
  std::vector<std::span<const ConstPiece>> sources;
  std::vector<Piece> write;
  Work work;
};

TEST(Work, GivesTheSameHoweverMemoryIsCut) {
  for (const size_t sources : {1u, 2u, 8u, 9u, 64u, 70u}) {
    SCOPED_TRACE(sources);
    Rng rng(sources);
    std::vector<Values> from;
    Values sum;
    for (size_t s = 0; s < sources; ++s) {
      from.push_back(random_values(rng));
      if (s == 0) sum = from[0];
      for (size_t i = 0; s > 0 && i < kElements; ++i) sum[i] += from[s][i];
    }
    for (int round = 0; round < 20; ++round) {
      Case reduce(WorkKind::kReduce, from, rng);
      ASSERT_TRUE(do_work(reduce.work).ok());
      ASSERT_EQ(reduce.to, sum);
    }
  }
}

TEST(Work, CopiesMultipliesAndDivides) {
  Rng rng(1);
  const std::vector<Values> from = {random_values(rng)};
  Case copied(WorkKind::kCopy, from, rng);
  ASSERT_TRUE(do_work(copied.work).ok());
  EXPECT_EQ(copied.to, from[0]);
  Case scaled(WorkKind::kScale, from, rng);
  const float factor = 3;
  scaled.work.factor = &factor;
  ASSERT_TRUE(do_work(scaled.work).ok());
  Case divided(WorkKind::kReduce, from, rng);
  divided.work.spec.average_over = 7;
  ASSERT_TRUE(do_work(divided.work).ok());
  for (size_t i = 0; i < kElements; ++i) {
    EXPECT_EQ(scaled.to[i], from[0][i] * 3);
    EXPECT_EQ(divided.to[i], from[0][i] / 7);
  }
}

TEST(Work, OfAUserFailsAsTheFunctionDoesAndStopsThere) {
  Rng rng(2);
  const std::vector<Values> from = {random_values(rng), random_values(rng)};
  Case fold(WorkKind::kFold, from, rng);
  CustomOp op;
  int calls = 0;
  op.fold = [&calls](std::byte*, std::span<const std::byte* const>, size_t, DataType) -> Status {
    if (++calls == 2) return Error{Code::kReductionFailed, "enough"};
    return {};
  };
  fold.work.user = &op;
  const Status result = do_work(fold.work);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message, "enough");
  EXPECT_EQ(calls, 2);
}

TEST(Work, WithoutADestinationTouchesNothing) {
  Work work;
  work.bytes = 1 << 20;
  work.source_count = 5;
  EXPECT_TRUE(do_work(work).ok());
}

// As a sleeping engine does.
void wait_for_bell(DelayedQueue& queue) {
  pollfd bell{queue.event_fd(), POLLIN, 0};
  while (!queue.poll()) ASSERT_GE(::poll(&bell, 1, -1), 0);
}

// Each copies what the one before it has written, so that any other order shows.
TEST(DelayedQueue, DoesWorkInTheOrderOfSubmission) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    Rng rng(seed);
    auto queue = DelayedQueue::create(seed, 100'000);
    ASSERT_TRUE(queue.ok());
    const Values first = random_values(rng);
    std::vector<Values> chain(20, Values(kElements));
    std::vector<ConstPiece> read(chain.size());
    std::vector<Piece> write(chain.size());
    std::vector<std::span<const ConstPiece>> sources(chain.size());
    std::vector<Work> works(chain.size());
    for (size_t i = 0; i < chain.size(); ++i) {
      const size_t bytes = kElements * sizeof(float);
      read[i] = {reinterpret_cast<const std::byte*>(i == 0 ? first.data() : chain[i - 1].data()), bytes};
      write[i] = {reinterpret_cast<std::byte*>(chain[i].data()), bytes};
      sources[i] = {&read[i], 1};
      works[i].bytes = bytes;
      works[i].destination = {&write[i], 1};
      works[i].sources = {&sources[i], 1};
      queue.value()->submit(works[i]);
      EXPECT_EQ(works[i].state, WorkState::kSubmitted);
    }
    while (works.back().state != WorkState::kDone) wait_for_bell(*queue.value());
    for (const Work& work : works) EXPECT_EQ(work.state, WorkState::kDone);
    EXPECT_EQ(chain.back(), first);
  }
}

TEST(DelayedQueue, TouchesNothingAfterItIsClosed) {
  Rng rng(3);
  const std::vector<Values> from = {random_values(rng)};
  Case late(WorkKind::kCopy, from, rng);
  auto queue = DelayedQueue::create(0, int64_t{1} << 60);  // begins in decades
  ASSERT_TRUE(queue.ok());
  queue.value()->submit(late.work);
  EXPECT_TRUE(queue.value()->close(INT64_MAX));
  EXPECT_EQ(late.to, Values(kElements));
  EXPECT_FALSE(queue.value()->poll());
  EXPECT_EQ(late.work.state, WorkState::kSubmitted);
}

TEST(DelayedQueue, ClosingGivesUpWhileAUsersFunctionRuns) {
  Rng rng(5);
  const std::vector<Values> from = {random_values(rng), random_values(rng)};
  std::atomic<bool> begun{false};
  std::atomic<bool> may_end{false};
  CustomOp op;
  op.fold = [&](std::byte*, std::span<const std::byte* const>, size_t, DataType) -> Status {
    begun = true;
    while (!may_end) std::this_thread::yield();
    return {};
  };
  Case fold(WorkKind::kFold, from, rng);
  fold.work.user = &op;
  auto queue = DelayedQueue::create(0, 0);
  ASSERT_TRUE(queue.ok());
  queue.value()->submit(fold.work);
  while (!begun) std::this_thread::yield();
  EXPECT_FALSE(queue.value()->close(monotonic_clock().now_ns()));
  may_end = true;
  EXPECT_TRUE(queue.value()->close(INT64_MAX));
}

TEST(DelayedQueue, BringsTheFailureOfAUsersFunction) {
  Rng rng(4);
  const std::vector<Values> from = {random_values(rng), random_values(rng)};
  CustomOp op;
  op.fold = [](std::byte*, std::span<const std::byte* const>, size_t, DataType) -> Status {
    return Error{Code::kReductionFailed, "no"};
  };
  Case fold(WorkKind::kFold, from, rng);
  fold.work.user = &op;
  auto queue = DelayedQueue::create(0, 1000);
  ASSERT_TRUE(queue.ok());
  queue.value()->submit(fold.work);
  wait_for_bell(*queue.value());
  ASSERT_EQ(fold.work.state, WorkState::kDone);
  EXPECT_EQ(fold.work.result.error().message, "no");
}

}  // namespace
}  // namespace work_test
}  // namespace trestle
