// DeviceBoard over the fake driver: results of every collective, type and operator bit by bit, and calls whose numbers
// wrap around.
#include <cstring>

#include "base/rng.h"
#include "kernels/scale.h"
#include "unit/device/with_boards.h"

namespace trestle {
namespace {

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
      std::ranges::copy(reference.sent(r), const_cast<std::byte*>(call.send));
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
      check_everything({.type = type, .elements = kMostBoardBytes / size_of(type)});
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
  const uint64_t lines = kernels::board_lines(kMostBoardBytes);
  for (int32_t r = 0; r < 2; ++r) {
    uint64_t* const half = memory_[r]->lines() + (1 - clears % 2) * 2 * lines;
    for (uint64_t i = 0; i < 2 * lines; ++i)
      half[i] = static_cast<uint64_t>(kernels::board_flag(clears + 1)) << 32 | 0xbad;
  }
  check({.elements = 10});
  check({.elements = 10});
}

}  // namespace
}  // namespace trestle
