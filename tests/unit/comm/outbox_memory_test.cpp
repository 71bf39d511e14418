// The memory of outboxes: lent to one owner at a time, kept for the next one, and never left behind where the driver
// fails; and how other processes are told of it.
#include "comm/device/outbox_memory.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace outbox_memory_test {
namespace outbox_memory_test {
namespace {

class Outboxes : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    leaks_ = true;  // blocks stay to the end of the process
  }
};

struct Way {
  const char* name;
  SharedPlace place;
  SharedBy by;
};

class OutboxesOfEveryKind : public Outboxes, public testing::WithParamInterface<Way> {
 protected:
  int blocks() const {
    return GetParam().place == SharedPlace::kDevice ? fake().objects().memory : fake().objects().pinned;
  }
  static uint64_t bytes() { return OutboxStore::bytes_of(GetParam().place); }
  OutboxStore::Lent lend() { return store().lend(GetParam().by).value(); }
  OutboxStore& store() {
    if (store_ == nullptr) store_ = std::make_unique<OutboxStore>(*device_, GetParam().place);
    return *store_;
  }
  std::unique_ptr<OutboxStore> store_;
};
INSTANTIATE_TEST_SUITE_P(Ways, OutboxesOfEveryKind,
                         testing::Values(Way{"OfTheDeviceByTicket", SharedPlace::kDevice, SharedBy::kTicket},
                                         Way{"OfTheDeviceByDescriptor", SharedPlace::kDevice, SharedBy::kDescriptor},
                                         Way{"OfTheHost", SharedPlace::kHost, SharedBy::kTicket}),
                         [](const testing::TestParamInfo<Way>& info) { return info.param.name; });

TEST_P(OutboxesOfEveryKind, AreUsedAgain) {
  const int before = blocks();
  auto first = lend();
  const auto second = lend();
  EXPECT_NE(first.outbox->region().base, second.outbox->region().base);
  EXPECT_NE(first.address.id, second.address.id);
  EXPECT_NE(first.address.nonce, second.address.nonce);
  EXPECT_EQ(first.address.id, first.outbox->region().share.id);
  EXPECT_EQ(first.address.bytes, bytes());
  EXPECT_EQ(first.address.by, GetParam().by);
  EXPECT_EQ(first.descriptor >= 0, GetParam().by == SharedBy::kDescriptor);
  EXPECT_EQ(first.outbox->region().on_device(), GetParam().place == SharedPlace::kDevice);
  const Outbox* const one = first.outbox.get();
  first.outbox.reset();
  EXPECT_EQ(lend().outbox.get(), one);
  EXPECT_EQ(blocks(), before + 2);
}

// A peer may still read what a failed communicator has sent. If it has the memory mapped by a descriptor, it keeps it.
TEST_P(OutboxesOfEveryKind, NeverLendAgainWhatWasNotGivenBack) {
  const int before = blocks();
  auto failed = lend();
  const Outbox* const one = failed.outbox.get();
  const uint64_t nonce = failed.address.nonce;
  const std::byte* const room = failed.outbox->take(5 * Outbox::kUnitBytes);
  failed.outbox.reset();
  auto next = lend();
  if (GetParam().by == SharedBy::kDescriptor) {
    EXPECT_NE(next.address.nonce, nonce);
    EXPECT_EQ(next.outbox->free_bytes(), bytes());
    EXPECT_EQ(blocks(), before + 1) << "the other one was not freed";
    return;
  }
  ASSERT_EQ(next.outbox.get(), one);
  while (const std::byte* const other = next.outbox->take(Outbox::kUnitBytes))
    ASSERT_TRUE(other + Outbox::kUnitBytes <= room || other >= room + 5 * Outbox::kUnitBytes);
  next.outbox.reset();
  const auto other = lend();
  EXPECT_NE(other.outbox.get(), one) << "all of it is lent for ever";
  EXPECT_EQ(other.outbox->free_bytes(), bytes());
}

// One by a descriptor is tried by a ticket then, but for errors of that.
TEST_P(OutboxesOfEveryKind, LeaveNothingWhereTheDriverFails) {
  const FakeObjects before = fake().objects();
  int failed = 0;
  for (int nth = 0; nth < 100; ++nth) {
    fake().fail(nth, 2);
    bool is_lent = false;
    bool tried_another = false;
    {
      const auto lent = store().lend(GetParam().by);
      is_lent = lent.ok();
      tried_another = is_lent && lent.value().address.by != GetParam().by;
    }
    if (is_lent && !tried_another) break;
    ++failed;
    if (tried_another) {
      EXPECT_EQ(fake().objects().memory, before.memory + 1) << "call " << nth;
      store_.reset();
      peer_.reset();
      device_.reset();
      devices_.reset();
      fake().reset();
      open_devices_of_fake();
      continue;
    }
    EXPECT_EQ(fake().objects(), before) << "call " << nth;
  }
  EXPECT_GT(failed, 0);
}

