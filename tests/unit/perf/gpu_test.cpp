// Buffers in memory of a GPU, over a fake driver: what the perf binaries write and check there.
#include "perf/gpu/gpu.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "unit/device/with_fake_driver.h"

namespace trestle::perf {
namespace {

class PerfGpu : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    FoundGpus found = find_gpus(TRESTLE_FAKE_DRIVER);
    ASSERT_EQ(found.problem, "");
    gpus_ = std::move(found.gpus);
  }
  void TearDown() override {
    gpus_.reset();
    WithFakeDriver::TearDown();
  }

  std::unique_ptr<Gpus> gpus_;
};

TEST_F(PerfGpu, BuffersStartAsZerosAndKeepWhatIsWritten) {
  const std::unique_ptr<Gpu> gpu = gpus_->open(0);
  const std::unique_ptr<Access> access = gpu->make_access();
  EXPECT_FALSE(access->is_direct());
  const Buffer buffer(gpu->memory(), 5000, *access);
  ASSERT_NE(buffer.data(), nullptr);
  std::vector<char> found(5000, 'x');
  access->read(found.data(), buffer.data(), found.size());
  EXPECT_EQ(found, std::vector<char>(5000, '\0'));

  const std::vector<char> data(3000, 'd');
  access->write(buffer.data() + 1000, data.data(), data.size());
  access->zero(buffer.data() + 1000, 1000);
  access->read(found.data(), buffer.data(), found.size());
  EXPECT_EQ(std::vector<char>(found.begin(), found.begin() + 2000), std::vector<char>(2000, '\0'));
  EXPECT_EQ(std::vector<char>(found.begin() + 2000, found.begin() + 4000), std::vector<char>(2000, 'd'));
  EXPECT_EQ(std::vector<char>(found.begin() + 4000, found.end()), std::vector<char>(1000, '\0'));
}

TEST_F(PerfGpu, NothingIsCopiedForNoBytes) {
  const std::unique_ptr<Gpu> gpu = gpus_->open(0);
  const std::unique_ptr<Access> access = gpu->make_access();
  const int before = fake().calls();
  access->write(nullptr, nullptr, 0);
  access->read(nullptr, nullptr, 0);
  access->zero(nullptr, 0);
  EXPECT_EQ(fake().calls(), before);
}

TEST_F(PerfGpu, MovedBuffersAreFreedOnce) {
  const std::unique_ptr<Gpu> gpu = gpus_->open(1);
  const std::unique_ptr<Access> access = gpu->make_access();
  Buffer buffer(gpu->memory(), 64, *access);
  EXPECT_EQ(fake().objects().memory, 1);
  Buffer other(std::move(buffer));
  other = Buffer();
  EXPECT_EQ(fake().objects().memory, 0);
}

TEST_F(PerfGpu, IsTheThreadsDeviceWhileItIsEntered) {
  const std::unique_ptr<Gpu> gpu = gpus_->open(0);
  EXPECT_EQ(fake().objects().pushed, 0);
  {
    const OnGpu on(gpu.get());
    EXPECT_EQ(fake().objects().pushed, 1);
    void* const stream = gpu->make_stream();  // calls leave the thread as it was
    EXPECT_TRUE(gpu->is_idle(stream));
    gpu->destroy_stream(stream);
    EXPECT_EQ(fake().objects().pushed, 1);
    const OnGpu nowhere(nullptr);
    EXPECT_EQ(fake().objects().pushed, 1);
  }
  EXPECT_EQ(fake().objects().pushed, 0);
}

TEST_F(PerfGpu, TellsWhatTheGpuIs) {
  EXPECT_EQ(gpus_->count(), 2);
  const std::unique_ptr<Gpu> gpu = gpus_->open(1);
  EXPECT_EQ(gpu->info().index, 1);
  EXPECT_FALSE(gpu->info().pci.empty());
  EXPECT_GT(gpu->info().bytes, 0u);
  EXPECT_GT(gpu->info().compute_capability, 0);
}

TEST_F(PerfGpu, HeldStreamsAreNotIdle) {
  const std::unique_ptr<Gpu> gpu = gpus_->open(0);
  const std::unique_ptr<Access> access = gpu->make_access();
  const Buffer buffer(gpu->memory(), 64, *access);
  auto devices = open_devices(TRESTLE_FAKE_DRIVER);
  ASSERT_TRUE(devices.ok());
  auto device = devices.value()->open(0);
  ASSERT_TRUE(device.ok());
  void* const stream = gpu->make_stream();
  fake().hold_streams(true);
  ASSERT_TRUE(
      device.value()
          ->fill(reinterpret_cast<std::byte*>(buffer.data()), std::byte{1}, 64, static_cast<StreamHandle*>(stream))
          .ok());
  EXPECT_FALSE(gpu->is_idle(stream));
  fake().hold_streams(false);
  EXPECT_TRUE(gpu->is_idle(stream));
  gpu->destroy_stream(stream);
}

TEST(PerfGpus, AMissingDriverIsASentence) {
  const FoundGpus found = find_gpus("/nonexistent/libcuda.so.1");
  EXPECT_EQ(found.gpus, nullptr);
  EXPECT_NE(found.problem, "");
}

// A failed call of the driver ends the program with the driver's sentence and nccl-tests' code.
TEST_F(PerfGpu, AFailedCallEndsTheProgram) {
  const std::unique_ptr<Gpu> gpu = gpus_->open(0);
  EXPECT_EXIT(
      {
        fake().fail(0, 2);  // no memory
        (void)gpu->memory().allocate(64);
      },
      testing::ExitedWithCode(2), "");
}

}  // namespace
}  // namespace trestle::perf
