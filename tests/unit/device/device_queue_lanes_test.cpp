// DeviceQueue over the fake driver: work in memory of the device and of the host goes on side by side, and has the
// effect that it would have one after the other.
#include <cuda.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "unit/device/with_fake_queue.h"

namespace trestle {
namespace {

class QueuesOfLanes : public Queues {};
INSTANTIATE_TEST_SUITE_P(Ways, QueuesOfLanes, testing::Values(GateWay::kWord, GateWay::kHost), name_of_way);

// Cells of numbers. The first half is memory of the device, the second half pinned memory of the host, and `expected`
// what all of them must hold.
class Cells {
 public:
  static constexpr size_t kCells = 24;
  static constexpr size_t kNumbers = 4;  // of a cell

  explicit Cells(Device& device) : device_(device) {
    device_memory_ = device.allocate(kCells / 2 * kBytes).value();
    host_memory_ = device.allocate_pinned(kCells / 2 * kBytes).value();
    device_region_ = private_region(device_memory_, kCells / 2 * kBytes, 0);
    host_region_ = private_region(host_memory_, kCells / 2 * kBytes);
    std::iota(expected_.begin(), expected_.end(), 1);
    for (size_t cell = 0; cell < kCells; ++cell) std::memcpy(data(cell), expected(cell), kBytes);
  }
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;
  ~Cells() {
    EXPECT_TRUE(device_.free(device_memory_).ok());
    EXPECT_TRUE(device_.free_pinned(host_memory_).ok());
  }

  static constexpr uint64_t kBytes = kNumbers * sizeof(uint32_t);
  std::byte* data(size_t cell) const {
    return cell < kCells / 2 ? device_memory_ + cell * kBytes : host_memory_ + (cell - kCells / 2) * kBytes;
  }
  Piece piece(size_t cell) const { return {data(cell), kBytes, cell < kCells / 2 ? &device_region_ : &host_region_}; }
  uint32_t* expected(size_t cell) { return expected_.data() + cell * kNumbers; }

  testing::AssertionResult are_as_expected() {
    for (size_t cell = 0; cell < kCells; ++cell) {
      if (std::memcmp(data(cell), expected(cell), kBytes) != 0) return testing::AssertionFailure() << "cell " << cell;
    }
    return testing::AssertionSuccess();
  }

 private:
  Device& device_;
  std::byte* device_memory_ = nullptr;
  std::byte* host_memory_ = nullptr;
  Region device_region_;
  Region host_region_;
  std::array<uint32_t, kCells * kNumbers> expected_{};
};

// A copy or a sum of lists of cells, which lie anywhere.
struct CellWork {
  using List = std::vector<size_t>;

  CellWork(Cells& cells, List to, const std::vector<List>& from) {
    for (const size_t cell : to) write.push_back(cells.piece(cell));
    for (const List& list : from) {
      for (std::vector<ConstPiece>& source = read.emplace_back(); const size_t cell : list) {
        const Piece piece = cells.piece(cell);
        source.push_back({piece.data, piece.bytes, piece.region});
      }
    }
    for (const auto& source : read) sources.emplace_back(source);
    work.kind = from.size() == 1 ? WorkKind::kCopy : WorkKind::kReduce;
    work.spec.type = DataType::kUint32;
    work.bytes = to.size() * Cells::kBytes;
    work.destination = write;
    work.sources = sources;
    for (size_t i = 0; i < to.size(); ++i) expect(cells, to[i], from, i);
  }
  CellWork(const CellWork&) = delete;
  CellWork& operator=(const CellWork&) = delete;

  // No list has a cell twice, and a source has none of the destination's, unless it is the destination.
  static CellWork& random(std::deque<CellWork>& works, Cells& cells, Rng& rng) {
    List all(Cells::kCells);
    std::iota(all.begin(), all.end(), size_t{0});
    for (size_t i = all.size() - 1; i > 0; --i) std::swap(all[i], all[rng.below(i + 1)]);
    const size_t length = 1 + rng.below(4);
    const auto list = [&](size_t i) {
      return List(all.begin() + static_cast<std::ptrdiff_t>(i * length),
                  all.begin() + static_cast<std::ptrdiff_t>((i + 1) * length));
    };
    std::vector<List> from;
    for (size_t sources = 1 + rng.below(3); from.size() < sources;) from.push_back(list(1 + from.size()));
    if (from.size() > 1 && rng.below(3) == 0) from[0] = list(0);  // in place
    return works.emplace_back(cells, list(0), from);
  }

  Work work;

 private:
  static void expect(Cells& cells, size_t to, const std::vector<List>& from, size_t index) {
    for (size_t n = 0; n < Cells::kNumbers; ++n) {
      uint32_t sum = 0;
      for (const List& list : from) sum += cells.expected(list[index])[n];
      cells.expected(to)[n] = sum;
    }
  }

