// The kernels on a GPU against those of the CPU: every type, operator, number of sources and alignment, bit by bit.
#include <array>
#include <cstring>
#include <vector>

#include "base/rng.h"
#include "device/kernels.h"
#include "gpu/first_device.h"
#include "kernels/convert.h"
#include "kernels/scale.h"
#include "support/scalar_reference.h"

namespace trestle {
namespace {

constexpr size_t kMostSources = 9;
constexpr size_t kMostElements = 70'001;  // several blocks, and a rest
constexpr size_t kRoom = 64;              // before and behind each buffer
constexpr size_t kBufferBytes = kMostElements * 8 + 2 * kRoom;
constexpr std::byte kGuard{0xa5};

class GpuKernels : public OnFirstDevice {
 protected:
  void SetUp() override {
    OnFirstDevice::SetUp();
    if (IsSkipped()) return;
    auto kernels = DeviceKernels::create(*device_);
    ASSERT_TRUE(kernels.ok()) << kernels.error().message;
    kernels_ = std::move(kernels).value();
    // Pinned memory holds what goes to the device and comes back.
    host_ = device_->allocate_pinned(kBufferBytes).value();
    for (std::byte*& buffer : on_device_) buffer = device_->allocate(kBufferBytes).value();
    for (std::vector<std::byte>& buffer : buffers_) buffer.resize(kBufferBytes);
  }
  void TearDown() override {
    if (kernels_ != nullptr) {
      kernels_.reset();
      EXPECT_TRUE(device_->free_pinned(host_).ok());
      for (std::byte* const buffer : on_device_) EXPECT_TRUE(device_->free(buffer).ok());
    }
    OnFirstDevice::TearDown();
  }

  void to_device(size_t which) {
    std::memcpy(host_, buffers_[which].data(), kBufferBytes);
    ASSERT_TRUE(device_->copy(on_device_[which], host_, kBufferBytes, stream_).ok());
    finish();
  }
  void from_device(size_t which) {
    ASSERT_TRUE(device_->copy(host_, on_device_[which], kBufferBytes, stream_).ok());
    finish();
    std::memcpy(buffers_[which].data(), host_, kBufferBytes);
  }
  // Random bits, or for floats mostly numbers of usual size.
  void fill(size_t which, DataType type, bool modest) {
    for (std::byte& byte : buffers_[which]) byte = static_cast<std::byte>(rng_.next());
    if (!modest || !is_float(type)) return;
    std::vector<float> values(kBufferBytes / 8);
    for (float& value : values) value = static_cast<float>((rng_.uniform() - 0.5) * 8);
    if (type == DataType::kFloat64) {
      for (size_t i = 0; i < values.size(); ++i) {
        const double wide = static_cast<double>(values[i]) * 1.000000001;
        std::memcpy(buffers_[which].data() + i * sizeof wide, &wide, sizeof wide);
      }
      return;
    }
    narrow_from_float32(buffers_[which].data(), values.data(), values.size(), type);
  }

  // What a result may have in place of the CPU's NaN.
  enum class Nans {
    kEqual,
    kQuiet,  // the CPU's, quiet or not: compilers may make a plain float's NaN quiet that is handed on
    kAny,    // an addition, a multiplication or a division makes it
  };
  static Nans nans_of(const ReduceSpec& spec, size_t sources) {
    if (spec.average_over > 0) return Nans::kAny;
    if (sources == 1) return Nans::kEqual;
    const bool handed_on = spec.op == ReduceOp::kMax || spec.op == ReduceOp::kMin;
    if (!handed_on) return Nans::kAny;
    return size_of(spec.type) >= sizeof(float) ? Nans::kQuiet : Nans::kEqual;
  }
  static bool same_nan(const std::byte* got, const std::byte* expected, size_t size, Nans nans) {
    if (nans != Nans::kQuiet) return nans == Nans::kAny;
    const uint64_t quiet = size == sizeof(float) ? uint64_t{1} << 22 : uint64_t{1} << 51;
    uint64_t got_bits = 0;
    uint64_t expected_bits = 0;
    std::memcpy(&got_bits, got, size);
    std::memcpy(&expected_bits, expected, size);
    return (got_bits | quiet) == (expected_bits | quiet);
  }

