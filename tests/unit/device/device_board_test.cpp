// DeviceBoard over the fake driver, whose kernels run the code of the devices: results of every collective, type and
// operator bit by bit, calls that are far apart, calls on several streams, other calls on other ranks, and its end.
#include "engine/work/device_board.h"

#include <cuda.h>

#include <cstring>
#include <map>
#include <thread>

#include "base/rng.h"
#include "express/stamp.h"
#include "kernels/scale.h"
#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

constexpr uint64_t kMostBytes = 4096;

// The ranks of one board, the even ones on the first device. A rank has a thread of its own nowhere: the test polls for
// all of them, and the fake driver's thread runs their streams.
class Boards : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    ASSERT_TRUE(device_->reach(*peer_).ok());
    ASSERT_TRUE(peer_->reach(*device_).ok());
    kernels_[device_.get()] = DeviceKernels::create(*device_).value();
    kernels_[peer_.get()] = DeviceKernels::create(*peer_).value();
    fake().run_streams(true);
  }
  void TearDown() override {
    fake().hold_streams(false);
    boards_.clear();
    memory_.clear();
    wait_until([&] { return are_idle(); });
    for (const auto& [stream, device] : streams_) EXPECT_TRUE(device->destroy_stream(stream).ok());
    for (const auto& [memory, device] : buffers_) EXPECT_TRUE(device->free(memory).ok());
    kept_.clear();
    kernels_.clear();
    fake().run_streams(false);
    WithFakeDriver::TearDown();
  }

  Device& device_of(int32_t rank) { return rank % 2 == 0 ? *device_ : *peer_; }
  void make(int32_t ranks, uint64_t first_sequence = 1, uint32_t most_blocks = 4) {
    boards_.clear();
    memory_.clear();
    for (int32_t r = 0; r < ranks; ++r) {
      // A stream that has been idle is: the driver's thread may be late, which this driver takes for an error.
      auto made = BoardMemory::create(device_of(r), ranks, kMostBytes);
      ASSERT_TRUE(made.ok()) << made.error().message;
      memory_.push_back(std::move(made).value());
    }
    for (int32_t r = 0; r < ranks; ++r) {
      DeviceBoardConfig config{r, memory_, kMostBytes, most_blocks, {}, {}, first_sequence};
      config.keep = [this](std::shared_ptr<const void> kept) { kept_.push_back(std::move(kept)); };
      config.let_go = [this](const std::shared_ptr<const void>& kept) { std::erase(kept_, kept); };
      auto board = DeviceBoard::create(device_of(r), kernels_[&device_of(r)], std::move(config));
      ASSERT_TRUE(board.ok()) << board.error().message;
      boards_.push_back(std::move(board).value());
    }
    calls_ = 0;
  }
  int32_t ranks() const { return static_cast<int32_t>(boards_.size()); }
  std::byte* buffer(int32_t rank, uint64_t bytes) {
    std::byte* const memory = device_of(rank).allocate(std::max<uint64_t>(bytes, 1)).value();
    buffers_.emplace_back(memory, &device_of(rank));
    return memory;
  }
  StreamHandle* stream(int32_t rank) {
    StreamHandle* const made = device_of(rank).make_stream(false).value();
    streams_.emplace_back(made, &device_of(rank));
    return made;
  }
  void wait_until(const std::function<bool()>& condition) {
    while (!condition()) {
      fake().go_on();
      std::this_thread::yield();
    }
  }
  bool are_idle() {
    return std::ranges::all_of(streams_, [](const auto& one) { return one.second->is_idle(one.first).value(); });
  }
  // Of one rank, with its number.
  ExpressCall numbered(int32_t rank, ExpressCall call) {
    call.sequence = boards_[static_cast<size_t>(rank)]->next_sequence();
    call.number = call.sequence;
    return call;
  }
  bool poll(int32_t rank, ExpressCall& call) {
    boards_[static_cast<size_t>(rank)]->poll();
    const Result<bool> done = boards_[static_cast<size_t>(rank)]->poll(call);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return !done.ok() || done.value();
  }
  void run(std::vector<ExpressCall>& calls) {
    std::vector<bool> done(calls.size());
    wait_until([&] {
      for (size_t r = 0; r < calls.size(); ++r) done[r] = done[r] || poll(static_cast<int32_t>(r), calls[r]);
      return std::ranges::find(done, false) == done.end();
    });
  }

  std::map<Device*, std::shared_ptr<DeviceKernels>> kernels_;
  std::vector<std::shared_ptr<BoardMemory>> memory_;
  std::vector<std::unique_ptr<DeviceBoard>> boards_;
  std::vector<std::shared_ptr<const void>> kept_;
  std::vector<std::pair<StreamHandle*, Device*>> streams_;
  std::vector<std::pair<std::byte*, Device*>> buffers_;
  uint64_t calls_ = 0;
};

