// A region knows where its bytes lie: in memory that peers can map, or not.
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "memory/mem_alloc.h"
#include "memory/region.h"
#include "memory/registrations.h"

namespace trestle {
namespace {

constexpr size_t kBytes = 64 * 1024;

TEST(Region, OfOrdinaryMemoryIsNotShared) {
  std::vector<std::byte> ordinary(kBytes);
  const Region region = look_at(ordinary.data(), kBytes, nullptr);
  EXPECT_EQ(region.base, ordinary.data());
  EXPECT_EQ(region.bytes, kBytes);
  EXPECT_FALSE(region.is_shared());
  EXPECT_EQ(region.place_of(ordinary.data(), 1).id, 0u);
}

TEST(Region, OfAnAllocationKnowsThePlaceOfItsParts) {
  auto* const memory = static_cast<std::byte*>(mem_alloc(kBytes).value());
  const Region region = look_at(memory + 100, kBytes - 200, nullptr);
  ASSERT_TRUE(region.is_shared());
  EXPECT_EQ(region.share.offset, 100u);
  const MemPlace part = region.place_of(memory + 1100, 10);
  EXPECT_EQ(part.id, region.share.id);
  EXPECT_EQ(part.offset, 1100u);
  EXPECT_EQ(region.place_of(memory + 100, kBytes - 200).id, region.share.id) << "all of it";
  EXPECT_EQ(region.place_of(memory + kBytes - 100, 0).id, region.share.id) << "nothing, at its end";
  ASSERT_TRUE(mem_free(memory).ok());
}

TEST(Region, HasNoPlaceForWhatIsBeyondIt) {
  auto* const memory = static_cast<std::byte*>(mem_alloc(kBytes).value());
  const Region region = look_at(memory + 100, 1000, nullptr);
  EXPECT_EQ(region.place_of(memory + 99, 1).id, 0u);
  EXPECT_EQ(region.place_of(memory + 100, 1001).id, 0u);
  EXPECT_EQ(region.place_of(memory + 1100, 1).id, 0u);
  EXPECT_EQ(region.place_of(memory + 1101, 0).id, 0u);
  ASSERT_TRUE(mem_free(memory).ok());
}

TEST(Region, ThatIsPartlyOutsideAnAllocationIsNotShared) {
  auto* const memory = static_cast<std::byte*>(mem_alloc(kBytes).value());
  EXPECT_FALSE(look_at(memory - 1, 2, nullptr).is_shared());
  EXPECT_FALSE(look_at(memory, kBytes + (size_t{4} << 20), nullptr).is_shared());
  EXPECT_FALSE(look_at(memory, 0, nullptr).is_shared()) << "a buffer that the call does not use";
  ASSERT_TRUE(mem_free(memory).ok());
  EXPECT_FALSE(look_at(memory, 1, nullptr).is_shared()) << "freed";
}

TEST(Region, MayLieInARegistration) {
  const int fd = memfd_create("trestle-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(ftruncate(fd, kBytes), 0);
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  auto* const memory = static_cast<std::byte*>(mapped);
  MemRegistrations registrations;
  const Result<uint64_t> id = registrations.add(memory + 4096, kBytes - 4096);
  ASSERT_TRUE(id.ok()) << id.error().message;
  const Region region = look_at(memory + 8192, 100, &registrations);
  EXPECT_EQ(region.share.id, id.value());
  EXPECT_EQ(region.share.offset, 8192u) << "in the file that peers map";
  EXPECT_FALSE(look_at(memory + 8192, 100, nullptr).is_shared()) << "registered with another communicator";
  EXPECT_FALSE(look_at(memory + 4000, 200, &registrations).is_shared()) << "not all of it is registered";
  ASSERT_TRUE(registrations.remove(id.value()).ok());
  EXPECT_FALSE(look_at(memory + 8192, 100, &registrations).is_shared());
  munmap(mapped, kBytes);
  close(fd);
}

}  // namespace
}  // namespace trestle
