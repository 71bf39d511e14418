// Registered memory is read in place, results are exact, and memory that cannot be registered is refused.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <trestle/trestle.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace api_register_test {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMemory = 4 << 20;

int make_memfd(size_t bytes, unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING) {
  const int fd = memfd_create("user", flags);
  EXPECT_GE(fd, 0);
  EXPECT_EQ(ftruncate(fd, static_cast<off_t>(bytes)), 0);
  return fd;
}

// Memory as a user allocates it. Unmapped and closed at the end.
class Memory {
 public:
  explicit Memory(size_t bytes = kMemory, off_t offset = 0)
      : bytes_(bytes), fd_(make_memfd(bytes + static_cast<size_t>(offset))) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, offset);
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~Memory() {
    unmap();
    close(fd_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  void unmap() {
    if (data_ != nullptr) munmap(data_, bytes_);
    data_ = nullptr;
  }
  template <class T = char>
  T* at(size_t bytes = 0) {
    return reinterpret_cast<T*>(static_cast<char*>(data_) + bytes);
  }
  int fd() const { return fd_; }

 private:
  const size_t bytes_;
  const int fd_;
  void* data_ = nullptr;
};

void* enter(trestleComm_t comm, void* buffer, size_t bytes) {
  void* handle = nullptr;
  EXPECT_TRUE(ranks::succeeded(trestleCommRegister(comm, buffer, bytes, &handle), comm));
  return handle;
}

void leave(trestleComm_t comm, void* handle) {
  EXPECT_TRUE(ranks::succeeded(trestleCommDeregister(comm, handle), comm));
}

struct Traffic {
  uint64_t sent = 0;
  uint64_t mapped = 0;
};

Traffic traffic(trestleComm_t comm) {
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  EXPECT_TRUE(ranks::succeeded(trestleCommGetStats(comm, &stats), comm));
  Traffic sum;
  for (const trestleDimensionStats_t& dimension : stats.dimension) {
    sum.sent += dimension.bytesSent;
    sum.mapped += dimension.bytesMapped;
  }
  return sum;
}

// Runs an all-reduce whose result differs in every element. Returns its sent traffic.
Traffic all_reduce(const ranks::Process& process, trestleComm_t comm, int64_t* send, int64_t* recv, size_t count) {
  const int64_t n = process.ranks;
  for (size_t i = 0; i < count; ++i) send[i] = static_cast<int64_t>(i) * (process.rank + 1);
  const Traffic before = traffic(comm);
  EXPECT_TRUE(ranks::succeeded(trestleAllReduce(send, recv, count, trestleInt64, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) wrong += recv[i] != static_cast<int64_t>(i) * (n * (n + 1) / 2) ? 1 : 0;
  EXPECT_EQ(wrong, 0u);
  const Traffic after = traffic(comm);
  EXPECT_GT(after.sent, before.sent);
  return {after.sent - before.sent, after.mapped - before.mapped};
}

void expect_mapped(const Traffic& moved) {
  EXPECT_EQ(moved.mapped, moved.sent) << "some of it was copied";
}
void expect_copied(const Traffic& moved) {
  EXPECT_EQ(moved.mapped, 0u) << "some of it was mapped";
}

constexpr size_t kCount = 100'000;  // of int64_t
static_assert(2 * kCount * sizeof(int64_t) < kMemory);

void on_two_and_four(const std::function<void(ranks::Process&, trestleComm_t)>& body, const char* dims = "") {
  if (!ranks::proofs()) GTEST_SKIP() << "no processes without proofs";
  for (const int n : {2, 4}) {
    const bool grid = n == 4 && *dims != '\0';
    ranks::on_processes({.ranks = n, .dims = grid ? dims : "", .transport = "shm"}, body);
  }
}

TEST(ApiRegister, RegisteredMemoryIsReadWhereItLies) {
  on_two_and_four([](ranks::Process& process, trestleComm_t comm) {
    Memory memory;
    auto* const data = memory.at<int64_t>();
    expect_copied(all_reduce(process, comm, data, data, kCount));
    void* const handle = enter(comm, data, kMemory);
    uint64_t registered = 0;
    EXPECT_TRUE(ranks::succeeded(trestleCommMemStats(comm, trestleMemRegistered, &registered)));
    EXPECT_EQ(registered, kMemory);
    expect_mapped(all_reduce(process, comm, data, data, kCount));
    expect_mapped(all_reduce(process, comm, data + 17, data + 17, kCount));  // inside
    expect_mapped(all_reduce(process, comm, data, data + kCount, kCount));   // out of place
    leave(comm, handle);
    expect_copied(all_reduce(process, comm, data, data, kCount));
    EXPECT_TRUE(ranks::succeeded(trestleCommMemStats(comm, trestleMemRegistered, &registered)));
    EXPECT_EQ(registered, 0u);
    leave(comm, enter(comm, data, kMemory));
    void* const again = enter(comm, data, kMemory);
    EXPECT_NE(again, handle) << "handles are not used again";
    expect_mapped(all_reduce(process, comm, data, data, kCount));
  });
}

TEST(ApiRegister, EveryCollectiveIsExactOnRegisteredMemory) {
  on_two_and_four(
      [](ranks::Process& process, trestleComm_t comm) {
        const auto n = static_cast<size_t>(process.ranks);
        Memory in;
        Memory out;
        auto* const send = in.at<int32_t>();
        auto* const recv = out.at<int32_t>();
        enter(comm, send, kMemory);
        enter(comm, recv, kMemory);
        constexpr size_t kBlock = 20'000;
        const auto value = [](int rank, size_t i) {
          return static_cast<int32_t>(i * 7 + static_cast<size_t>(rank) * 3);
        };
        for (size_t i = 0; i < kBlock * n; ++i) send[i] = value(process.rank, i);
        ASSERT_TRUE(ranks::succeeded(trestleAllGather(send, recv, kBlock, trestleInt32, comm, nullptr)));
        ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
        size_t wrong = 0;
        for (size_t r = 0; r < n; ++r) {
          for (size_t i = 0; i < kBlock; ++i) wrong += recv[r * kBlock + i] != value(static_cast<int>(r), i) ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0u) << "all-gather";
        ASSERT_TRUE(ranks::succeeded(trestleAllToAll(send, recv, kBlock, trestleInt32, comm, nullptr)));
        ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
        const size_t mine = static_cast<size_t>(process.rank) * kBlock;
        for (size_t r = 0; r < n; ++r) {
          for (size_t i = 0; i < kBlock; ++i) {
            wrong += recv[r * kBlock + i] != value(static_cast<int>(r), mine + i) ? 1 : 0;
          }
        }
        EXPECT_EQ(wrong, 0u) << "all-to-all";
        ASSERT_TRUE(
            ranks::succeeded(trestleReduceScatter(send, recv, kBlock, trestleInt32, trestleMax, comm, nullptr)));
        ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
        for (size_t i = 0; i < kBlock; ++i) wrong += recv[i] != value(process.ranks - 1, mine + i) ? 1 : 0;
        EXPECT_EQ(wrong, 0u) << "reduce-scatter";
        ASSERT_TRUE(ranks::succeeded(trestleBroadcast(send, recv, kBlock, trestleInt32, 1, comm, nullptr)));
        ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
        for (size_t i = 0; i < kBlock; ++i) wrong += recv[i] != value(1, i) ? 1 : 0;
        EXPECT_EQ(wrong, 0u) << "broadcast";
        EXPECT_GT(traffic(comm).mapped, kBlock * sizeof(int32_t));
      },
      "2x2");
}

TEST(ApiRegister, TwoRegistrationsOfOneMemfdAndAnOffset) {
  on_two_and_four([](ranks::Process& process, trestleComm_t comm) {
    Memory memory(kMemory, 16 * kPage);
    auto* const data = memory.at<int64_t>();
    const size_t half = kMemory / 2;
    void* const first = enter(comm, data, half);
    void* const second = enter(comm, memory.at(half), half);
    EXPECT_NE(first, second);
    auto* const upper = memory.at<int64_t>(half);
    expect_mapped(all_reduce(process, comm, data, upper, kCount));
    expect_mapped(all_reduce(process, comm, upper + 3, data, kCount));
    leave(comm, first);
    expect_mapped(all_reduce(process, comm, upper, upper, kCount));
    expect_copied(all_reduce(process, comm, data, data, kCount));
    close(dup(memory.fd()));
    leave(comm, second);
  });
}

TEST(ApiRegister, TheDescriptorMayBeClosedAndTheMemfdMayGrow) {
  on_two_and_four([](ranks::Process& process, trestleComm_t comm) {
    const int fd = make_memfd(kMemory);
    auto* const data = static_cast<int64_t*>(mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    void* const handle = enter(comm, data, kMemory);
    EXPECT_NE(ftruncate(fd, 0), 0) << "it is sealed";
    EXPECT_EQ(ftruncate(fd, 2 * kMemory), 0);
    close(fd);
    expect_mapped(all_reduce(process, comm, data, data, kCount));
    leave(comm, handle);
    munmap(data, kMemory);
  });
}

TEST(ApiRegister, RequestsThatWerePlannedBeforeGoOn) {
  on_two_and_four([](ranks::Process& process, trestleComm_t comm) {
    Memory memory;
    auto* const data = memory.at<int64_t>();
    trestleRequest_t request = nullptr;
    ASSERT_TRUE(ranks::succeeded(
        trestleAllReduceStartInit(data, data, kCount, trestleInt64, trestleSum, comm, nullptr, &request)));
    void* handle = nullptr;
    for (int round = 0; round < 3; ++round) {
      if (round == 1) handle = enter(comm, data, kMemory);
      if (round == 2) leave(comm, handle);
      for (size_t i = 0; i < kCount; ++i) data[i] = static_cast<int64_t>(i) + process.rank;
      const Traffic before = traffic(comm);
      ASSERT_TRUE(ranks::succeeded(trestleRequestStart(request)));
      ASSERT_TRUE(ranks::succeeded(trestleAllReduceFinish(request, nullptr)));
      ASSERT_TRUE(ranks::succeeded(trestleRequestWait(request)));
      const int64_t n = process.ranks;
      size_t wrong = 0;
      for (size_t i = 0; i < kCount; ++i) {
        wrong += data[i] != static_cast<int64_t>(i) * n + n * (n - 1) / 2 ? 1 : 0;
      }
      EXPECT_EQ(wrong, 0u) << round;
      EXPECT_EQ(traffic(comm).mapped != before.mapped, round == 1) << round;
    }
    EXPECT_TRUE(ranks::succeeded(trestleRequestFree(request)));
  });
}

// Results are right even if other memory is mapped at the addresses of registered memory that was unmapped.
TEST(ApiRegister, UnmappedMemoryIsNotReadAnyMore) {
  on_two_and_four([](ranks::Process& process, trestleComm_t comm) {
    Memory memory;
    auto* const data = memory.at<int64_t>();
    void* const handle = enter(comm, data, kMemory);
    expect_mapped(all_reduce(process, comm, data, data, kCount));
    memory.unmap();
    void* const other = mmap(data, kMemory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    ASSERT_EQ(other, data);
    expect_copied(all_reduce(process, comm, data, data, kCount));
    expect_copied(all_reduce(process, comm, data, data, kCount));
    munmap(other, kMemory);
    const int fd = make_memfd(kMemory);
    ASSERT_EQ(mmap(data, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0), data);
    expect_copied(all_reduce(process, comm, data, data, kCount));
    leave(comm, handle);
    enter(comm, data, kMemory);
    expect_mapped(all_reduce(process, comm, data, data, kCount));
    munmap(data, kMemory);
    close(fd);
  });
}

trestleResult_t attempt(trestleComm_t comm, void* buffer, size_t bytes) {
  void* handle = nullptr;
  const trestleResult_t result = trestleCommRegister(comm, buffer, bytes, &handle);
  EXPECT_EQ(handle, nullptr);
  return result;
}

#define EXPECT_REFUSED(call, code, ...) EXPECT_TRUE(ranks::refused(call, code, {__VA_ARGS__}))

TEST(ApiRegister, RefusesMemoryOfOtherKinds) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    Memory memory(8 * kPage);
    void* handle = nullptr;
    const auto invalid = trestleInvalidArgument;
    EXPECT_REFUSED(trestleCommRegister(nullptr, memory.at(), kPage, &handle), invalid, "comm is NULL");
    EXPECT_REFUSED(trestleCommRegister(comm, nullptr, kPage, &handle), invalid, "buff is NULL");
    EXPECT_REFUSED(trestleCommRegister(comm, memory.at(), kPage, nullptr), invalid, "handle is NULL");
    EXPECT_REFUSED(attempt(comm, memory.at(), 0), invalid, "0 bytes");
    EXPECT_REFUSED(attempt(comm, memory.at(), SIZE_MAX), invalid, "end of the addresses");
    EXPECT_REFUSED(attempt(comm, memory.at(), 9 * kPage), invalid, "beyond the end of its mapping", "32768 bytes");
    std::vector<char> heap(2 * kPage);
    EXPECT_REFUSED(attempt(comm, heap.data(), kPage), invalid, "anonymous", "trestleMemAlloc");
    void* const anonymous = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_REFUSED(attempt(comm, anonymous, kPage), invalid, "without a descriptor", "memfd_create");
    munmap(anonymous, kPage);
    // Not at that address: another thread may have mapped something there. The kernel gives low ones to nobody unasked.
    auto* const unmapped = reinterpret_cast<void*>(16 * kPage);
    EXPECT_REFUSED(attempt(comm, unmapped, kPage), invalid, "nothing is mapped", "freed");
    void* const copy = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE, memory.fd(), 0);
    EXPECT_REFUSED(attempt(comm, copy, kPage), invalid, "private", "MAP_SHARED");
    munmap(copy, kPage);
    void* const constant = mmap(nullptr, kPage, PROT_READ, MAP_SHARED, memory.fd(), 0);
    EXPECT_REFUSED(attempt(comm, constant, kPage), invalid, "reading only", "PROT_WRITE");
    munmap(constant, kPage);
    char name[] = "/tmp/trestle-register-XXXXXX";
    const int file = mkstemp(name);
    ASSERT_EQ(ftruncate(file, kPage), 0);
    void* const of_file = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_REFUSED(attempt(comm, of_file, kPage), invalid, name, "truncated");
    munmap(of_file, kPage);
    close(file);
    unlink(name);
  });
}

TEST(ApiRegister, RefusesMemfdsThatPeersCouldNotRelyOn) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    const int unsealed = make_memfd(kPage, MFD_CLOEXEC);
    void* const shrinks = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, unsealed, 0);
    EXPECT_REFUSED(attempt(comm, shrinks, kPage), trestleInvalidArgument, "shrink", "MFD_ALLOW_SEALING");
    close(unsealed);
    EXPECT_REFUSED(attempt(comm, shrinks, kPage), trestleInvalidArgument, "descriptor was closed");
    munmap(shrinks, kPage);
    const int shorter = make_memfd(kPage);
    void* const beyond = mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, shorter, 0);
    EXPECT_REFUSED(attempt(comm, beyond, 2 * kPage), trestleInvalidArgument, "end of its memfd", "4096");
    munmap(beyond, 4 * kPage);
    close(shorter);
    const int two = make_memfd(4 * kPage);
    char* const split = static_cast<char*>(mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, two, 0));
    ASSERT_EQ(mmap(split + kPage, kPage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, two, 3 * kPage),
              split + kPage);
    EXPECT_REFUSED(attempt(comm, split, 2 * kPage), trestleInvalidArgument, "each mapping by itself");
    munmap(split, 4 * kPage);
    close(two);
  });
}

