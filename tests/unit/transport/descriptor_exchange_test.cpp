// Ranks of a host that give each other descriptors: each gets those of the others and stands for the same files; a rank
// that does not come, leaves or is a stranger is named.
#include "transport/shm/descriptor_exchange.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace trestle {
namespace descriptor_exchange_test {
namespace {

constexpr int64_t kGenerousNs = 60'000'000'000;

ino_t file_of(const UniqueFd& descriptor) {
  struct stat info {};
  EXPECT_EQ(::fstat(descriptor.get(), &info), 0);
  return info.st_ino;
}

UniqueFd new_file() {
  return UniqueFd(::memfd_create("passed", MFD_CLOEXEC));
}

HostKin kin_of(int32_t rank, int32_t ranks, std::byte key = std::byte{3}) {
  return root_kin({rank, ranks, "descriptors test", std::vector<std::byte>(32, key)});
}

struct Ranks {
  explicit Ranks(int32_t count) {
    for (int32_t r = 0; r < count; ++r) {
      kin.push_back(kin_of(r, count));
      all.push_back(DescriptorExchange::open(kin.back(), "a test", r, "memory").value());
      addresses.push_back(all.back()->address());
      names.push_back("rank " + std::to_string(r) + " (a)");
    }
  }
  auto run(int32_t rank, const DescriptorParcels& parcels, int64_t within_ns = kGenerousNs) {
    return all[static_cast<size_t>(rank)]->run(parcels, addresses, names, monotonic_clock().now_ns() + within_ns);
  }
  std::vector<HostKin> kin;
  std::vector<std::unique_ptr<DescriptorExchange>> all;
  std::vector<std::string> addresses;
  std::vector<std::string> names;
};

DescriptorParcels with_all_but(int32_t own, int32_t ranks, std::vector<int> descriptors) {
  std::vector<bool> others(static_cast<size_t>(ranks), true);
  others[static_cast<size_t>(own)] = false;
  return {std::move(descriptors), others, others};
}

TEST(DescriptorExchange, EachGetsWhatAllOthersGive) {
  constexpr int32_t kRanks = 4;
  Ranks ranks(kRanks);
  std::vector<UniqueFd> files;
  for (int32_t r = 0; r < kRanks; ++r) files.push_back(new_file());
  std::vector<std::thread> threads;
  for (int32_t r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      // Rank 2 has only the second one.
      const int first = r == 2 ? -1 : files[static_cast<size_t>(r)].get();
      const auto got = ranks.run(r, with_all_but(r, kRanks, {first, files[static_cast<size_t>(r)].get()}));
      ASSERT_TRUE(got.ok()) << got.error().message;
      for (int32_t peer = 0; peer < kRanks; ++peer) {
        const std::vector<UniqueFd>& theirs = got.value()[static_cast<size_t>(peer)];
        ASSERT_EQ(theirs.size(), peer == r ? 0u : 2u);
        if (peer == r) continue;
        EXPECT_EQ(bool(theirs[0]), peer != 2);
        EXPECT_EQ(file_of(theirs[1]), file_of(files[static_cast<size_t>(peer)]));
        EXPECT_EQ(::fcntl(theirs[1].get(), F_GETFD), FD_CLOEXEC);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(DescriptorExchange, NamesWhoDoesNotCome) {
  Ranks ranks(3);
  const auto got = ranks.run(0, {{}, {false, false, false}, {false, false, false}});
  ASSERT_TRUE(got.ok()) << "nobody is awaited";
  const auto late = ranks.run(1, with_all_but(1, 3, {-1}), 1'000'000);
  ASSERT_FALSE(late.ok());
  EXPECT_NE(late.error().message.find(" (a)"), std::string::npos) << late.error().message;
}

TEST(DescriptorExchange, NamesWhoHasLeft) {
  Ranks ranks(2);
  ranks.all[1].reset();
  const auto got = ranks.run(0, with_all_but(0, 2, {-1}));
  ASSERT_FALSE(got.ok());
  EXPECT_EQ(got.error().code, Code::kRemoteError);
  EXPECT_NE(got.error().message.find("rank 1 (a)"), std::string::npos) << got.error().message;
}

TEST(DescriptorExchange, GivesNothingToStrangers) {
  Ranks ranks(2);
  const HostKin wrong = kin_of(1, 2, std::byte{4});
  auto stranger = DescriptorExchange::open(wrong, "a test", 1, "memory").value();
  const UniqueFd file = new_file();
  std::thread first([&] { EXPECT_TRUE(ranks.run(0, with_all_but(0, 2, {file.get()})).ok()); });
  const auto refused =
      stranger->run(with_all_but(1, 2, {-1}), ranks.addresses, ranks.names, monotonic_clock().now_ns() + kGenerousNs);
  EXPECT_FALSE(refused.ok());
  EXPECT_TRUE(ranks.run(1, with_all_but(1, 2, {-1})).ok());
  first.join();
}

}  // namespace
}  // namespace descriptor_exchange_test
}  // namespace trestle
