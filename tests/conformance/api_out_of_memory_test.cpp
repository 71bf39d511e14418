// One allocation of the library fails while a small job runs. A call that was refused for this reason can be repeated.
// A communicator that ends for this reason says so. Nothing hangs, and no process ends.
//
// The operators below replace those of the whole program, including the library's.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace {

std::atomic<long> allocations_left{-1};  // allocations before the one that fails; negative: none fails
thread_local bool is_test = false;       // allocations of the test itself do not count

bool fails() {
  return !is_test && allocations_left.load(std::memory_order_relaxed) >= 0 && allocations_left.fetch_sub(1) == 0;
}

void* allocate(std::size_t size, std::size_t alignment) {
  if (fails()) return nullptr;
  return std::aligned_alloc(alignment, (size / alignment + 1) * alignment);
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  if (void* memory = allocate(size, alignment)) return memory;
  throw std::bad_alloc();
}

constexpr std::size_t kAlignment = alignof(std::max_align_t);

}  // namespace

void* operator new(std::size_t size) {
  return allocate_or_throw(size, kAlignment);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, kAlignment);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace api {
namespace {

constexpr int kRanks = 2;
constexpr size_t kCount = 300'000;

template <class F>
trestleResult_t counted(F&& call) {
  is_test = false;
  const trestleResult_t result = call();
  is_test = true;
  return result;
}

// A call that finds no memory has had no effect, so the second attempt works.
template <class F>
trestleResult_t made_again(F&& call) {
  const trestleResult_t first = counted(call);
  return first == trestleSystemError ? counted(call) : first;
}

trestleResult_t run_job(trestleComm_t comm, std::vector<float>& data, std::vector<float>& sums) {
  for (const size_t count : {kCount, size_t{10}}) {
    const auto reduce = [&] {
      return trestleAllReduce(data.data(), sums.data(), count, trestleFloat32, trestleSum, comm, nullptr);
    };
    if (const trestleResult_t result = made_again(reduce); result != trestleSuccess) return result;
    if (const trestleResult_t result = made_again([&] { return trestleBarrier(comm, nullptr); });
        result != trestleSuccess)
      return result;
    if (const trestleResult_t result = made_again([&] { return trestleCommSynchronize(comm); });
        result != trestleSuccess)
      return result;
    for (size_t i = 0; i < count; ++i) {
      if (sums[i] != kRanks) return trestleInternalError;
    }
  }
  return trestleSuccess;
}

// All ranks are threads of one process, so that the failing allocation may be any rank's.
void expect_survived(const char* transport, long nth) {
  SCOPED_TRACE(testing::Message() << "allocation " << nth << " over " << transport);
  ranks::isolated([&] {
    is_test = true;
    std::barrier<> together(kRanks);
    ranks::run_threads(
        {.ranks = kRanks, .transport = transport, .timeout_ms = 20'000}, [&](int rank, trestleComm_t comm) {
          is_test = true;
          std::vector<float> data(kCount, 1.0f);
          std::vector<float> sums(kCount);
          together.arrive_and_wait();
          if (rank == 0) allocations_left.store(nth);
          together.arrive_and_wait();
          const trestleResult_t result = run_job(comm, data, sums);
          together.arrive_and_wait();
          allocations_left.store(-1);
          together.arrive_and_wait();
          if (result == trestleSuccess) return;
          EXPECT_EQ(result, trestleSystemError) << trestleGetErrorString(result) << ": " << trestleGetLastError(comm);
          EXPECT_TRUE(ranks::contains(trestleGetLastError(comm), "out of memory")) << trestleGetLastError(comm);
        });
  });
}

TEST(ApiOutOfMemory, NoAllocationThatFailsEndsOrHangsAProcess) {
  const long most = std::getenv("TRESTLE_TEST_FULL") != nullptr ? 2000 : 64;
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    for (long nth = 0; nth < most && !testing::Test::HasFailure(); ++nth) expect_survived(transport, nth);
  }
}

}  // namespace
}  // namespace api