  std::vector<Piece> write;
  std::vector<std::vector<ConstPiece>> read;
  std::vector<std::span<const ConstPiece>> sources;
};

bool is_done(const CellWork& cell_work) {
  return cell_work.work.state == WorkState::kDone;
}

TEST_P(QueuesOfLanes, KeepTheOrderOfWorkOnTheSameMemoryInAllLanes) {
  bool overtaken = false;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed);
    fake().forbid_slow_calls(false);
    Cells cells(*device_);
    fake().forbid_slow_calls(true);
    fake().shuffle_streams(seed);
    std::deque<CellWork> works;
    while (works.size() < 300) {
      for (size_t burst = 1 + rng.below(40); burst > 0; --burst)
        queue_->submit(CellWork::random(works, cells, rng).work);
      for (size_t polls = rng.below(4); polls > 0; --polls) {
        fake().go_on();
        queue_->poll();
        overtaken = overtaken || !std::is_partitioned(works.begin(), works.end(), is_done);
      }
    }
    for (const CellWork& work : works) wait_for(work.work);
    fake().shuffle_streams(0);
    fake().forbid_slow_calls(false);
    ASSERT_TRUE(cells.are_as_expected());
  }
  EXPECT_TRUE(overtaken) << "no work ended before one that was submitted earlier";
}

// What is submitted: the work itself, a mark, an event where the mark is a word and other lanes may follow, and a wait
// only where the work touches the same memory.
TEST_P(QueuesOfLanes, WaitForOtherLanesOnlyWhereMemoryIsTheSame) {
  constexpr size_t kHost = Cells::kCells / 2;
  const int event = GetParam() == GateWay::kWord ? 1 : 0;
  slow([&] {
    Cells cells(*device_);
    fake().hold_streams(true);
    std::deque<CellWork> works;
    const auto submitted_for = [&](size_t to, size_t from) {
      const int before = fake().submitted();
      queue_->submit(works.emplace_back(cells, CellWork::List{to}, std::vector<CellWork::List>{{from}}).work);
      return fake().submitted() - before;
    };
    EXPECT_EQ(submitted_for(1, 0), 2) << "in the device";
    const int work = 2 + event;
    EXPECT_EQ(submitted_for(kHost, 2), work) << "to the host, other memory";
    EXPECT_EQ(submitted_for(3, kHost + 1), work) << "from the host, other memory";
    EXPECT_EQ(submitted_for(kHost + 2, 1), work + 1 + event) << "to the host, what the first one writes";
    EXPECT_EQ(submitted_for(4, kHost + 2), work + 1) << "from the host, what that one writes";
    EXPECT_EQ(submitted_for(2, 5), work + 1) << "in the device, over what the second one reads";
    EXPECT_EQ(submitted_for(6, 2), work) << "in the device, what its own lane writes";
    EXPECT_EQ(submitted_for(kHost + 3, 0), work) << "both only read it";
    for (int again = 0; again < 3; ++again) EXPECT_EQ(submitted_for(7, 0), work) << "in one lane";
    EXPECT_EQ(submitted_for(kHost + 4, 7), work + 1) << "to the host, what three have written: one wait";
    fake().hold_streams(false);
    for (const CellWork& cell_work : works) wait_for(cell_work.work);
    EXPECT_TRUE(cells.are_as_expected());
  });
}

// Whichever call of the driver fails: what has ended well has done its part, and all other work ends with the sentence.
TEST_P(QueuesOfLanes, EndAllWorkWhereTheDriverFails) {
  for (int nth = 0; nth < 60; ++nth) {
    SCOPED_TRACE(testing::Message() << "call " << nth);
    Rng rng(static_cast<uint64_t>(nth) + 1);
    fake().forbid_slow_calls(false);
    make_queue();
    fake().forbid_slow_calls(false);
    Cells cells(*device_);
    fake().forbid_slow_calls(true);
    fake().shuffle_streams(static_cast<uint64_t>(nth) + 1);
    std::deque<CellWork> works;
    fake().fail(nth, CUDA_ERROR_LAUNCH_FAILED);
    for (int i = 0; i < 40; ++i) queue_->submit(CellWork::random(works, cells, rng).work);
    bool failed = false;
    for (const CellWork& work : works) {
      wait_for(work.work);
      failed = failed || !work.work.result.ok();
      if (work.work.result.ok()) continue;
      EXPECT_NE(work.work.result.error().message.find("work on device 0"), std::string::npos);
    }
    EXPECT_TRUE(failed);
    fake().shuffle_streams(0);
    fake().forbid_slow_calls(false);
  }
}

}  // namespace
}  // namespace trestle
