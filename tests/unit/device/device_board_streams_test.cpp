// DeviceBoard over the fake driver: calls on several streams, other calls on other ranks, and its end.
#include <cuda.h>

#include "base/rng.h"
#include "unit/device/with_boards.h"

namespace trestle {
namespace {

class BoardStreams : public Boards {
 protected:
  struct Rank {
    std::vector<StreamHandle*> streams;
    float* send = nullptr;
    float* recv = nullptr;
  };
  void make_ranks(int32_t count, size_t streams) {
    make(count);
    ranks_.clear();
    for (int32_t r = 0; r < count; ++r) {
      Rank& rank = ranks_.emplace_back();
      while (rank.streams.size() < streams) rank.streams.push_back(stream(r));
      rank.send = reinterpret_cast<float*>(buffer(r, kMostBoardBytes));
      rank.recv = reinterpret_cast<float*>(buffer(r, kMostBoardBytes));
    }
  }
  ExpressCall sum(int32_t rank, uint64_t elements = 4) {
    ExpressCall call;
    call.spec.type = DataType::kFloat32;
    call.elements = elements;
    call.bytes = elements * sizeof(float);
    call.send = reinterpret_cast<const std::byte*>(ranks_[rank].send);
    call.recv = reinterpret_cast<std::byte*>(ranks_[rank].recv);
    return numbered(rank, call);
  }
  void launch(int32_t rank, size_t stream, ExpressCall& call, uint32_t* mark_word = nullptr, uint32_t mark = 0) {
    ASSERT_TRUE(boards_[rank]->is_next(call));
    const Status launched = boards_[rank]->launch_on({ranks_[rank].streams[stream], stream + 1, mark_word, mark}, call);
    ASSERT_TRUE(launched.ok()) << launched.error().message;
  }
  std::vector<Rank> ranks_;
};

TEST_F(BoardStreams, CallsOnSeveralStreamsFollowEachOther) {
  make_ranks(3, 4);
  Rng rng(7);
  constexpr int kCalls = 200;
  std::vector<std::vector<ExpressCall>> calls(3);
  for (int i = 0; i < kCalls; ++i) {
    for (int32_t r = 0; r < 3; ++r) {
      ExpressCall& call = calls[r].emplace_back(sum(r, 1 + i % 9));
      call.recv = buffer(r, kMostBoardBytes);
      std::byte* const send = buffer(r, kMostBoardBytes);
      for (int e = 0; e < 9; ++e) reinterpret_cast<float*>(send)[e] = static_cast<float>(i + r);
      call.send = send;
      launch(r, rng.below(4), call);
    }
  }
  for (int32_t r = 0; r < 3; ++r) {
    wait_until([&] { return poll(r, calls[r].back()); });
    for (int i = 0; i < kCalls; ++i) {
      EXPECT_TRUE(poll(r, calls[r][i]));
      EXPECT_EQ(reinterpret_cast<const float*>(calls[r][i].recv)[i % 9], static_cast<float>(3 * i + 3));
    }
  }
}

// Those that wait for their turn come behind those on a caller's stream, and the other way round.
TEST_F(BoardStreams, CallsOnTheBoardsStreamKeepTheOrder) {
  make_ranks(2, 1);
  ranks_[0].send[0] = 1;
  ranks_[1].send[0] = 2;
  for (int i = 0; i < 20; ++i) {
    std::vector<ExpressCall> queued{sum(0), sum(1)};
    std::vector<ExpressCall> next{sum(0), sum(1)};
    EXPECT_FALSE(boards_[0]->is_next(next[0])) << "the one before was not launched";
    run(queued);
    EXPECT_EQ(ranks_[0].recv[0], 3);
    for (int32_t r = 0; r < 2; ++r) launch(r, 0, next[r]);
    run(next);
  }
}

TEST_F(BoardStreams, AKernelSaysThatItHasBegun) {
  make_ranks(2, 1);
  std::byte* const pinned = device_->allocate_pinned(sizeof(uint32_t)).value();
  auto* const word = new (pinned) uint32_t(0);
  const std::atomic_ref<uint32_t> mark(*word);
  fake().hold_streams(true);
  ExpressCall mine = sum(0);
  ExpressCall theirs = sum(1);
  launch(0, 0, mine, word, 77);
  EXPECT_EQ(boards_[0]->awaited_rank(mine), 1);
  EXPECT_EQ(boards_[1]->awaited_rank(theirs), -1) << "it was not launched";
  EXPECT_EQ(mark.load(), 0u);
  fake().hold_streams(false);
  wait_until([&] { return mark.load() == 77; });
  EXPECT_FALSE(poll(0, mine)) << "the other rank has not begun";
  EXPECT_EQ(boards_[0]->awaited_rank(mine), 1);
  launch(1, 0, theirs);
  EXPECT_EQ(boards_[1]->awaited_rank(theirs), -1);
  wait_until([&] { return poll(0, mine) && poll(1, theirs); });
  EXPECT_TRUE(device_->free_pinned(pinned).ok());
}

TEST_F(BoardStreams, AThreadSleepsUntilItIsTimeToLook) {
  make_ranks(2, 1);
  EXPECT_TRUE(boards_[0]->prepare_sleep()) << "there is nothing to wait for";
  boards_[0]->finish_sleep();
  ExpressCall mine = sum(0);
  EXPECT_FALSE(poll(0, mine));
  wait_until([&] { return boards_[0]->prepare_sleep(); });
  boards_[0]->finish_sleep();
  std::vector<ExpressCall> both{mine, sum(1)};
  run(both);
}

// ---- other calls

TEST_F(BoardStreams, AnotherCallIsFoundOnBothRanks) {
  make_ranks(2, 1);
  ExpressCall mine = sum(0, 4);
  ExpressCall theirs = sum(1, 400);
  mine.check = 0x123;
  theirs.check = 0x456;
  launch(0, 0, mine);
  launch(1, 0, theirs);
  wait_until([&] { return poll(0, mine) || mine.dissenter >= 0; });
  wait_until([&] { return poll(1, theirs) || theirs.dissenter >= 0; });
  EXPECT_EQ(mine.dissenter, 1);
  EXPECT_EQ(theirs.dissenter, 0);
  EXPECT_EQ(boards_[0]->run_by_dissenter(mine).check, 0x456u);
  EXPECT_EQ(boards_[1]->run_by_dissenter(theirs).check, 0x123u);
  EXPECT_EQ(boards_[1]->run_by_dissenter(theirs).number, mine.number);
}

// ---- the end

TEST_F(BoardStreams, AKernelThatWaitsIsLetGo) {
  make_ranks(2, 2);
  ExpressCall first = sum(0);
  ExpressCall second = sum(0);
  launch(0, 0, first);
  launch(0, 1, second);
  wait_until([&] { return boards_[1]->awaited_rank(first) < 0; });
  EXPECT_TRUE(boards_[0]->close(INT64_MAX));
  wait_until([&] { return are_idle(); });
}

// Its stream comes to it when the board has ended and the caller has its buffers back.
TEST_F(BoardStreams, AKernelThatBeginsAfterTheEndWritesNothing) {
  make_ranks(2, 2);
  fake().hold_streams(true);
  for (const size_t at : {0, 1, 0}) {
    ExpressCall call = sum(0);
    launch(0, at, call);
  }
  ranks_[0].recv[0] = 5;
  EXPECT_TRUE(boards_[0]->close(INT64_MAX));
  boards_[0].reset();
  EXPECT_EQ(kept_.size(), 2u) << "kernels are still to come";
  memory_.clear();
  fake().hold_streams(false);
  wait_until([&] { return are_idle(); });
  EXPECT_EQ(ranks_[0].recv[0], 5);
  boards_.clear();
}

// A rank that has failed may hold a stream whose work was left out. What it would send then is nobody's data.
TEST_F(BoardStreams, AKernelThatBeginsAfterTheEndSendsNothing) {
  make_ranks(3, 2);
  ranks_[0].send[0] = 666;
  std::vector<ExpressCall> calls{sum(0), sum(1), sum(2)};
  launch(0, 0, calls[0]);
  wait_until([&] { return boards_[0]->close(INT64_MAX); });
  wait_until([&] { return are_idle(); });
  ExpressCall late = sum(0);
  launch(0, 1, late);
  for (int32_t r = 1; r < 3; ++r) launch(r, 0, calls[r]);
  std::vector<ExpressCall> next{ExpressCall(), sum(1), sum(2)};
  for (int32_t r = 1; r < 3; ++r) launch(r, 0, next[r]);
  wait_until([&] { return device_->is_idle(ranks_[0].streams[1]).value(); });
  for (int round = 0; round < 100; ++round) {
    for (int32_t r = 1; r < 3; ++r) EXPECT_FALSE(poll(r, next[r])) << "it has summed what nobody sent";
    fake().go_on();
  }
  for (int32_t r = 1; r < 3; ++r) EXPECT_TRUE(boards_[r]->close(INT64_MAX));
}

// An aborted kernel lets its stream go on, and the next one there may begin before the host has said anything.
TEST_F(BoardStreams, AnAbortedKernelStopsThoseBehindIt) {
  make_ranks(2, 1);
  ExpressCall first = sum(0);
  ExpressCall second = sum(0);
  launch(0, 0, first);
  launch(0, 0, second);
  wait_until([&] { return std::atomic_ref(memory_[0]->control().begun).load() == 1; });
  std::atomic_ref(memory_[0]->control().abort).store(1);
  wait_until([&] { return are_idle(); });
  const uint64_t* const lines = memory_[1]->lines();
  const uint64_t half = 2 * kernels::board_lines(kMostBoardBytes);
  EXPECT_EQ(lines[1 * half] >> 32, kernels::board_flag(1)) << "the first one has sent";
  EXPECT_EQ(lines[0 * half] >> 32, 0u) << "the second one has sent";
}

// Kernels end in any order then: the last number is not the last kernel.
TEST_F(BoardStreams, MemoryIsKeptForAKernelThatComesLast) {
  make_ranks(2, 2);
  std::byte* const pinned = device_->allocate_pinned(sizeof(uint32_t)).value();
  auto* const word = new (pinned) uint32_t(0);
  ASSERT_TRUE(device_->wait_for_word(ranks_[0].streams[0], word, 1).ok());
  ExpressCall first = sum(0);
  ExpressCall second = sum(0);
  launch(0, 0, first);
  launch(0, 1, second);
  EXPECT_TRUE(boards_[0]->close(INT64_MAX));
  wait_until([&] { return device_->is_idle(ranks_[0].streams[1]).value(); });
  boards_[0].reset();
  EXPECT_EQ(kept_.size(), 2u) << "that of this rank, and the other one's";
  std::atomic_ref(*word).store(1);
  wait_until([&] { return are_idle(); });
  boards_.clear();
  EXPECT_EQ(kept_.size(), 1u);
  EXPECT_TRUE(device_->free_pinned(pinned).ok());
}

TEST_F(BoardStreams, ABoardWithoutKernelsToComeKeepsNothing) {
  make_ranks(2, 1);
  std::vector<ExpressCall> calls{sum(0), sum(1)};
  run(calls);
  boards_.clear();
  EXPECT_TRUE(kept_.empty());
}

TEST_F(BoardStreams, ABrokenDeviceIsFound) {
  make_ranks(2, 1);
  ExpressCall mine = sum(0);
  fake().hold_streams(true);
  launch(0, 0, mine);
  fake().break_device(CUDA_ERROR_ECC_UNCORRECTABLE);
  Result<bool> done = false;
  while (done.ok() && !done.value()) done = boards_[0]->poll(mine);
  EXPECT_FALSE(done.ok());
  EXPECT_TRUE(boards_[0]->close(INT64_MAX));
  leaks_ = true;
  boards_.clear();
  fake().break_device(CUDA_SUCCESS);
}

}  // namespace
}  // namespace trestle