TEST(ApiRegister, RefusesOverlapsAndForeignHandles) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    Memory memory(8 * kPage);
    void* const handle = enter(comm, memory.at(kPage), 2 * kPage);
    EXPECT_REFUSED(attempt(comm, memory.at(), 2 * kPage), trestleInvalidUsage, "overlaps");
    EXPECT_REFUSED(attempt(comm, memory.at(2 * kPage), kPage), trestleInvalidUsage, "overlaps");
    EXPECT_REFUSED(attempt(comm, memory.at(kPage), 2 * kPage), trestleInvalidUsage, "overlaps");
    void* const before = enter(comm, memory.at(), kPage);
    void* const after = enter(comm, memory.at(3 * kPage), kPage);
    void* allocated = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleMemAlloc(&allocated, kPage)));
    EXPECT_REFUSED(attempt(comm, allocated, kPage), trestleInvalidUsage, "trestleMemAlloc", "unregistered");
    ASSERT_TRUE(ranks::succeeded(trestleMemFree(allocated)));
    trestleComm_t other = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAll(&other, 1, nullptr)));
    EXPECT_REFUSED(trestleCommDeregister(other, handle), trestleInvalidArgument, "another communicator's");
    leave(other, enter(other, memory.at(kPage), 2 * kPage));  // each communicator has its own registrations
    enter(other, memory.at(), kPage);                         // ends with the communicator
    ASSERT_TRUE(ranks::succeeded(trestleCommDestroy(other)));
    leave(comm, handle);
    EXPECT_REFUSED(trestleCommDeregister(comm, handle), trestleInvalidArgument, "deregistered before");
    EXPECT_REFUSED(trestleCommDeregister(comm, nullptr), trestleInvalidArgument, "handle is NULL");
    EXPECT_REFUSED(trestleCommDeregister(comm, memory.at()), trestleInvalidArgument, "handle");
    leave(comm, after);
    leave(comm, before);
  });
}