  // Equal bits, but for NaNs as `nans` says.
  static testing::AssertionResult same(const std::byte* got, const std::byte* expected, size_t elements, DataType type,
                                       Nans nans) {
    const size_t size = size_of(type);
    if (std::memcmp(got, expected, elements * size) == 0) return testing::AssertionSuccess();
    for (size_t i = 0; i < elements; ++i) {
      if (std::memcmp(got + i * size, expected + i * size, size) == 0) continue;
      const bool are_nans = is_float(type) && reference::is_nan(got, i, type) && reference::is_nan(expected, i, type);
      if (are_nans && same_nan(got + i * size, expected + i * size, size, nans)) continue;
      return testing::AssertionFailure() << to_string(type) << ": element " << i << " of " << elements << " differs";
    }
    return testing::AssertionSuccess();
  }

  static constexpr size_t kResult = kMostSources;
  void check_reduce(const ReduceSpec& spec, size_t sources, size_t elements, size_t offset, size_t stride);

  Rng rng_{11};
  std::unique_ptr<DeviceKernels> kernels_;
  std::byte* host_ = nullptr;
  std::array<std::byte*, kMostSources + 1> on_device_{};
  std::array<std::vector<std::byte>, kMostSources + 1> buffers_;
};

// The sources begin `offset` bytes behind a multiple of 16, each `stride` bytes further than the one before.
void GpuKernels::check_reduce(const ReduceSpec& spec, size_t sources, size_t elements, size_t offset, size_t stride) {
  std::vector<const std::byte*> here;
  std::vector<const std::byte*> there;
  for (size_t s = 0; s < sources; ++s) {
    const size_t at = kRoom / 2 + (offset + s * stride) % 16;
    here.push_back(buffers_[s].data() + at);
    there.push_back(on_device_[s] + at);
  }
  const size_t to = kRoom / 2 + offset;
  const size_t bytes = elements * size_of(spec.type);
  std::vector<std::byte> expected(bytes + 1);
  reduce(expected.data(), here, elements, spec);
  ASSERT_TRUE(device_->fill(on_device_[kResult], kGuard, kBufferBytes, stream_).ok());
  const Status launched = kernels_->reduce(on_device_[kResult] + to, there, elements, spec, stream_);
  ASSERT_TRUE(launched.ok()) << launched.error().message;
  from_device(kResult);
  const std::byte* const got = buffers_[kResult].data() + to;
  ASSERT_TRUE(same(got, expected.data(), elements, spec.type, nans_of(spec, sources)))
      << to_string(spec.op) << " of " << sources << " sources, offset " << offset << ", stride " << stride
      << ", average over " << spec.average_over;
  for (size_t i = 1; i <= 16; ++i) {
    ASSERT_EQ(got[-static_cast<ptrdiff_t>(i)], kGuard) << "written before the result";
    ASSERT_EQ(got[bytes + i - 1], kGuard) << "written behind the result";
  }
}

TEST_F(GpuKernels, ReduceAsTheCpuDoes) {
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    for (const bool modest : {true, false}) {
      for (size_t s = 0; s < kMostSources; ++s) {
        fill(s, type, modest);
        to_device(s);
      }
      for (size_t o = 0; o < kReduceOps; ++o) {
        const auto op = static_cast<ReduceOp>(o);
        for (const size_t sources : {1, 2, 3, 4, 8, 9}) {
          std::vector<uint8_t> sums(sources);
          for (size_t s = 0; s < sources; ++s) sums[s] = s % 3 == 1;
          const uint32_t average_over = op == ReduceOp::kAvg ? static_cast<uint32_t>(sources) : 0U;
          const ReduceSpec spec{type, op, average_over, false, sums.data()};
          check_reduce(spec, sources, kMostElements - 20, 0, 0);
          check_reduce(spec, sources, 1000, size_of(type), 0);
          check_reduce(spec, sources, 1000, 0, size_of(type));
          check_reduce(spec, sources, 100, 1, 0);
          check_reduce(spec, sources, 1, 0, 0);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// Also those that overflow, and those whose results are the smallest.
TEST_F(GpuKernels, ReduceEveryPairOfFloatsOf8Bits) {
  constexpr size_t kPairs = 256 * 256;
  for (size_t i = 0; i < kPairs; ++i) {
    buffers_[0][kRoom / 2 + i] = static_cast<std::byte>(i / 256);
    buffers_[1][kRoom / 2 + i] = static_cast<std::byte>(i % 256);
  }
  for (const size_t s : {0, 1}) to_device(s);
  for (const DataType type : {DataType::kFloat8e4m3, DataType::kFloat8e5m2}) {
    for (size_t o = 0; o < kReduceOps; ++o) {
      const auto op = static_cast<ReduceOp>(o);
      check_reduce({type, op, op == ReduceOp::kAvg ? 2U : 0U, false}, 2, kPairs, 0, 0);
    }
  }
}

TEST_F(GpuKernels, ReduceIntoASource) {
  const ReduceSpec spec{DataType::kFloat32, ReduceOp::kSum, 0, false};
  for (const size_t sources : {2, 4, 8, 5}) {
    for (size_t s = 0; s < sources; ++s) {
      fill(s, spec.type, true);
      to_device(s);
    }
    std::vector<const std::byte*> here;
    std::vector<const std::byte*> there;
    for (size_t s = 0; s < sources; ++s) {
      here.push_back(buffers_[s].data());
      there.push_back(on_device_[s]);
    }
    std::vector<std::byte> expected(kMostElements * 4);
    reduce(expected.data(), here, kMostElements, spec);
    ASSERT_TRUE(kernels_->reduce(on_device_[1], there, kMostElements, spec, stream_).ok());
    from_device(1);
    ASSERT_TRUE(same(buffers_[1].data(), expected.data(), kMostElements, spec.type, Nans::kAny)) << sources;
  }
}

TEST_F(GpuKernels, ScaleAsTheCpuDoes) {
  for (size_t t = 0; t < kDataTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    fill(0, type, true);
    to_device(0);
    const std::byte* const factor = buffers_[0].data() + 16;
    for (const size_t offset : {size_t{0}, size_of(type), size_t{1}}) {
      std::vector<std::byte> expected(kMostElements * 8);
      scale(expected.data(), buffers_[0].data() + offset, 10'000, type, factor);
      ASSERT_TRUE(kernels_->scale(on_device_[1] + offset, on_device_[0] + offset, 10'000, type, factor, stream_).ok());
      from_device(1);
      ASSERT_TRUE(same(buffers_[1].data() + offset, expected.data(), 10'000, type, Nans::kAny)) << offset;
    }
  }
}

TEST_F(GpuKernels, CopyRowsOfAnyAlignment) {
  fill(0, DataType::kInt8, false);
  to_device(0);
  for (const auto& [offset, stride, bytes] :
       {std::array<size_t, 3>{0, 512, 500}, {4, 512, 500}, {3, 501, 400}, {0, 4096, 4096}}) {
    ASSERT_TRUE(device_->fill(on_device_[1], kGuard, kBufferBytes, stream_).ok());
    ASSERT_TRUE(
        kernels_->copy_rows(on_device_[1] + offset, 4160, on_device_[0] + offset, stride, bytes, 100, stream_).ok());
    from_device(1);
    for (size_t row = 0; row < 100; ++row) {
      const std::byte* const copied = buffers_[1].data() + offset + row * 4160;
      ASSERT_EQ(std::memcmp(copied, buffers_[0].data() + offset + row * stride, bytes), 0) << row;
      ASSERT_EQ(copied[bytes], kGuard) << row;
    }
  }
}

}  // namespace
}  // namespace trestle
