// DeviceKernels over the fake driver, which runs the CPU's kernels with the parameters of each launch: results, choice
// of the kernel, alignment. That the kernels themselves do the same is for tests/gpu.
#include "device/kernels.h"

#include <cuda.h>

#include <cstring>
#include <vector>

#include "base/rng.h"
#include "kernels/scale.h"
#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

constexpr uint64_t kElements = 1000;
constexpr size_t kMostBytes = 16 * 1024;

class Kernels : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    auto made = DeviceKernels::create(*device_);
    ASSERT_TRUE(made.ok()) << made.error().message;
    kernels_ = std::move(made).value();
    stream_ = device_->make_stream(false).value();
    Rng rng(7);
    for (std::byte* const buffer : {a_.data(), b_.data(), c_.data()}) {
      for (size_t i = 0; i < kMostBytes; ++i) buffer[i] = static_cast<std::byte>(rng.next());
    }
  }
  void TearDown() override {
    kernels_.reset();
    ASSERT_TRUE(device_->destroy_stream(stream_).ok());
    WithFakeDriver::TearDown();
  }
  void finish() { ASSERT_TRUE(device_->synchronize(stream_).ok()); }

  using Buffer = std::vector<std::byte>;
  Buffer a_ = Buffer(kMostBytes);
  Buffer b_ = Buffer(kMostBytes);
  Buffer c_ = Buffer(kMostBytes);
  Buffer result_ = Buffer(kMostBytes);
  Buffer expected_ = Buffer(kMostBytes);
  std::unique_ptr<DeviceKernels> kernels_;
  StreamHandle* stream_ = nullptr;
};

TEST_F(Kernels, ReduceEveryTypeWithEveryOperator) {
  for (size_t t = 0; t < kDataTypes; ++t) {
    for (size_t o = 0; o < kReduceOps; ++o) {
      constexpr uint8_t kSums[] = {0, 1, 0};
      const ReduceSpec spec{static_cast<DataType>(t), static_cast<ReduceOp>(o), o == 4 ? 3U : 0U, false, kSums};
      for (const size_t offset : {size_t{0}, size_of(spec.type), size_t{1}}) {
        const std::vector<const std::byte*> sources = {a_.data() + offset, b_.data() + offset, c_.data() + offset};
        for (size_t count = 1; count <= sources.size(); ++count) {
          reduce(expected_.data() + offset, {sources.data(), count}, kElements, spec);
          const Status done =
              kernels_->reduce(result_.data() + offset, {sources.data(), count}, kElements, spec, stream_);
          ASSERT_TRUE(done.ok()) << done.error().message;
          finish();
          ASSERT_EQ(std::memcmp(result_.data() + offset, expected_.data() + offset, kElements * size_of(spec.type)), 0)
              << to_string(spec.type) << " " << to_string(spec.op) << " of " << count;
          const std::string operation = spec.op == ReduceOp::kAvg ? "sum" : to_string(spec.op);
          const std::string kernel =
              std::string("reduce_") + to_string(spec.type) + "." + operation + (count == 2 ? "_2" : "_any");
          EXPECT_EQ(fake().launched(), count == 1 && spec.average_over == 0 ? "move.copy_rows" : kernel);
        }
      }
    }
  }
}

TEST_F(Kernels, RefuseMoreSourcesThanALaunchTakes) {
  const std::vector<const std::byte*> sources(kernels::kMostCudaSources + 1, a_.data());
  const ReduceSpec spec;
  EXPECT_EQ(kernels_->reduce(result_.data(), sources, 1, spec, stream_).error().code, Code::kInvalidUsage);
  EXPECT_TRUE(kernels_->reduce(result_.data(), {sources.data(), sources.size() - 1}, 1, spec, stream_).ok());
  finish();
}

TEST_F(Kernels, LaunchNothingForNoElements) {
  const std::array<const std::byte*, 2> sources = {a_.data(), b_.data()};
  const int calls = fake().calls();
  EXPECT_TRUE(kernels_->reduce(result_.data(), sources, 0, {}, stream_).ok());
  EXPECT_TRUE(kernels_->scale(result_.data(), a_.data(), 0, DataType::kFloat32, b_.data(), stream_).ok());
  EXPECT_TRUE(kernels_->copy_rows(result_.data(), 16, a_.data(), 16, 0, 3, stream_).ok());
  EXPECT_TRUE(kernels_->copy_rows(result_.data(), 16, a_.data(), 16, 3, 0, stream_).ok());
  EXPECT_EQ(fake().calls(), calls);
}

TEST_F(Kernels, LaunchNothingForOneSourceThatIsTheResult) {
  const std::array<const std::byte*, 1> sources = {result_.data()};
  const int calls = fake().calls();
  EXPECT_TRUE(kernels_->reduce(result_.data(), sources, kElements, {}, stream_).ok());
  EXPECT_EQ(fake().calls(), calls);
  const ReduceSpec average{DataType::kFloat32, ReduceOp::kAvg, 3, false};
  EXPECT_TRUE(kernels_->reduce(result_.data(), sources, kElements, average, stream_).ok());
  EXPECT_GT(fake().calls(), calls) << "it is divided";
  finish();
}

TEST_F(Kernels, ScaleEveryType) {
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    scale(expected_.data(), a_.data(), kElements, type, b_.data());
    ASSERT_TRUE(kernels_->scale(result_.data(), a_.data(), kElements, type, b_.data(), stream_).ok());
    finish();
    EXPECT_EQ(std::memcmp(result_.data(), expected_.data(), kElements * size_of(type)), 0) << to_string(type);
  }
}

TEST_F(Kernels, CopyRows) {
  for (const auto& [offset, stride] : {std::pair<size_t, size_t>{0, 128}, {4, 128}, {3, 101}}) {
    std::fill(result_.begin(), result_.end(), std::byte{});
    ASSERT_TRUE(kernels_->copy_rows(result_.data() + offset, 256, a_.data() + offset, stride, 100, 5, stream_).ok());
    finish();
    for (size_t row = 0; row < 5; ++row) {
      EXPECT_EQ(std::memcmp(result_.data() + offset + 256 * row, a_.data() + offset + stride * row, 100), 0);
      EXPECT_EQ(result_[offset + 256 * row + 100], std::byte{}) << "beyond the row";
    }
  }
}

TEST_F(Kernels, ThatCannotBeLoadedLeaveNothing) {
  kernels_.reset();
  const FakeObjects before = fake().objects();
  const int begin = fake().calls();
  { ASSERT_TRUE(DeviceKernels::create(*device_).ok()); }
  const int calls = fake().calls() - begin;
  EXPECT_GT(calls, 1000);
  for (int nth = 0; nth < 200; ++nth) {
    fake().fail(nth, CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT_FALSE(DeviceKernels::create(*device_).ok()) << nth;
    ASSERT_EQ(fake().objects(), before) << nth;
  }
}

}  // namespace
}  // namespace trestle
