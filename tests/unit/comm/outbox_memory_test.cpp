// The memory of outboxes: lent to one owner at a time, kept for the next one, and never left behind where the driver
// fails; and how other processes are told of it.
#include "comm/device/outbox_memory.h"

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

TEST_F(Outboxes, AreUsedAgain) {
  OutboxStore store(*device_);
  const int before = fake().objects().memory;
  auto first = store.lend().value();
  const auto second = store.lend().value();
  EXPECT_NE(first->region().base, second->region().base);
  EXPECT_NE(store.address_of(*first).id, store.address_of(*second).id);
  EXPECT_EQ(store.address_of(*first).id, first->region().share.id);
  EXPECT_EQ(store.address_of(*first).bytes, OutboxStore::kBytes);
  EXPECT_EQ(first->region().device, 0);
  const Outbox* const one = first.get();
  first.reset();
  EXPECT_EQ(store.lend().value().get(), one);
  EXPECT_EQ(fake().objects().memory, before + 2);
}

// A peer may still read what a failed communicator has sent.
TEST_F(Outboxes, NeverLendAgainWhatWasNotGivenBack) {
  OutboxStore store(*device_);
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
  EXPECT_EQ(other->free_bytes(), OutboxStore::kBytes);
}

TEST_F(Outboxes, LeaveNothingWhereTheDriverFails) {
  OutboxStore store(*device_);
  const FakeObjects before = fake().objects();
  int failed = 0;
  for (int nth = 0; nth < 100; ++nth) {
    fake().fail(nth, 2);
    const auto lent = store.lend();
    if (lent.ok()) break;
    ++failed;
    EXPECT_EQ(fake().objects(), before) << "call " << nth;
  }
  EXPECT_GT(failed, 2);
}

TEST_F(Outboxes, OfMemoryThatCannotBeSharedAreRefused) {
  OutboxStore store(*device_);
  const FakeObjects before = fake().objects();
  fake().allocate_from_pools(true);
  EXPECT_FALSE(store.lend().ok());
  EXPECT_EQ(fake().objects(), before);
}

TEST(OutboxAddresses, SurviveTheWire) {
  OutboxAddress address;
  address.id = 17;
  address.bytes = OutboxStore::kBytes;
  address.probe = 1 << 16;
  address.ticket.offset = 4096;
  for (size_t i = 0; i < address.ticket.handle.size(); ++i) address.ticket.handle[i] = static_cast<std::byte>(i * 37);
  const auto read = decode_outbox_address(encode(address));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read.value().id, address.id);
  EXPECT_EQ(read.value().bytes, address.bytes);
  EXPECT_EQ(read.value().probe, address.probe);
  EXPECT_EQ(read.value().ticket.offset, address.ticket.offset);
  EXPECT_EQ(read.value().ticket.handle, address.ticket.handle);
}

TEST(OutboxAddresses, ThatAreNoneAreRefused) {
  const std::string good = encode({{}, 1, 64, 0});
  ASSERT_TRUE(decode_outbox_address(good).ok());
  std::vector<std::string> bad = {good + "0", encode({{}, 0, 64, 0})};
  for (size_t bytes = 0; bytes < good.size(); ++bytes) bad.push_back(good.substr(0, bytes));
  for (const std::string& text : bad) {
    const auto read = decode_outbox_address(text);
    ASSERT_FALSE(read.ok()) << text.size();
    EXPECT_EQ(read.error().code, Code::kRemoteError);
  }
}

}  // namespace
}  // namespace trestle