TEST_F(Outboxes, OfMemoryThatCannotBeSharedAreRefused) {
  fake().set_descriptors(false);
  const std::unique_ptr<Device> device = devices_->open(0).value();
  OutboxStore store(*device, SharedPlace::kDevice);
  const FakeObjects before = fake().objects();
  fake().allocate_from_pools(true);
  EXPECT_FALSE(store.lend(SharedBy::kTicket).ok());
  EXPECT_FALSE(store.lend(SharedBy::kDescriptor).ok());
  EXPECT_EQ(fake().objects(), before);
}

// Another process opens it by its descriptor; here it is this one.
TEST_F(Outboxes, OfDevicesAreMappedByTheirDescriptors) {
  OutboxStore store(*device_, SharedPlace::kDevice);
  const auto own = store.lend(SharedBy::kDescriptor).value();
  const UniqueFd passed(::dup(own.descriptor));
  EXPECT_FALSE(OpenedMemory::open(*device_, SharedPlace::kDevice, own.address, UniqueFd()).ok()) << "none has come";
  const int before = fake().objects().opened;
  {
    const auto opened = OpenedMemory::open(*device_, SharedPlace::kDevice, own.address, passed);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    const Region& region = opened.value()->region();
    EXPECT_NE(region.base, own.outbox->region().base);
    EXPECT_EQ(region.share.id, own.outbox->region().share.id);
    own.outbox->region().base[12345] = std::byte{42};
    EXPECT_EQ(region.base[12345], std::byte{42});
    EXPECT_EQ(fake().objects().opened, before + 1);
  }
  EXPECT_EQ(fake().objects().opened, before);
  MemoryAddress longer = own.address;
  longer.bytes += kDescribedBlockBytes;
  MemoryAddress odd = own.address;
  odd.bytes -= 1;
  for (const MemoryAddress& address : {longer, odd})
    EXPECT_FALSE(OpenedMemory::open(*device_, SharedPlace::kDevice, address, passed).ok());
}

// Another process opens it by its descriptor; here it is this one.
TEST_F(Outboxes, OfHostMemoryAreOpenedByTheirDescriptors) {
  OutboxStore store(*device_, SharedPlace::kHost);
  const auto lent = store.lend(SharedBy::kTicket).value();
  const auto& own = lent.outbox;
  const MemoryAddress address = lent.address;
  const int pinned = fake().objects().pinned;
  {
    const auto opened = OpenedMemory::open(*device_, SharedPlace::kHost, address, UniqueFd());
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
  const auto own = store.lend(SharedBy::kTicket).value();
  const FakeObjects before = fake().objects();
  MemoryAddress longer = own.address;
  longer.bytes += 1 << 20;
  MemoryAddress other = own.address;
  const int32_t none[2] = {::getpid(), 1 << 20};
  std::memcpy(other.ticket.handle.data(), none, sizeof none);
  MemoryAddress no_memory = own.address;
  const int32_t input[2] = {::getpid(), 0};
  std::memcpy(no_memory.ticket.handle.data(), input, sizeof input);
  for (const MemoryAddress& address : {longer, other, no_memory})
    EXPECT_FALSE(OpenedMemory::open(*device_, SharedPlace::kHost, address, UniqueFd()).ok());
  EXPECT_EQ(fake().objects(), before);
}

TEST(MemoryAddresses, SurviveTheWire) {
  MemoryAddress address;
  address.by = SharedBy::kDescriptor;
  address.nonce = 99;
  address.id = 17;
  address.bytes = uint64_t{64} << 20;
  address.probe = 1 << 16;
  address.ticket.offset = 4096;
  for (size_t i = 0; i < address.ticket.handle.size(); ++i) address.ticket.handle[i] = static_cast<std::byte>(i * 37);
  const auto read = decode_memory_address(encode(address));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().by, address.by);
  EXPECT_EQ(read.value().nonce, address.nonce);
  EXPECT_EQ(read.value().id, address.id);
  EXPECT_EQ(read.value().bytes, address.bytes);
  EXPECT_EQ(read.value().probe, address.probe);
  EXPECT_EQ(read.value().ticket.offset, address.ticket.offset);
  EXPECT_EQ(read.value().ticket.handle, address.ticket.handle);
}

TEST(MemoryAddresses, ThatAreNoneAreRefused) {
  const std::string good = encode(MemoryAddress{SharedBy::kTicket, {}, 1, 0, 64, 0});
  ASSERT_TRUE(decode_memory_address(good).ok());
  std::vector<std::string> bad = {good + "0", encode(MemoryAddress{SharedBy::kTicket, {}, 0, 0, 64, 0}),
                                  encode(MemoryAddress{static_cast<SharedBy>(2), {}, 1, 0, 64, 0})};
  for (size_t bytes = 0; bytes < good.size(); ++bytes) bad.push_back(good.substr(0, bytes));
  for (const std::string& text : bad) {
    const auto read = decode_memory_address(text);
    ASSERT_FALSE(read.ok()) << text.size();
    EXPECT_EQ(read.error().code, Code::kRemoteError);
  }
}

}  // namespace
}  // namespace outbox_memory_test
}  // namespace outbox_memory_test
}  // namespace trestle