TEST(ApiRegister, IsNotEndedUnderARunningOperation) {
  static std::atomic<bool> refused;
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    Memory memory;
    void* const handle = enter(comm, memory.at(), kMemory);
    if (rank == 0) {
      ASSERT_TRUE(ranks::succeeded(trestleRecv(memory.at(), 1000, trestleInt8, 1, comm, nullptr)));
      EXPECT_REFUSED(trestleCommDeregister(comm, handle), trestleInvalidUsage, "synchronize");
      refused = true;
    } else {
      ranks::wait_until([] { return refused.load(); });
      ASSERT_TRUE(ranks::succeeded(trestleSend(memory.at(), 1000, trestleInt8, 0, comm, nullptr)));
    }
    ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
    leave(comm, handle);
  });
}

TEST(ApiRegister, AFailedCommunicatorLetsGo) {
  ranks::on_threads(ranks::patient({.ranks = 2, .timeout_ms = 200}), [](int rank, trestleComm_t comm) {
    Memory memory;
    void* const handle = enter(comm, memory.at(), kMemory);
    const trestleResult_t result = trestleRecv(memory.at(), 1000, trestleInt8, 1 - rank, comm, nullptr);
    if (result == trestleSuccess) {
      EXPECT_NE(trestleCommSynchronize(comm), trestleSuccess);
    }
    EXPECT_NE(attempt(comm, memory.at(), kPage), trestleSuccess) << "it takes no more calls";
    leave(comm, handle);
  });
}

}  // namespace
}  // namespace api_register_test
}  // namespace api