// ---- results

struct Shape {
  Collective collective = Collective::kAllReduce;
  DataType type = DataType::kFloat32;
  ReduceOp op = ReduceOp::kSum;
  uint64_t elements = 1;
  int32_t root = 0;
  uint32_t beyond = 0;  // bytes that buffers begin behind a multiple of 16
  bool in_place = false;
};

uint64_t blocks_in(BufferExtent extent, int32_t ranks) {
  if (extent == BufferExtent::kNone) return 0;
  return extent == BufferExtent::kCountPerRank ? static_cast<uint64_t>(ranks) : 1;
}

// Bytes of all ranks before a call, and what the call makes of them.
class Reference {
 public:
  Reference(const Shape& shape, int32_t ranks, uint64_t seed)
      : shape_(shape), ranks_(ranks), bytes_(shape.elements * size_of(shape.type)) {
    Rng rng(seed);
    const CollectiveRow& row = row_of(shape.collective);
    for (int32_t r = 0; r < ranks; ++r) {
      std::vector<std::byte>& mine = sent_.emplace_back(bytes_ * blocks_in(row.sent.extent, ranks));
      for (std::byte& byte : mine) byte = static_cast<std::byte>(rng.next());
      if (is_float(shape.type)) tame(mine);
    }
  }
  const std::vector<std::byte>& sent(int32_t rank) const { return sent_[static_cast<size_t>(rank)]; }
  std::vector<std::byte> expected(int32_t rank, const std::vector<std::byte>& before, const void* factor) const {
    const CollectiveRow& row = row_of(shape_.collective);
    std::vector<std::byte> result = before;
    if (!moves_data(shape_.collective) || bytes_ == 0) return result;
    if (row.received.at_root_only && rank != shape_.root) return result;
    const uint64_t mine = row.sent.extent == BufferExtent::kCountPerRank ? static_cast<uint64_t>(rank) * bytes_ : 0;
    if (row.reduces) {
      reduce_into(result, mine, factor);
    } else if (row.sent.at_root_only) {
      std::memcpy(result.data(), sent(shape_.root).data() + mine, bytes_);
    } else {
      for (int32_t r = 0; r < ranks_; ++r)
        std::memcpy(result.data() + static_cast<uint64_t>(r) * bytes_, sent(r).data() + mine, bytes_);
    }
    return result;
  }

 private:
  // No NaN and no infinity: the bits of a NaN that an addition makes are left open.
  void tame(std::vector<std::byte>& bytes) const {
    const uint64_t size = size_of(shape_.type);
    for (uint64_t at = 0; at < bytes.size(); at += size) {
      std::byte& top = bytes[at + size - 1];
      top = static_cast<std::byte>((static_cast<uint8_t>(top) & 0x83) | 0x38);
    }
  }
  void reduce_into(std::vector<std::byte>& result, uint64_t offset, const void* factor) const {
    std::vector<std::vector<std::byte>> parts;
    std::vector<const std::byte*> sources;
    for (int32_t r = 0; r < ranks_; ++r) {
      std::vector<std::byte>& part = parts.emplace_back(bytes_);
      std::memcpy(part.data(), sent(r).data() + offset, bytes_);
      if (factor != nullptr) scale(part.data(), part.data(), shape_.elements, shape_.type, factor);
    }
    for (const auto& part : parts) sources.push_back(part.data());
    const ReduceOp op = shape_.op == kPreMulSum ? ReduceOp::kSum : shape_.op;
    const uint32_t average = op == ReduceOp::kAvg ? static_cast<uint32_t>(ranks_) : 0;
    reduce(result.data(), sources, shape_.elements, {shape_.type, op, average, false});
  }

