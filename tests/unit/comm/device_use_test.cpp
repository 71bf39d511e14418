// What the communicators of a process share of a device: nothing goes back to the driver while one of them uses it.
#include "comm/device/device_use.h"

#include <unistd.h>

#include <memory>
#include <new>

#include "comm/device/device_memory.h"
#include "comm/device/outbox_memory.h"
#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace device_use_test {
namespace {

class DeviceUses : public WithFakeDriver, public testing::WithParamInterface<SharedPlace> {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
  }
  int blocks() const { return GetParam() == SharedPlace::kDevice ? fake().objects().memory : fake().objects().pinned; }
};
INSTANTIATE_TEST_SUITE_P(Places, DeviceUses, testing::Values(SharedPlace::kDevice, SharedPlace::kHost),
                         [](const testing::TestParamInfo<SharedPlace>& info) {
                           return info.param == SharedPlace::kDevice ? "OfTheDevice" : "Pinned";
                         });

TEST_P(DeviceUses, GiveWhatACommunicatorNeedsNoMoreToOthers) {
  const int before = blocks();
  auto use = std::make_shared<DeviceUse>(*device_);
  auto first = std::make_unique<DeviceMemory>(use, GetParam());
  std::byte* const small = first->allocate(1000);
  std::byte* const large = first->allocate(100'000);
  EXPECT_EQ(blocks(), before + 2);
  first->free(small);
  fake().forbid_slow_calls(true);
  first.reset();
  DeviceMemory second(use, GetParam());
  EXPECT_EQ(second.allocate(60'000), large);
  EXPECT_EQ(second.allocate(900), small);
  fake().forbid_slow_calls(false);
  second.free(large);
  EXPECT_NE(second.allocate(100), large) << "a block that is much too large";
  EXPECT_EQ(second.allocate(100'000), large);
  EXPECT_EQ(blocks(), before + 3);
}

TEST_P(DeviceUses, GiveAllOfItBackAtTheEnd) {
  const int before = blocks();
  {
    auto use = std::make_shared<DeviceUse>(*device_);
    DeviceMemory one(use, GetParam());
    DeviceMemory other(use, GetParam());
    one.free(one.allocate(1000));
    EXPECT_NE(other.allocate(1000), nullptr);
    use.reset();
    EXPECT_EQ(blocks(), before + 2);
  }
  EXPECT_EQ(blocks(), before);
}

TEST_P(DeviceUses, HaveNoMemoryWhereTheDriverHasNone) {
  DeviceMemory memory(std::make_shared<DeviceUse>(*device_), GetParam());
  fake().refuse_memory(0);
  EXPECT_EQ(memory.allocate(1000), nullptr);
  EXPECT_NE(memory.allocate(1000), nullptr);
}

// Rather a block that is much too long than none.
TEST_P(DeviceUses, GiveWhatIsThereWhereTheDriverHasNone) {
  auto use = std::make_shared<DeviceUse>(*device_);
  std::byte* large = nullptr;
  {
    DeviceMemory first(use, GetParam());
    large = first.allocate(100'000);
  }
  DeviceMemory second(use, GetParam());
  fake().refuse_memory(0);
  EXPECT_EQ(second.allocate(1000), large);
}

class DeviceOpenings : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    leaks_ = true;  // outboxes stay to the end of the process
  }
};

// Pinning takes long, and unpinning may wait.
TEST_F(DeviceOpenings, ByATicketAreMadeOnce) {
  OutboxStore store(*device_, SharedPlace::kHost);
  const auto lent = store.lend(SharedBy::kTicket).value();
  const int pinned = fake().objects().pinned;
  {
    DeviceUse use(*device_);
    auto opened = use.open(SharedPlace::kHost, lent.address, UniqueFd()).value();
    const OpenedMemory* const one = opened.get();
    fake().forbid_slow_calls(true);
    opened.reset();
    EXPECT_EQ(use.open(SharedPlace::kHost, lent.address, UniqueFd()).value().get(), one);
    fake().forbid_slow_calls(false);
    EXPECT_EQ(fake().objects().pinned, pinned + 1);
  }
  EXPECT_EQ(fake().objects().pinned, pinned);
}

// Else the owner could not free it.
TEST_F(DeviceOpenings, ByADescriptorEndWithTheirUser) {
  OutboxStore store(*device_, SharedPlace::kDevice);
  const auto lent = store.lend(SharedBy::kDescriptor).value();
  const UniqueFd passed(::dup(lent.descriptor));
  DeviceUse use(*device_);
  auto opened = use.open(SharedPlace::kDevice, lent.address, passed).value();
  EXPECT_EQ(fake().objects().opened, 1);
  opened.reset();
  EXPECT_EQ(fake().objects().opened, 0);
}

}  // namespace
}  // namespace device_use_test
}  // namespace trestle
