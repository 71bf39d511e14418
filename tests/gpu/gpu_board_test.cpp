// The kernel of the board of devices (kernels/cuda/board.h) on a GPU, one at a time: what the kernels of other ranks
// would write is in its lines when it begins. So it waits for nobody, and runs under tools that run one kernel after
// the other, such as compute-sanitizer.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "device/kernels.h"
#include "gpu/first_device.h"
#include "kernels/convert.h"
#include "kernels/reduce.h"
#include "support/scalar_reference.h"

namespace trestle {
namespace {

using kernels::BoardControl;
using kernels::BoardWords;
using kernels::CudaBoardCall;

constexpr uint32_t kMostRanks = kernels::kMostBoardRanks;
constexpr uint64_t kMostBytes = 64 << 10;
constexpr uint32_t kMostBlocks = 4;
constexpr size_t kRoom = 64;  // before and behind each buffer
constexpr size_t kBufferBytes = kMostRanks * kMostBytes + 2 * kRoom;
constexpr std::byte kGuard{0xa5};
constexpr uint64_t kStamp = 0x8000'1234'5678'9abc;

// One call on one rank.
struct Case {
  uint32_t rank = 0;
  uint32_t ranks = 1;
  uint64_t bytes = 0;  // of a block
  size_t offset = 0;   // of both buffers, from an address that is aligned
};

uint64_t unit_of(const std::byte* block, uint64_t bytes, uint64_t unit) {
  uint64_t data = 0;
  const uint64_t at = unit * kernels::kBoardUnitBytes;
  std::memcpy(&data, block + at, std::min<uint64_t>(kernels::kBoardUnitBytes, bytes - at));
  return data;
}

// As the kernel of another rank writes them: the header, then the block.
void write_lines(uint64_t* lines, const std::byte* block, uint64_t bytes, uint32_t flag) {
  const auto store = [&](uint64_t line, uint64_t unit) {
    lines[line] = uint64_t{flag} << 32 | static_cast<uint32_t>(unit);
    lines[line + 1] = uint64_t{flag} << 32 | unit >> 32;
  };
  store(0, kStamp);
  for (uint64_t unit = 0; unit < kernels::board_units(bytes); ++unit)
    store(kernels::kBoardHeaderLines + 2 * unit, unit_of(block, bytes, unit));
}

class GpuBoard : public OnFirstDevice {
 protected:
  static constexpr uint64_t kLines = kernels::kBoardHalves * kMostRanks * kernels::board_lines(kMostBytes);
  static constexpr size_t kPinnedBytes = std::max<size_t>(kLines * sizeof(uint64_t), kBufferBytes);

  void SetUp() override {
    OnFirstDevice::SetUp();
    if (IsSkipped()) return;
    auto kernels = DeviceKernels::create(*device_);
    ASSERT_TRUE(kernels.ok()) << kernels.error().message;
    kernels_ = std::move(kernels).value();
    pinned_ = device_->allocate_pinned(kPinnedBytes).value();
    control_ = new (device_->allocate_pinned(sizeof(BoardControl)).value()) BoardControl;
    words_ = device_->allocate(kernels::kBoardWordBytes).value();
    ASSERT_TRUE(device_->fill(words_, std::byte{0}, kernels::kBoardWordBytes, stream_).ok());
    for (std::byte*& buffer : buffers_) buffer = device_->allocate(kBufferBytes).value();
    for (std::byte*& lines : lines_) {
      lines = device_->allocate(kLines * sizeof(uint64_t)).value();
      ASSERT_TRUE(device_->fill(lines, std::byte{0}, kLines * sizeof(uint64_t), stream_).ok());
    }
    finish();
  }
  void TearDown() override {
    if (kernels_ != nullptr) {
      kernels_.reset();
      EXPECT_TRUE(device_->free_pinned(pinned_).ok());
      EXPECT_TRUE(device_->free_pinned(reinterpret_cast<std::byte*>(control_)).ok());
      EXPECT_TRUE(device_->free(words_).ok());
      for (std::byte* const buffer : buffers_) EXPECT_TRUE(device_->free(buffer).ok());
      for (std::byte* const lines : lines_) EXPECT_TRUE(device_->free(lines).ok());
    }
    OnFirstDevice::TearDown();
  }

