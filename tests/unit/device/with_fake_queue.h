// A test of DeviceQueues over the fake driver, both ways of marks.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "engine/work/device_queue.h"
#include "support/device_work.h"
#include "unit/device/with_fake_driver.h"

namespace trestle {

// A copy of one value between two places on the host, which the fake driver takes for memory of a device.
struct OneCopy {
  OneCopy(const uint64_t& from, uint64_t& to)
      : read{reinterpret_cast<const std::byte*>(&from), sizeof from},
        write{reinterpret_cast<std::byte*>(&to), sizeof to} {
    work.bytes = sizeof from;
    work.destination = {&write, 1};
    work.sources = {&source, 1};
    work.touched = &touched;
  }
  OneCopy(const OneCopy&) = delete;
  OneCopy& operator=(const OneCopy&) = delete;

  ConstPiece read;
  Piece write;
  std::span<const ConstPiece> source{&read, 1};
  Work work;
  bool touched = false;
};

// A copy of a value of its own.
struct OwnCopy {
  uint64_t from = 5;
  uint64_t to = 0;
  OneCopy copy{from, to};
  Work& work = copy.work;
};

// Copies of one value to each of some places.
struct ManyCopies {
  explicit ManyCopies(size_t count) : to(count) {
    for (uint64_t& value : to) copies.emplace_back(from, value);
  }

  const uint64_t from = 5;
  std::vector<uint64_t> to;
  std::deque<OneCopy> copies;
};

// The two ways of marks, as the names of tests have them.
inline std::string name_of_way(const testing::TestParamInfo<GateWay>& info) {
  return info.param == GateWay::kWord ? "ByWord" : "ByEvent";
}

class Queues : public WithFakeDriver, public testing::WithParamInterface<GateWay> {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    kernels_ = DeviceKernels::create(*device_).value();
    memory_ = std::make_unique<WorkMemory>(*device_, uint64_t{1} << 16);
    make_queue();
  }
  void TearDown() override {
    fake().forbid_slow_calls(false);
    queue_.reset();
    memory_.reset();
    kernels_.reset();
    WithFakeDriver::TearDown();
  }
  // From here on only what a queue may call while it makes progress is right.
  void make_queue() {
    queue_.reset();
    queue_ = DeviceQueue::create(*device_, kernels_, GetParam()).value();
    fake().forbid_slow_calls(true);
  }
  void wait_for(const Work& work) {
    for (int polls = 0; work.state != WorkState::kDone; ++polls) {
      ASSERT_LT(polls, kMostPolls) << "it never ends";
      fake().go_on();
      queue_->poll();
    }
  }
  void submit(ManyCopies& many) {
    for (OneCopy& copy : many.copies) queue_->submit(copy.work);
  }
  // Submits a copy that cannot begin.
  void submit_held(OwnCopy& own) {
    fake().hold_streams(true);
    queue_->submit(own.work);
  }
  // Polls that find nothing, more than it takes to find that a device is broken.
  void poll_in_vain() {
    for (int polls = 0; polls < kMostPolls; ++polls) ASSERT_FALSE(queue_->poll());
  }
  void slow(const std::function<void()>& body) {
    fake().forbid_slow_calls(false);
    body();
    fake().forbid_slow_calls(true);
  }

  static constexpr int kMostPolls = 10'000;
  std::shared_ptr<DeviceKernels> kernels_;
  std::unique_ptr<WorkMemory> memory_;
  std::unique_ptr<DeviceQueue> queue_;
};

}  // namespace trestle