  const Shape shape_;
  const int32_t ranks_;
  const uint64_t bytes_;
  std::vector<std::vector<std::byte>> sent_;
};

class BoardResults : public Boards {
 protected:
  // In place, the sent blocks lie in the received ones, or the other way round, at this rank's.
  uint64_t place_of_recv(const Shape& shape, int32_t rank) const {
    const CollectiveRow& row = row_of(shape.collective);
    const bool several =
        row.sent.extent == BufferExtent::kCountPerRank && row.received.extent != BufferExtent::kCountPerRank;
    return several ? static_cast<uint64_t>(rank) * shape.elements * size_of(shape.type) : 0;
  }
  uint64_t place_of_send(const Shape& shape, int32_t rank) const {
    const CollectiveRow& row = row_of(shape.collective);
    const bool several =
        row.received.extent == BufferExtent::kCountPerRank && row.sent.extent != BufferExtent::kCountPerRank;
    return several ? static_cast<uint64_t>(rank) * shape.elements * size_of(shape.type) : 0;
  }
  void check(const Shape& shape) {
    const Reference reference(shape, ranks(), ++calls_);
    const CollectiveRow& row = row_of(shape.collective);
    const uint64_t bytes = shape.elements * size_of(shape.type);
    const double factor = 0;  // 8 bytes of 0: all types; other factors are checked through the header
    std::vector<ExpressCall> calls;
    std::vector<std::vector<std::byte>> before;
    for (int32_t r = 0; r < ranks(); ++r) {
      const uint64_t received = bytes * blocks_in(row.received.extent, ranks());
      const uint64_t room = std::max<uint64_t>(reference.sent(r).size(), received) + 32;
      std::byte* const recv_memory = buffer(r, room) + shape.beyond;
      std::byte* const send_memory = shape.in_place ? recv_memory : buffer(r, room) + shape.beyond;
      ExpressCall call;
      call.collective = shape.collective;
      call.spec = {shape.type, shape.op, shape.op == ReduceOp::kAvg ? static_cast<uint32_t>(ranks()) : 0, false};
      call.factor = shape.op == kPreMulSum ? &factor : nullptr;
      call.elements = shape.elements;
      call.bytes = bytes;
      call.root = shape.root;
      call.send = send_memory + (shape.in_place ? place_of_send(shape, r) : 0);
      call.recv = recv_memory + (shape.in_place ? place_of_recv(shape, r) : 0);
      std::memset(recv_memory, 0x5a, received);
      std::memcpy(const_cast<std::byte*>(call.send), reference.sent(r).data(), reference.sent(r).size());
      before.emplace_back(call.recv, call.recv + received);
      calls.push_back(numbered(r, call));
    }
    run(calls);
    for (int32_t r = 0; r < ranks(); ++r) {
      const std::vector<std::byte>& was = before[static_cast<size_t>(r)];
      const std::vector<std::byte> is(calls[r].recv, calls[r].recv + was.size());
      const auto expected = reference.expected(r, was, shape.op == kPreMulSum ? &factor : nullptr);
      ASSERT_TRUE(is == expected) << to_string(shape.collective) << " of " << shape.elements << " "
                                  << to_string(shape.type) << ", operator " << static_cast<int>(shape.op) << ", root "
                                  << shape.root << ", rank " << r << " of " << ranks() << ", beyond " << shape.beyond
                                  << (shape.in_place ? ", in place" : "");
    }
    free_buffers();
  }
  void free_buffers() {
    for (const auto& [memory, device] : buffers_) ASSERT_TRUE(device->free(memory).ok());
    buffers_.clear();
  }
  void check_everything(const Shape& shape) {
    for (const CollectiveRow& row : kCollectiveRows) {
      if (!row.over_board || HasFatalFailure()) continue;
      Shape one = shape;
      one.collective = row.collective;
      for (const bool in_place : {false, true}) {
        one.in_place = in_place;
        check(one);
        one.root = ranks() - 1;
      }
    }
  }
};