  // Random bits; floats are numbers of usual size, so that sums have no NaN, whose bits may differ.
  std::vector<std::byte> random_blocks(uint64_t bytes, std::optional<DataType> type) {
    std::vector<std::byte> data(bytes + sizeof(double));
    for (std::byte& byte : data) byte = static_cast<std::byte>(rng_.next());
    if (!type || !is_float(*type)) return data;
    std::vector<float> values(data.size() / size_of(*type));
    for (float& value : values) value = static_cast<float>((rng_.uniform() - 0.5) * 4);
    if (*type == DataType::kFloat32) {
      std::memcpy(data.data(), values.data(), values.size() * sizeof(float));
    } else if (*type == DataType::kFloat64) {
      const std::vector<double> wide(values.begin(), values.end());
      std::memcpy(data.data(), wide.data(), wide.size() * sizeof(double));
    } else {
      narrow_from_float32(data.data(), values.data(), values.size(), *type);
    }
    return data;
  }

  // Begins the call of `one`: later calls have later numbers. Each rank r but this one has sent blocks[r].
  CudaBoardCall begin(const Case& one, const std::vector<const std::byte*>& blocks) {
    CudaBoardCall call;
    call.send = buffers_[0] + kRoom + one.offset;
    call.recv = buffers_[1] + kRoom + one.offset;
    call.rank = one.rank;
    call.ranks = one.ranks;
    call.sequence = static_cast<uint32_t>(++sequence_);
    call.flag = kernels::board_flag(sequence_);
    call.half = static_cast<uint32_t>(sequence_ % kernels::kBoardHalves);
    call.stamp = kStamp;
    call.lines_per_rank = kernels::board_lines(one.bytes);
    call.control = control_;
    call.words = reinterpret_cast<BoardWords*>(words_);
    for (uint32_t r = 0; r < one.ranks; ++r) call.lines[r] = reinterpret_cast<uint64_t*>(lines_[r]);
    auto* const lines = reinterpret_cast<uint64_t*>(pinned_);
    const uint64_t half = one.ranks * call.lines_per_rank;
    std::memset(pinned_, 0, half * sizeof(uint64_t));
    for (uint32_t r = 0; r < one.ranks; ++r) {
      if (r != one.rank) write_lines(lines + r * call.lines_per_rank, blocks[r], one.bytes, call.flag);
    }
    copy(reinterpret_cast<std::byte*>(call.lines[one.rank] + call.half * half), pinned_, half * sizeof(uint64_t));
    EXPECT_TRUE(device_->fill(buffers_[1], kGuard, kBufferBytes, stream_).ok());
    return call;
  }
  void send(const CudaBoardCall& call, const std::byte* data, uint64_t bytes) {
    std::memcpy(pinned_, data, bytes);
    copy(static_cast<std::byte*>(const_cast<void*>(call.send)), pinned_, bytes);
  }
  void run(const CudaBoardCall& call, uint64_t bytes, DataType type, std::optional<ReduceOp> op) {
    const Status launched = kernels_->board(call, type, op, kernels::board_blocks(bytes, kMostBlocks), stream_);
    ASSERT_TRUE(launched.ok()) << launched.error().message;
    // The fake driver does not wait for kernels that run beside its streams. And one that waits for ever shows here.
    const int64_t give_up_ns = monotonic_clock().now_ns() + 30'000'000'000;
    while (!device_->is_idle(stream_).value()) {
      ASSERT_LT(monotonic_clock().now_ns(), give_up_ns) << "the kernel does not end";
      std::this_thread::yield();
    }
    finish();
  }
  // The receive buffer, with what is around it.
  std::vector<std::byte> received() {
    copy(pinned_, buffers_[1], kBufferBytes);
    return {pinned_, pinned_ + kBufferBytes};
  }
  // What this rank has written to rank r.
  std::vector<uint64_t> sent_to(const CudaBoardCall& call, uint32_t r) {
    std::vector<uint64_t> lines(call.lines_per_rank);
    const uint64_t* const from = call.lines[r] + (uint64_t{call.half} * call.ranks + call.rank) * call.lines_per_rank;
    copy(pinned_, reinterpret_cast<const std::byte*>(from), lines.size() * sizeof(uint64_t));
    std::memcpy(lines.data(), pinned_, lines.size() * sizeof(uint64_t));
    return lines;
  }
  void expect_sent(const CudaBoardCall& call, uint32_t r, const std::byte* block, uint64_t bytes) {
    std::vector<uint64_t> expected(call.lines_per_rank);
    write_lines(expected.data(), block, bytes, call.flag);
    const std::vector<uint64_t> lines = sent_to(call, r);
    ASSERT_EQ(lines[0], expected[0]);
    ASSERT_EQ(lines[1], expected[1]);
    for (uint64_t i = kernels::kBoardHeaderLines; i < kernels::kBoardHeaderLines + 2 * kernels::board_units(bytes); ++i)
      ASSERT_EQ(lines[i], expected[i]) << "line " << i << " to rank " << r << " of " << call.ranks;
  }
  static void expect_result(const std::vector<std::byte>& got, size_t offset, const std::byte* expected,
                            uint64_t bytes) {
    const size_t begin = kRoom + offset;
    for (uint64_t i = 0; i < bytes; ++i) ASSERT_EQ(got[begin + i], expected[i]) << "byte " << i << " of " << bytes;
    for (size_t i = 1; i <= 16; ++i) {
      ASSERT_EQ(got[begin - i], kGuard) << "written before the result";
      ASSERT_EQ(got[begin + bytes + i - 1], kGuard) << "written behind the result";
    }
  }

