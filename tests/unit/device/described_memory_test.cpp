// Memory of devices that other processes map by a descriptor (device/device.h).
#include <fcntl.h>

#include <cstring>
#include <string>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

constexpr uint64_t kBytes = 2 * kDescribedBlockBytes;
constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

class DescribedMemoryOfFake : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
  }
};

TEST_F(DescribedMemoryOfFake, IsTheSameForAllThatMapIt) {
  ASSERT_TRUE(device_->maps_descriptors());
  DescribedMemory own = device_->allocate_described(kBytes).value();
  std::byte* const seen = peer_->map_described(own.descriptor.get(), kBytes).value();
  ASSERT_NE(seen, own.memory);
  const PointerInfo info = devices_->look_at(seen + 5).value();
  EXPECT_EQ(info.kind, PointerKind::kDevice);
  EXPECT_EQ(info.device, 0) << "it is memory of the device that made it";
  EXPECT_EQ(info.base, seen);
  EXPECT_EQ(info.bytes, kBytes);
  EXPECT_FALSE(info.open_to_devices) << "each device needs leave";
  std::memset(own.memory, 7, kBytes);
  EXPECT_EQ(seen[kBytes - 1], std::byte{7});
  EXPECT_TRUE(device_->unmap_described(own.memory, kBytes).ok());
  EXPECT_EQ(seen[0], std::byte{7}) << "it is gone, although it is mapped";
  EXPECT_TRUE(peer_->unmap_described(seen, kBytes).ok());
}

// Devices of its own process use it without mapping it again; others only what they have mapped.
TEST_F(DescribedMemoryOfFake, IsForAllDevicesOfTheProcess) {
  StreamHandle* const stream = peer_->make_stream(false).value();
  const DescribedMemory own = device_->allocate_described(kBytes).value();
  EXPECT_TRUE(peer_->fill(own.memory, std::byte{3}, 100, stream).ok());
  EXPECT_TRUE(peer_->synchronize(stream).ok());
  EXPECT_EQ(own.memory[99], std::byte{3});
  EXPECT_TRUE(peer_->destroy_stream(stream).ok());
  EXPECT_TRUE(device_->unmap_described(own.memory, kBytes).ok());
}

TEST_F(DescribedMemoryOfFake, IsForOneDeviceWhereOthersDoNotReachIt) {
  fake().set_peer_access(false);
  const DescribedMemory own = device_->allocate_described(kBytes).value();
  EXPECT_FALSE(peer_->map_described(own.descriptor.get(), kBytes).ok());
  EXPECT_TRUE(device_->unmap_described(own.memory, kBytes).ok());
}

// A program that is started must not keep the memory.
TEST_F(DescribedMemoryOfFake, IsNotForProgramsThatAreStarted) {
  const DescribedMemory own = device_->allocate_described(kBytes).value();
  EXPECT_EQ(::fcntl(own.descriptor.get(), F_GETFD), FD_CLOEXEC);
  EXPECT_TRUE(device_->unmap_described(own.memory, kBytes).ok());
}

TEST_F(DescribedMemoryOfFake, IsNotLongerThanItWasMade) {
  const DescribedMemory own = device_->allocate_described(kBytes).value();
  EXPECT_FALSE(peer_->map_described(own.descriptor.get(), kBytes + kDescribedBlockBytes).ok());
  EXPECT_TRUE(device_->unmap_described(own.memory, kBytes).ok());
}

TEST_F(DescribedMemoryOfFake, IsNoOtherFile) {
  const UniqueFd other(::open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_FALSE(device_->map_described(other.get(), kBytes).ok());
  EXPECT_FALSE(device_->map_described(-1, kBytes).ok());
}

TEST_F(DescribedMemoryOfFake, IsRefusedWhereTheDeviceHasNone) {
  fake().set_descriptors(false);
  const auto other = devices_->open(0).value();
  EXPECT_FALSE(other->maps_descriptors());
  EXPECT_FALSE(other->allocate_described(kBytes).ok());
  EXPECT_FALSE(other->map_described(0, kBytes).ok());
}

// Whichever call of the driver fails, make() says so and leaves nothing behind, but for a handle that the driver could
// not be asked to take back. Returns how many calls there are; the last attempt succeeds, and unmaps what it made.
template <class Make, class Unmap>
int fail_each_call(FakeDriver& fake, Make&& make, Unmap&& unmap) {
  for (int nth = 0;; ++nth) {
    const FakeObjects before = fake.objects();
    fake.fail(nth, kOutOfMemory);
    const auto made = make();
    fake.fail(-1, 0);
    if (made.ok()) {
      EXPECT_TRUE(unmap(made.value()).ok());
      return nth;
    }
    FakeObjects left = fake.objects();
    EXPECT_LE(left.handles, before.handles + 1) << "call " << nth;
    left.handles = before.handles;
    EXPECT_EQ(left, before) << "call " << nth;
  }
}

TEST_F(DescribedMemoryOfFake, LeavesNothingBehindWhereTheDriverFails) {
  leaks_ = true;
  const int to_allocate = fail_each_call(
      fake(), [&] { return device_->allocate_described(kBytes); },
      [&](const DescribedMemory& made) { return device_->unmap_described(made.memory, kBytes); });
  EXPECT_GT(to_allocate, 5);
  const DescribedMemory own = device_->allocate_described(kBytes).value();
  const int to_map = fail_each_call(
      fake(), [&] { return peer_->map_described(own.descriptor.get(), kBytes); },
      [&](std::byte* mapped) { return peer_->unmap_described(mapped, kBytes); });
  EXPECT_GT(to_map, 3);
  EXPECT_TRUE(device_->unmap_described(own.memory, kBytes).ok());
}

}  // namespace
}  // namespace trestle