TEST_F(BoardResults, OfEveryCollective) {
  for (const int32_t count : {2, 3, 8, 16}) {
    make(count);
    for (const uint64_t elements : {0, 1, 2, 3, 33, 300})
      check_everything({.type = DataType::kFloat32, .elements = elements});
  }
}

TEST_F(BoardResults, OfEveryTypeAndOperator) {
  make(3);
  for (size_t type = 0; type < kDataTypes; ++type) {
    for (const size_t op : {0, 1, 2, 3, 4, 5}) {
      for (const uint32_t beyond : {0u, 1u}) {
        for (const uint64_t elements : {1, 7, 129}) {
          Shape shape{.type = static_cast<DataType>(type), .op = static_cast<ReduceOp>(op), .elements = elements};
          shape.beyond = beyond;
          check(shape);
          shape.collective = Collective::kReduceScatter;
          check(shape);
        }
      }
    }
  }
}

TEST_F(BoardResults, OfTheLargestBlocksAndOfSeveralShapes) {
  for (const uint32_t blocks : {1u, 16u}) {
    make(4, 1, blocks);
    for (const DataType type : {DataType::kUint8, DataType::kFloat16, DataType::kFloat64})
      check_everything({.type = type, .elements = kMostBytes / size_of(type)});
  }
}

// Where flags come again, and where numbers of calls need more than 32 bits. Long calls leave lines that short ones do
// not write.
TEST_F(BoardResults, AreRightWhereNumbersWrap) {
  for (const uint64_t first : {kernels::kBoardClearEvery - 3, kernels::kBoardFlags - 3, (uint64_t{1} << 31) - 3,
                               (uint64_t{1} << 32) - 3, 4 * kernels::kBoardFlags - 3}) {
    make(3, first);
    for (const uint64_t elements : {1000, 1, 1000, 5, 1, 1000, 1, 1000}) check({.elements = elements});
  }
}

// A line that was written kBoardFlags calls ago has the flag of today.
TEST_F(BoardResults, AreNotThoseOfAFlagThatComesAgain) {
  const uint64_t clears = 2 * kernels::kBoardClearEvery;
  ASSERT_TRUE(kernels::board_clears(clears));
  make(2, clears);
  const uint64_t lines = kernels::board_lines(kMostBytes);
  for (int32_t r = 0; r < 2; ++r) {
    uint64_t* const half = memory_[r]->lines() + (1 - clears % 2) * 2 * lines;
    for (uint64_t i = 0; i < 2 * lines; ++i)
      half[i] = static_cast<uint64_t>(kernels::board_flag(clears + 1)) << 32 | 0xbad;
  }
  check({.elements = 10});
  check({.elements = 10});
}

// ---- streams

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
      rank.send = reinterpret_cast<float*>(buffer(r, kMostBytes));
      rank.recv = reinterpret_cast<float*>(buffer(r, kMostBytes));
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
      call.recv = buffer(r, kMostBytes);
      std::byte* const send = buffer(r, kMostBytes);
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
  const uint64_t half = 2 * kernels::board_lines(kMostBytes);
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

TEST_F(Boards, AreNotMadeWithoutMemory) {
  const FakeObjects before = fake().objects();
  for (int nth = 0; nth < 2; ++nth) {
    fake().refuse_memory(nth);
    EXPECT_EQ(BoardMemory::create(*device_, 4, kMostBytes).error().code, Code::kSystemError);
    EXPECT_EQ(fake().objects(), before);
  }
}

}  // namespace
}  // namespace trestle
