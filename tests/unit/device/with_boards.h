// A test of the boards of several ranks on the two devices of the fake driver, whose kernels run the code of the
// devices.
#pragma once

#include <algorithm>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "engine/work/device_board.h"
#include "unit/device/with_fake_driver.h"

namespace trestle {

inline constexpr uint64_t kMostBoardBytes = 4096;

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

  // What a board of so many ranks needs.
  struct Blocks {
    explicit Blocks(Device& of) : device(of) {}
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() {
      const bool freed =
          (lines == nullptr || device.free(lines).ok()) && (page == nullptr || device.free_pinned(page).ok());
      EXPECT_TRUE(freed);
    }
    Device& device;
    std::byte* lines = nullptr;
    std::byte* page = nullptr;
  };
  static Result<std::shared_ptr<BoardMemory>> new_memory(Device& device, int32_t ranks) {
    const uint64_t bytes = kernels::board_bytes(kMostBoardBytes, static_cast<uint64_t>(ranks));
    auto blocks = std::make_shared<Blocks>(device);
    blocks->lines = TRY(device.allocate(bytes));
    blocks->page = TRY(device.allocate_pinned(sizeof(BoardPage)));
    return BoardMemory::create(device, blocks->lines, bytes, blocks->page, blocks);
  }

  Device& device_of(int32_t rank) { return rank % 2 == 0 ? *device_ : *peer_; }
  void make(int32_t ranks, uint64_t first_sequence = 1, uint32_t most_blocks = 4) {
    boards_.clear();
    memory_.clear();
    for (int32_t r = 0; r < ranks; ++r) {
      // A stream that has been idle is: the driver's thread may be late, which this driver takes for an error.
      auto made = new_memory(device_of(r), ranks);
      ASSERT_TRUE(made.ok()) << made.error().message;
      memory_.push_back(std::move(made).value());
    }
    for (int32_t r = 0; r < ranks; ++r) {
      DeviceBoardConfig config{r, memory_, kMostBoardBytes, most_blocks, {}, {}, first_sequence};
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

}  // namespace trestle
