// Segments and the registry behind trestleMemAlloc.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "memory/mem_alloc.h"
#include "memory/segment.h"

namespace trestle {
namespace {

TEST(Segment, IsZeroedAndSealed) {
  Result<Segment> made = Segment::create("trestle-test", 10'000, false);
  ASSERT_TRUE(made.ok()) << made.error().message;
  Segment segment = std::move(made).value();
  ASSERT_GE(segment.bytes(), 10'000u);
  for (size_t i = 0; i < segment.bytes(); ++i) ASSERT_EQ(segment.data()[i], std::byte{0});
  EXPECT_NE(ftruncate(segment.fd(), 0), 0) << "a peer could take the pages away from under a reader";
  EXPECT_NE(ftruncate(segment.fd(), 1 << 30), 0);
}

TEST(Segment, IsSharedThroughItsDescriptor) {
  Segment mine = std::move(Segment::create("trestle-test", 4096, false)).value();
  mine.data()[17] = std::byte{42};
  Result<Segment> theirs = Segment::adopt(UniqueFd(dup(mine.fd())), mine.bytes(), true);
  ASSERT_TRUE(theirs.ok()) << theirs.error().message;
  EXPECT_EQ(theirs.value().data()[17], std::byte{42});
  theirs.value().data()[18] = std::byte{43};
  EXPECT_EQ(mine.data()[18], std::byte{43});
}

TEST(Segment, RefusesMemoryThatCouldShrinkOrIsOfAnotherSize) {
  UniqueFd open(memfd_create("trestle-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(open.get(), 4096), 0);
  const Result<Segment> unsealed = Segment::adopt(std::move(open), 4096, true);
  ASSERT_FALSE(unsealed.ok());
  EXPECT_EQ(unsealed.error().code, Code::kRemoteError);
  Segment mine = std::move(Segment::create("trestle-test", 4096, false)).value();
  EXPECT_FALSE(Segment::adopt(UniqueFd(dup(mine.fd())), 8192, true).ok());
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd write_end(ends[1]);
  EXPECT_FALSE(Segment::adopt(UniqueFd(ends[0]), 4096, true).ok());
}

// Huge pages of the user (hugetlbfs). No page needs to be free, because the sender of the memory has them.
TEST(Segment, AdoptsMemoryInHugePagesOfEverySize) {
  size_t tried = 0;
  for (const unsigned power : {21u, 30u}) {
    const size_t page = size_t{1} << power;
    const unsigned of_size = power << MAP_HUGE_SHIFT;
    UniqueFd made(memfd_create("trestle-test", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | of_size));
    if (!made) continue;  // the kernel has no pages of this size
    ++tried;
    ASSERT_EQ(ftruncate(made.get(), static_cast<off_t>(2 * page)), 0);
    ASSERT_EQ(fcntl(made.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
    Result<Segment> theirs = Segment::adopt(std::move(made), 2 * page, false);
    ASSERT_TRUE(theirs.ok()) << theirs.error().message;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(theirs.value().data()) % page, 0u);
  }
  if (tried == 0) GTEST_SKIP() << "the kernel has no memfds of huge pages";
}

TEST(Segment, TellsTheSizeWhenThereIsNotEnough) {
  const Result<Segment> made = Segment::create("trestle-test", size_t{1} << 50, false);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kSystemError);
  EXPECT_NE(made.error().message.find(std::to_string(size_t{1} << 50)), std::string::npos) << made.error().message;
}

TEST(MemAlloc, GivesZeroedMemoryThatCanBeFound) {
  for (const size_t bytes : {size_t{1}, size_t{4096}, size_t{100'000}, size_t{5} << 20}) {
    Result<void*> made = mem_alloc(bytes);
    ASSERT_TRUE(made.ok()) << made.error().message;
    auto* const data = static_cast<std::byte*>(made.value());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
    for (size_t i = 0; i < bytes; i += 512) ASSERT_EQ(data[i], std::byte{0});
    const MemPlace begin = mem_find(data, bytes);
    ASSERT_NE(begin.id, 0u);
    EXPECT_EQ(begin.offset, 0u);
    const MemPlace last = mem_find(data + bytes - 1, 1);
    EXPECT_EQ(last.id, begin.id);
    EXPECT_EQ(last.offset, bytes - 1);
    EXPECT_EQ(mem_find(data, bytes + (size_t{4} << 20)).id, 0u) << "beyond the end";
    EXPECT_EQ(mem_find(data - 1, 1).id, 0u);
    const uint64_t frees = mem_frees();
    EXPECT_TRUE(mem_alive(begin.id));
    ASSERT_TRUE(mem_free(data).ok());
    EXPECT_EQ(mem_frees(), frees + 1);
    EXPECT_FALSE(mem_alive(begin.id));
    EXPECT_EQ(mem_find(data, 1).id, 0u);
  }
}

TEST(MemAlloc, RefusesWhatItDidNotGive) {
  int local = 0;
  EXPECT_EQ(mem_free(&local).error().code, Code::kInvalidArgument);
  void* const data = mem_alloc(8192).value();
  EXPECT_EQ(mem_free(static_cast<std::byte*>(data) + 1).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(mem_free(data).ok());
  EXPECT_EQ(mem_free(data).error().code, Code::kInvalidArgument) << "freed twice";
  EXPECT_TRUE(mem_free(nullptr).ok());
  EXPECT_EQ(mem_alloc(0).error().code, Code::kInvalidArgument);
  EXPECT_EQ(mem_alloc(SIZE_MAX).error().code, Code::kSystemError);
}

TEST(MemAlloc, FindsWhileOthersAllocateAndFree) {
  auto* const mine = static_cast<std::byte*>(mem_alloc(64 * 1024).value());
  const uint64_t id = mem_find(mine, 1).id;
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int t = 0; t < 2; ++t) {
    others.emplace_back([] {
      for (int round = 0; round < 50; ++round) {
        std::vector<void*> blocks;
        for (int i = 0; i < 20; ++i) blocks.push_back(mem_alloc(4096).value());
        for (void* block : blocks) {
          EXPECT_NE(mem_find(block, 4096).id, 0u);
          EXPECT_TRUE(mem_free(block).ok());
        }
      }
    });
  }
  std::thread reader([&] {
    while (!stop.load()) {
      const MemPlace place = mem_find(mine + 100, 1000);
      ASSERT_EQ(place.id, id);
      ASSERT_EQ(place.offset, 100u);
      std::this_thread::yield();
    }
  });
  for (std::thread& thread : others) thread.join();
  stop = true;
  reader.join();
  EXPECT_TRUE(mem_free(mine).ok());
}

}  // namespace
}  // namespace trestle
