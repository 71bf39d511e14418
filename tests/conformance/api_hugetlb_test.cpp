// Memory in huge pages of the user (memfd_create with MFD_HUGETLB), as ordinary buffers and registered.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <trestle/trestle.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <string>

#include "support/ranks.h"

namespace api {
namespace api_hugetlb_test {
namespace {

constexpr size_t kPage = size_t{2} << 20;
constexpr unsigned kOf2MiB = 21u << MAP_HUGE_SHIFT;
constexpr int kRanks = 4;
constexpr size_t kPages = 2;  // per rank
constexpr size_t kCount = kPages * kPage / sizeof(int32_t);

uint64_t number_in(const std::string& path) {
  uint64_t number = 0;
  std::ifstream(path) >> number;
  return number;
}

// Makes the kernel provide as many huge pages as the test needs, and restores the old number.
class Pool {
 public:
  Pool() : before_(number_in(kAllowance)) {
    const uint64_t enough = before_ + kRanks * kPages + 2;
    std::ofstream(kAllowance) << enough << std::flush;
  }
  ~Pool() { std::ofstream(kAllowance) << before_ << std::flush; }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Whether enough pages of 2 MiB are available at once.
  static bool has_pages() {
    const int fd = memfd_create("probe", MFD_CLOEXEC | MFD_HUGETLB | kOf2MiB);
    if (fd < 0) return false;
    constexpr size_t kBytes = kRanks * kPages * kPage;
    const bool sized = ftruncate(fd, kBytes) == 0;
    // mmap reserves the pages, so that no test gets SIGBUS.
    void* const data = sized ? mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (data != MAP_FAILED) munmap(data, kBytes);
    close(fd);
    return data != MAP_FAILED;
  }

 private:
  static constexpr const char* kAllowance = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages";
  const uint64_t before_;
};

class HugeMemory {
 public:
  explicit HugeMemory(size_t mapped_pages = kPages, size_t file_pages = kPages)
      : bytes_(mapped_pages * kPage),
        fd_(memfd_create("user", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB | kOf2MiB)) {
    EXPECT_GE(fd_, 0);
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(file_pages * kPage)), 0);
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~HugeMemory() {
    munmap(data_, bytes_);
    close(fd_);
  }
  HugeMemory(const HugeMemory&) = delete;
  HugeMemory& operator=(const HugeMemory&) = delete;
  int32_t* data() { return static_cast<int32_t*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  const size_t bytes_;
  const int fd_;
  void* data_ = nullptr;
};

uint64_t bytes_mapped(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_TRUE(ranks::succeeded(trestleCommGetStats(comm, &stats), comm));
  uint64_t sum = 0;
  for (const trestleDimensionStats_t& dimension : stats.dimension) sum += dimension.bytesMapped;
  return sum;
}

void all_reduce(const ranks::Process& process, trestleComm_t comm, int32_t* data, size_t count) {
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<int32_t>(i % 1000) * (process.rank + 1);
  ASSERT_TRUE(ranks::succeeded(trestleAllReduce(data, data, count, trestleInt32, trestleSum, comm, nullptr), comm));
  ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    wrong += data[i] != static_cast<int32_t>(i % 1000) * (process.ranks * (process.ranks + 1) / 2) ? 1 : 0;
  }
  EXPECT_EQ(wrong, 0u);
}

// Runs the body if there are enough pages for all ranks.
void with_huge_pages(const std::function<void(ranks::Process&, trestleComm_t)>& body) {
  if (!ranks::proofs()) GTEST_SKIP() << "no processes without proofs";
  const Pool pool;
  if (!Pool::has_pages()) {
    GTEST_SKIP() << "no " << kRanks * kPages << " huge pages of 2 MiB are free, and the kernel gives no more "
                 << "(as root, with nr_overcommit_hugepages)";
  }
  ranks::on_processes({.ranks = kRanks, .transport = "shm"}, body);
}

TEST(ApiHugetlb, OrdinaryBuffersAreCopied) {
  with_huge_pages([](ranks::Process& process, trestleComm_t comm) {
    HugeMemory memory;
    all_reduce(process, comm, memory.data(), kCount);
    EXPECT_EQ(bytes_mapped(comm), 0u);
  });
}

TEST(ApiHugetlb, RegisteredMemoryIsReadWhereItLies) {
  with_huge_pages([](ranks::Process& process, trestleComm_t comm) {
    HugeMemory memory;
    void* handle = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommRegister(comm, memory.data(), memory.bytes(), &handle), comm));
    for (const size_t count : {kCount, kCount / 3}) {
      const uint64_t before = bytes_mapped(comm);
      all_reduce(process, comm, memory.data(), count);
      EXPECT_GT(bytes_mapped(comm), before);
    }
    ASSERT_TRUE(ranks::succeeded(trestleCommDeregister(comm, handle), comm));
    const uint64_t before = bytes_mapped(comm);
    all_reduce(process, comm, memory.data(), kCount);
    EXPECT_EQ(bytes_mapped(comm), before);
  });
}

// The system has too few pages for the whole memfd. Only the registered part needs pages.
TEST(ApiHugetlb, ALongMemfdNeedsPagesForItsRegisteredPartOnly) {
  with_huge_pages([](ranks::Process& process, trestleComm_t comm) {
    HugeMemory memory(1, 4096);
    void* handle = nullptr;
    const size_t part = kPage - 4096;  // not a whole number of huge pages
    ASSERT_TRUE(ranks::succeeded(trestleCommRegister(comm, memory.data(), part, &handle), comm));
    all_reduce(process, comm, memory.data(), part / sizeof(int32_t));
    EXPECT_GT(bytes_mapped(comm), 0u);
    ASSERT_TRUE(ranks::succeeded(trestleCommDeregister(comm, handle), comm));
  });
}

}  // namespace
}  // namespace api_hugetlb_test
}  // namespace api
