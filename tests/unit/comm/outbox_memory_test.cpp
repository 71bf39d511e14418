// The memory of outboxes: lent to one owner at a time, kept for the next one, and never left behind where the driver
// fails; and how other processes are told of it.
#include "comm/device/outbox_memory.h"

#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace {

class Outboxes : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    leaks_ = true;  // blocks stay to the end of the process
  }
};

class OutboxesInBothPlaces : public Outboxes, public testing::WithParamInterface<SharedPlace> {
 protected:
  int blocks() const { return GetParam() == SharedPlace::kDevice ? fake().objects().memory : fake().objects().pinned; }
  static uint64_t bytes() { return OutboxStore::bytes_of(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Places, OutboxesInBothPlaces, testing::Values(SharedPlace::kDevice, SharedPlace::kHost),
                         [](const testing::TestParamInfo<SharedPlace>& info) {
                           return info.param == SharedPlace::kDevice ? "OfTheDevice" : "OfTheHost";
                         });

TEST_P(OutboxesInBothPlaces, AreUsedAgain) {
  OutboxStore store(*device_, GetParam());
  const int before = blocks();
  auto first = store.lend().value();
  const auto second = store.lend().value();
  EXPECT_NE(first->region().base, second->region().base);
  EXPECT_NE(store.address_of(*first).id, store.address_of(*second).id);
  EXPECT_EQ(store.address_of(*first).id, first->region().share.id);
  EXPECT_EQ(store.address_of(*first).bytes, bytes());
  EXPECT_EQ(first->region().on_device(), GetParam() == SharedPlace::kDevice);
  const Outbox* const one = first.get();
  first.reset();
  EXPECT_EQ(store.lend().value().get(), one);
  EXPECT_EQ(blocks(), before + 2);
}

// A peer may still read what a failed communicator has sent.
TEST_P(OutboxesInBothPlaces, NeverLendAgainWhatWasNotGivenBack) {
  OutboxStore store(*device_, GetParam());
  auto failed = store.lend().value();
  const Outbox* const one = failed.get();
  const std::byte* const room = failed->take(5 * Outbox::kUnitBytes);
  failed.reset();
  auto next = store.lend().value();
  ASSERT_EQ(next.get(), one);
  while (const std::byte* const other = next->take(Outbox::kUnitBytes))
    ASSERT_TRUE(other + Outbox::kUnitBytes <= room || other >= room + 5 * Outbox::kUnitBytes);
  next.reset();
  const auto other = store.lend().value();
  EXPECT_NE(other.get(), one) << "all of it is lent for ever";
  EXPECT_EQ(other->free_bytes(), bytes());
}

TEST_P(OutboxesInBothPlaces, LeaveNothingWhereTheDriverFails) {
  OutboxStore store(*device_, GetParam());
  const FakeObjects before = fake().objects();
  int failed = 0;
  for (int nth = 0; nth < 100; ++nth) {
    fake().fail(nth, 2);
    const auto lent = store.lend();
    if (lent.ok()) break;
    ++failed;
    EXPECT_EQ(fake().objects(), before) << "call " << nth;
  }
  EXPECT_GT(failed, 0);
}

TEST_F(Outboxes, OfMemoryThatCannotBeSharedAreRefused) {
  OutboxStore store(*device_, SharedPlace::kDevice);
  const FakeObjects before = fake().objects();
  fake().allocate_from_pools(true);
  EXPECT_FALSE(store.lend().ok());
  EXPECT_EQ(fake().objects(), before);
}

// Another process opens it by its descriptor; here it is this one.
TEST_F(Outboxes, OfHostMemoryAreOpenedByTheirDescriptors) {
  OutboxStore store(*device_, SharedPlace::kHost);
  const auto own = store.lend().value();
  const MemoryAddress address = store.address_of(*own);
  const int pinned = fake().objects().pinned;
  {
    const auto opened = OpenedMemory::open(*device_, SharedPlace::kHost, address);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const Region& region = opened.value()->region();
    EXPECT_NE(region.base, own->region().base);
    EXPECT_EQ(region.share.id, own->region().share.id);
    EXPECT_FALSE(region.on_device());
    own->region().base[12345] = std::byte{42};
    EXPECT_EQ(region.base[12345], std::byte{42});
    EXPECT_EQ(fake().objects().pinned, pinned + 1);
  }
  EXPECT_EQ(fake().objects().pinned, pinned);
}

TEST_F(Outboxes, OfHostMemoryThatAreNotThereAreRefused) {
  OutboxStore store(*device_, SharedPlace::kHost);
  const auto own = store.lend().value();
  const FakeObjects before = fake().objects();
  MemoryAddress longer = store.address_of(*own);
  longer.bytes += 1 << 20;
  MemoryAddress other = store.address_of(*own);
  const int32_t none[2] = {::getpid(), 1 << 20};
  std::memcpy(other.ticket.handle.data(), none, sizeof none);
  MemoryAddress no_memory = store.address_of(*own);
  const int32_t input[2] = {::getpid(), 0};
  std::memcpy(no_memory.ticket.handle.data(), input, sizeof input);
  for (const MemoryAddress& address : {longer, other, no_memory})
    EXPECT_FALSE(OpenedMemory::open(*device_, SharedPlace::kHost, address).ok());
  EXPECT_EQ(fake().objects(), before);
}

TEST(MemoryAddresses, SurviveTheWire) {
  MemoryAddress address;
  address.id = 17;
  address.bytes = uint64_t{64} << 20;
  address.probe = 1 << 16;
  address.ticket.offset = 4096;
  for (size_t i = 0; i < address.ticket.handle.size(); ++i) address.ticket.handle[i] = static_cast<std::byte>(i * 37);
  const auto read = decode_memory_address(encode(address));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().id, address.id);
  EXPECT_EQ(read.value().bytes, address.bytes);
  EXPECT_EQ(read.value().probe, address.probe);
  EXPECT_EQ(read.value().ticket.offset, address.ticket.offset);
  EXPECT_EQ(read.value().ticket.handle, address.ticket.handle);
}

TEST(MemoryAddresses, ThatAreNoneAreRefused) {
  const std::string good = encode({{}, 1, 64, 0});
  ASSERT_TRUE(decode_memory_address(good).ok());
  std::vector<std::string> bad = {good + "0", encode({{}, 0, 64, 0})};
  for (size_t bytes = 0; bytes < good.size(); ++bytes) bad.push_back(good.substr(0, bytes));
  for (const std::string& text : bad) {
    const auto read = decode_memory_address(text);
    ASSERT_FALSE(read.ok()) << text.size();
    EXPECT_EQ(read.error().code, Code::kRemoteError);
  }
}

}  // namespace
}  // namespace trestle
