// CopyBatch over the fake driver: the right bytes, in few launches.
#include "device/copy_batch.h"

#include <cuda.h>

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

class CopyBatches : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    kernels_ = DeviceKernels::create(*device_).value();
    stream_ = device_->make_stream(false).value();
    batch_.emplace(*device_, *kernels_, stream_);
    Rng rng(1);
    for (std::byte& byte : from_) byte = static_cast<std::byte>(rng.next());
  }
  void TearDown() override {
    kernels_.reset();
    ASSERT_TRUE(device_->destroy_stream(stream_).ok());
    WithFakeDriver::TearDown();
  }
  void add(size_t to, size_t from, size_t bytes) {
    ASSERT_TRUE(batch_->add(to_.data() + to, from_.data() + from, bytes).ok());
    std::memcpy(expected_.data() + to, from_.data() + from, bytes);
  }
  // How many copies and launches were submitted in all.
  uint32_t finish() {
    EXPECT_TRUE(batch_->flush().ok());
    EXPECT_TRUE(device_->synchronize(stream_).ok());
    EXPECT_TRUE(to_ == expected_);
    return batch_->submitted();
  }

  static constexpr size_t kBytes = 3 * CopyBatch::kLongBytes;
  using Buffer = std::vector<std::byte>;
  Buffer from_ = Buffer(kBytes);
  Buffer to_ = Buffer(kBytes);
  Buffer expected_ = Buffer(kBytes);
  std::unique_ptr<DeviceKernels> kernels_;
  StreamHandle* stream_ = nullptr;
  std::optional<CopyBatch> batch_;
};

TEST_F(CopyBatches, JoinWhatContinues) {
  for (size_t i = 0; i < 1000; ++i) add(3 + i * 10, 8 + i * 10, 10);
  EXPECT_EQ(finish(), 1U);
  EXPECT_EQ(fake().launched(), "move.copy_runs");
}

TEST_F(CopyBatches, JoinRows) {
  for (size_t i = 0; i < 1000; ++i) {
    add(i * 160, i * 320, 60);
    add(i * 160 + 60, i * 320 + 60, 40);  // continues the row
  }
  EXPECT_EQ(finish(), 1U);
  EXPECT_EQ(fake().launched(), "move.copy_rows");
}

TEST_F(CopyBatches, CarryManyCopiesPerLaunch) {
  Rng rng(2);
  size_t at = 0;
  for (size_t i = 0; i < kernels::kMostCudaRuns; ++i, at += 400) add(at + rng.below(20), at + rng.below(20), 200 + i);
  EXPECT_EQ(finish(), 1U);
  add(at, at, 100);
  EXPECT_EQ(finish(), 2U);
  EXPECT_EQ(finish(), 2U) << "nothing is left";
}

TEST_F(CopyBatches, LeaveLongOnesToTheDriver) {
  add(0, 0, CopyBatch::kLongBytes);
  add(CopyBatch::kLongBytes, CopyBatch::kLongBytes, CopyBatch::kLongBytes);
  EXPECT_EQ(finish(), 2U);
  EXPECT_EQ(fake().launched(), "");
}

TEST_F(CopyBatches, LeaveWhatIsThereAlready) {
  ASSERT_TRUE(batch_->add(to_.data(), to_.data(), 100).ok());
  ASSERT_TRUE(batch_->add(to_.data(), from_.data(), 0).ok());
  EXPECT_EQ(finish(), 0U);
}

TEST_F(CopyBatches, CopyAnything) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Rng rng(seed);
    size_t to = 0;
    size_t from = 0;
    while (to < kBytes / 2 && from < kBytes / 2) {
      const size_t bytes =
          rng.below(3) == 0 ? 16 * (1 + rng.below(4)) : 1 + rng.below(rng.below(20) == 0 ? 60'000 : 300);
      const size_t rows = 1 + rng.below(3) * rng.below(30);
      const size_t to_stride = bytes + rng.below(3) * 16;
      const size_t from_stride = bytes + rng.below(3) * 16;
      for (size_t row = 0; row < rows && to + bytes < kBytes && from + bytes < kBytes; ++row) {
        add(to, from, bytes);
        to += to_stride;
        from += from_stride;
      }
      to += rng.below(20);
      from += rng.below(20);
    }
    finish();
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace trestle
