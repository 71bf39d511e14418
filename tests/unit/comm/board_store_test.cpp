// Memory for boards of devices of several processes: lent to one communicator at a time, and again only when nobody
// writes there any more; and how other processes are told of it.
#include "comm/device/board_store.h"

#include <algorithm>
#include <string>

#include "unit/device/with_fake_driver.h"

namespace trestle {
namespace board_store_test {
namespace {

constexpr int32_t kRanks = 3;
constexpr uint64_t kMostBytes = 8192;
constexpr uint64_t kBytes = kernels::board_bytes(kMostBytes, kRanks);
constexpr uint32_t kOthers = 0b110;

class BoardStores : public WithFakeDriver {
 protected:
  void SetUp() override {
    WithFakeDriver::SetUp();
    open_devices_of_fake();
    leaks_ = true;  // memory stays to the end of the process
  }
  BoardStore::Lent lend(uint32_t others = kOthers, uint64_t most_bytes = kMostBytes) {
    return store().lend(kRanks, most_bytes, others, SharedBy::kTicket).value();
  }
  BoardStore& store() {
    if (store_ == nullptr) store_ = std::make_unique<BoardStore>(*device_);
    return *store_;
  }
  std::unique_ptr<BoardStore> store_;
};

TEST_F(BoardStores, LendAgainWhatEveryOtherProcessHasLeft) {
  auto first = lend();
  const uint64_t* const lines = first.memory->lines();
  EXPECT_NE(lend().memory->lines(), lines) << "one owner at a time";
  first.memory->leave(1);
  first.memory.reset();
  EXPECT_NE(lend().memory->lines(), lines) << "rank 2 may still write there";
  EXPECT_EQ(fake().objects().memory, 3) << "nobody has left the other two";
}

TEST_F(BoardStores, LendItCleared) {
  auto first = lend();
  uint64_t* const lines = first.memory->lines();
  first.memory->control().begun = 7;
  lines[100] = 1;
  first.memory->words()->stopped = 1;
  for (const int32_t rank : {1, 2}) first.memory->leave(rank);
  first.memory.reset();
  const auto second = lend();
  ASSERT_EQ(second.memory->lines(), lines);
  EXPECT_EQ(second.memory->control().begun, 0u);
  EXPECT_EQ(second.memory->words()->stopped, 0u);
  EXPECT_EQ(std::count(lines, lines + (kBytes - kernels::kBoardWordBytes) / sizeof *lines, 0u),
            static_cast<long>((kBytes - kernels::kBoardWordBytes) / sizeof *lines));
}

// A rank of the communicator that had it before says so late.
TEST_F(BoardStores, TakeNoWordOfAnEarlierOwnersForThatOfThisOne) {
  auto first = lend();
  for (const int32_t rank : {1, 2}) first.memory->leave(rank);
  const BoardMemory late(nullptr, first.memory->page(), first.address.lending, nullptr);
  const uint64_t* const lines = first.memory->lines();
  first.memory.reset();
  auto second = lend();
  ASSERT_EQ(second.memory->lines(), lines);
  EXPECT_NE(second.address.lending, first.address.lending);
  second.memory->leave(1);
  late.leave(2);
  second.memory.reset();
  EXPECT_NE(lend().memory->lines(), lines);
}

TEST_F(BoardStores, LendLargeMemoryForSmallBoardsOnly) {
  auto small = lend(0);
  const uint64_t* const lines = small.memory->lines();
  small.memory.reset();
  auto large = lend(0, 64 * kMostBytes);
  EXPECT_NE(large.memory->lines(), lines);
  EXPECT_EQ(lend(0).memory->lines(), lines);
}

// Whoever has it open keeps it. Its page is used again once nobody writes there.
TEST_F(BoardStores, FreeMemoryByDescriptorsThatIsNotLeft) {
  const auto lend_one = [&] { return store().lend(kRanks, kMostBytes, kOthers, SharedBy::kDescriptor).value(); };
  auto first = lend_one();
  ASSERT_GE(first.descriptor, 0);
  const BoardMemory late(nullptr, first.memory->page(), first.address.lending, nullptr);
  first.memory.reset();
  auto second = lend_one();
  EXPECT_EQ(fake().objects().memory, 1) << "the other one was not freed";
  EXPECT_NE(&second.memory->page(), &late.page());
  for (const int32_t rank : {1, 2}) late.leave(rank);
  const auto third = lend_one();
  EXPECT_EQ(&third.memory->page(), &late.page());
  EXPECT_NE(third.address.lending, first.address.lending);
}

TEST_F(BoardStores, RefuseAddressesThatAreNone) {
  for (const char* const text : {"", "here", "\x04\x00\x00\x00"}) EXPECT_FALSE(decode_board_address(text).ok());
  const auto mine = lend();
  DeviceUse use(*device_);
  std::string cut = encode(mine.address);
  cut.pop_back();
  EXPECT_FALSE(decode_board_address(cut).ok());
  EXPECT_EQ(encode(decode_board_address(encode(mine.address)).value()), encode(mine.address));
  BoardAddress outside = mine.address;
  outside.page.probe = outside.page.bytes - sizeof(BoardPage) + alignof(BoardPage);
  EXPECT_FALSE(open_board(use, outside, UniqueFd()).ok());
  BoardAddress crooked = mine.address;
  crooked.page.probe = 8;
  EXPECT_FALSE(open_board(use, crooked, UniqueFd()).ok());
  BoardAddress longer = mine.address;
  longer.page.bytes += size_t{1} << 20;
  EXPECT_FALSE(open_board(use, longer, UniqueFd()).ok());
}

// Pinned pages stay for later ones.
TEST_F(BoardStores, LeaveNothingWhereTheDriverFails) {
  const FakeObjects before = fake().objects();
  int failed = 0;
  for (int nth = 0; nth < 100; ++nth) {
    fake().fail(nth, 2);
    const auto lent = store().lend(kRanks, kMostBytes, kOthers, SharedBy::kTicket);
    if (lent.ok()) break;
    ++failed;
    EXPECT_LE(fake().objects().memory, before.memory + 1) << "what could not be cleared is lent again";
    EXPECT_LE(fake().objects().pinned, before.pinned + 1);
    EXPECT_EQ(fake().objects().streams, before.streams);
  }
  EXPECT_GT(failed, 0);
}

}  // namespace
}  // namespace board_store_test
}  // namespace trestle