  void check_sum(const Case& one, DataType type, ReduceOp op);
  void check_all_to_all(const Case& one);

 private:
  void copy(std::byte* to, const std::byte* from, uint64_t bytes) {
    ASSERT_TRUE(device_->copy(to, from, bytes, stream_).ok());
    finish();
  }

 protected:
  Rng rng_{17};
  std::unique_ptr<DeviceKernels> kernels_;
  std::byte* pinned_ = nullptr;
  BoardControl* control_ = nullptr;
  std::byte* words_ = nullptr;
  std::array<std::byte*, 2> buffers_{};
  std::array<std::byte*, kMostRanks> lines_{};  // of each rank, all on this device
  uint64_t sequence_ = 0;
};

// An all-reduce: bits of a sum in the order of the ranks, and this rank's block in the lines of all others.
void GpuBoard::check_sum(const Case& one, DataType type, ReduceOp op) {
  const uint64_t elements = one.bytes / size_of(type);
  std::vector<std::vector<std::byte>> blocks;
  std::vector<const std::byte*> sources;
  for (uint32_t r = 0; r < one.ranks; ++r)
    sources.push_back(blocks.emplace_back(random_blocks(one.bytes, type)).data());
  CudaBoardCall call = begin(one, sources);
  const uint32_t all = (1u << one.ranks) - 1;
  call.elements = elements;
  call.send_to = call.recv_from = all;
  call.average_over = op == ReduceOp::kAvg ? one.ranks : 0;
  call.elements_are_aligned = one.offset % size_of(type) == 0;
  send(call, sources[one.rank], one.bytes);
  run(call, one.bytes, type, op);
  if (HasFatalFailure()) return;
  std::vector<std::byte> expected(one.bytes);
  reduce(expected.data(), sources, elements, {type, op, call.average_over, false});
  expect_result(received(), one.offset, expected.data(), one.bytes);
  for (uint32_t r = 0; r < one.ranks && !HasFatalFailure(); ++r) {
    if (r != one.rank) expect_sent(call, r, sources[one.rank], one.bytes);
  }
  ASSERT_EQ(control_->begun, call.sequence);
  ASSERT_EQ(control_->ended, call.sequence);
  ASSERT_EQ(control_->chain, call.sequence);
}

void GpuBoard::check_all_to_all(const Case& one) {
  const std::vector<std::byte> sent = random_blocks(one.ranks * one.bytes, {});
  const std::vector<std::byte> theirs = random_blocks(one.ranks * one.bytes, {});
  std::vector<const std::byte*> blocks;
  for (uint32_t r = 0; r < one.ranks; ++r) blocks.push_back((r == one.rank ? sent : theirs).data() + r * one.bytes);
  CudaBoardCall call = begin(one, blocks);
  call.elements = one.bytes;
  call.send_stride = call.recv_stride = one.bytes;
  call.send_to = call.recv_from = (1u << one.ranks) - 1;
  call.elements_are_aligned = 1;
  send(call, sent.data(), one.ranks * one.bytes);
  run(call, one.bytes, DataType::kInt8, {});
  if (HasFatalFailure()) return;
  std::vector<std::byte> expected;
  for (const std::byte* const block : blocks) expected.insert(expected.end(), block, block + one.bytes);
  expect_result(received(), one.offset, expected.data(), expected.size());
  for (uint32_t r = 0; r < one.ranks && !HasFatalFailure(); ++r) {
    if (r != one.rank) expect_sent(call, r, sent.data() + r * one.bytes, one.bytes);
  }
}

TEST_F(GpuBoard, SumsOfEveryTypeAndOperator) {
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    for (size_t o = 0; o < kReduceOps; ++o) {
      SCOPED_TRACE(std::string(to_string(type)) + ", " + to_string(static_cast<ReduceOp>(o)));
      check_sum({1, 3, 333 * size_of(type), 0}, type, static_cast<ReduceOp>(o));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(GpuBoard, SumsOfAnySizeAndAlignment) {
  for (const uint32_t ranks : {1u, 2u, 8u, kMostRanks}) {
    for (const uint64_t bytes : {uint64_t{2}, uint64_t{8}, uint64_t{1002}, kMostBytes}) {
      for (const size_t offset : {0, 2, 1}) {
        SCOPED_TRACE(std::to_string(bytes) + " bytes on " + std::to_string(ranks) + " ranks, offset " +
                     std::to_string(offset));
        check_sum({ranks - 1, ranks, bytes, offset}, DataType::kFloat16, ReduceOp::kSum);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(GpuBoard, BlocksOfAnySizeAndAlignment) {
  for (const uint32_t ranks : {1u, 2u, 8u, kMostRanks}) {
    for (const uint64_t bytes : {uint64_t{1}, uint64_t{8}, uint64_t{1003}, kMostBytes}) {
      for (const size_t offset : {0, 3}) {
        SCOPED_TRACE(std::to_string(bytes) + " bytes on " + std::to_string(ranks) + " ranks, offset " +
                     std::to_string(offset));
        check_all_to_all({0, ranks, bytes, offset});
        if (HasFatalFailure()) return;
      }
    }
  }
}

// An aborted kernel writes no result, and later ones send nothing either.
TEST_F(GpuBoard, AnAbortedKernelWritesNothing) {
  const std::vector<std::byte> data = random_blocks(kMostBytes, {});
  const std::vector<const std::byte*> blocks(2, data.data());
  const auto call_of = [&] {
    CudaBoardCall call = begin({0, 2, kMostBytes, 0}, blocks);
    call.elements = kMostBytes;
    call.recv_stride = kMostBytes;
    call.send_to = call.recv_from = 3;
    call.elements_are_aligned = 1;
    send(call, data.data(), kMostBytes);
    return call;
  };
  const auto expect_nothing = [&](const CudaBoardCall& call) {
    for (const std::byte byte : received()) ASSERT_EQ(byte, kGuard);
    ASSERT_EQ(control_->ended, call.sequence);
    ASSERT_EQ(control_->chain, 0u) << "streams would go on behind it";
  };
  control_->abort = 1;
  const CudaBoardCall aborted = call_of();
  run(aborted, kMostBytes, DataType::kInt8, {});
  expect_nothing(aborted);
  const CudaBoardCall later = call_of();
  run(later, kMostBytes, DataType::kInt8, {});
  expect_nothing(later);
  for (const uint64_t line : sent_to(later, 1)) ASSERT_NE(line >> 32, later.flag);
}

// Lines of a long call keep their flag while short ones go on. Before the flag comes again, a kernel clears them.
TEST_F(GpuBoard, ClearsTheOtherHalf) {
  const std::vector<std::byte> data = random_blocks(kMostBytes, {});
  const std::vector<const std::byte*> blocks(2, data.data());
  ASSERT_TRUE(device_->fill(lines_[0], std::byte{0xff}, kLines * sizeof(uint64_t), stream_).ok());
  CudaBoardCall call = begin({0, 2, kMostBytes, 0}, blocks);
  call.clears = 1;
  run(call, 0, DataType::kInt8, {});
  const uint64_t lines = call.ranks * call.lines_per_rank;
  const std::byte* const other = lines_[0] + (1 - call.half) * lines * sizeof(uint64_t);
  ASSERT_TRUE(device_->copy(pinned_, other, lines * sizeof(uint64_t), stream_).ok());
  finish();
  for (uint64_t i = 0; i < lines * sizeof(uint64_t); ++i) ASSERT_EQ(pinned_[i], std::byte{0}) << i;
  ASSERT_EQ(control_->ended, call.sequence);
}

}  // namespace
}  // namespace trestle
