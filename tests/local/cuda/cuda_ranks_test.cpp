// Several ranks of one process on devices: what they share, and what becomes of ranks that differ.
#include <algorithm>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_ranks_test {
namespace {

constexpr int kOutOfMemory = 2;  // CUDA_ERROR_OUT_OF_MEMORY

// Communicators of one rank each, all made at the same time.
std::vector<trestleComm_t> made_together(size_t count, int device) {
  std::vector<trestleComm_t> comms(count);
  std::vector<std::thread> threads;
  for (trestleComm_t& comm : comms) {
    threads.emplace_back([&comm, device] { EXPECT_TRUE(succeeded(trestleCommInitAll(&comm, 1, &device))); });
  }
  for (std::thread& thread : threads) thread.join();
  return comms;
}

// ---- the library's code on a device

TEST(CudaRanks, OfADeviceLoadItsCodeOnce) {
  ranks::isolated([] {
    Gpu gpu;
    const auto first = communicators({0});
    const int images = driver().loads();
    EXPECT_GT(images, 0);
    const auto many = communicators({0, 0, 0});
    trestleComm_t split = nullptr;
    ASSERT_TRUE(succeeded(trestleCommSplit(first[0], 0, 0, &split, nullptr)));
    EXPECT_EQ(driver().loads(), images) << "more ranks, and a split";
    const auto other = communicators({1});
    EXPECT_EQ(driver().loads(), 2 * images) << "the other device has its own";
    EXPECT_EQ(driver().objects().modules, 2 * images);
    destroy(first);
    destroy(many);
    EXPECT_EQ(driver().objects().modules, 2 * images) << "the split still uses it";
    destroy({split});
    EXPECT_EQ(driver().objects().modules, images) << "the last user unloads it";
    destroy(other);
    EXPECT_EQ(driver().objects().modules, 0);
    const int contexts = driver().objects().contexts;
    destroy(communicators({0}));
    EXPECT_EQ(driver().loads(), 3 * images);
    EXPECT_EQ(driver().objects().contexts, contexts) << "the device stays open";
  });
}

TEST(CudaRanks, ThatComeTogetherLoadTheCodeOnceToo) {
  ranks::isolated([] {
    Gpu gpu;
    destroy(communicators({0}));
    const int images = driver().loads();
    const auto comms = made_together(6, 0);
    EXPECT_EQ(driver().loads(), 2 * images);
    std::vector<std::thread> threads;
    for (trestleComm_t comm : comms) threads.emplace_back([comm] { destroy({comm}); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(driver().objects().modules, 0);
  });
}

// A failure to load is the one communicator's, and the next one tries again.
TEST(CudaRanks, ThatCannotLoadTheCodeSaySoAndLeaveNothing) {
  ranks::isolated([] {
    Gpu gpu;
    destroy(communicators({0}));
    const int device = 0;
    trestleComm_t comm = nullptr;
    driver().fail(0, kOutOfMemory);
    EXPECT_TRUE(refused(trestleCommInitAll(&comm, 1, &device), trestleSystemError, {"device 0", "cuModuleLoadData"}));
    EXPECT_EQ(driver().objects().modules, 0);
    destroy(communicators({0}));
  });
}

// ---- some ranks have a device

float* memory_of(Gpu& gpu, int index, size_t count, float value) {
  auto* const memory = reinterpret_cast<float*>(gpu.device(index).allocate(count * sizeof(float)).value());
  std::fill_n(memory, count, value);
  return memory;
}

trestleResult_t sum_in_place(float* buffer, size_t count, trestleComm_t comm) {
  return trestleAllReduce(buffer, buffer, count, trestleFloat32, trestleSum, comm, nullptr);
}

// More and less than what small calls carry.
constexpr size_t kCounts[] = {3, 100'000};

TEST(CudaRanks, WithAndWithoutADeviceAddHostMemory) {
  ranks::isolated(
      [] {
        Gpu gpu;
        const auto comms = communicators({0, -1, 1});
        for (const size_t count : kCounts) {
          std::vector<float> first(count, 1), second(count, 2);
          float* const buffers[] = {first.data(), second.data(), gpu.pinned(count, 4)};
          ASSERT_TRUE(succeeded(trestleGroupStart()));
          for (int r = 0; r < 3; ++r) ASSERT_TRUE(succeeded(sum_in_place(buffers[r], count, comms[r])));
          ASSERT_TRUE(succeeded(trestleGroupEnd()));
          for (int r = 0; r < 3; ++r) {
            ASSERT_TRUE(succeeded(trestleCommSynchronize(comms[r])));
            EXPECT_EQ(std::count(buffers[r], buffers[r] + count, 7.0F), count);
          }
        }
        destroy(comms);
      },
      {{"TRESTLE_CHECK", "1"}});
}

// One rank's data lies on its device, the other one has none: the call fails on both, and neither waits.
TEST(CudaRanks, ThatDoNotAgreeWhereTheDataLiesAllFail) {
  for (const char* const check : {"0", "1"}) {
    for (const size_t count : kCounts) {
      for (const int first : {0, 1}) {
        SCOPED_TRACE(testing::Message() << "TRESTLE_CHECK=" << check << ", " << count << " elements, rank " << first
                                        << " has a device");
        ranks::isolated(
            [&] {
              Gpu gpu;
              const auto comms = communicators(first == 0 ? std::vector{0, -1} : std::vector{-1, 0});
              std::vector<float> host(count, 1);
              float* const device = memory_of(gpu, 0, count, 2);
              std::vector<std::thread> threads;
              for (int r = 0; r < 2; ++r) {
                threads.emplace_back([&, r] {
                  const trestleResult_t issued = sum_in_place(r == first ? device : host.data(), count, comms[r]);
                  const trestleResult_t ended = issued != trestleSuccess ? issued : trestleCommSynchronize(comms[r]);
                  EXPECT_NE(ended, trestleSuccess);
                  const std::string sentence = trestleGetLastError(comms[r]);
                  EXPECT_TRUE(ranks::contains(sentence, "allreduce")) << sentence;
                  if (check[0] == '0') return;
                  EXPECT_TRUE(ranks::contains(sentence, "device")) << sentence;
                });
              }
              for (std::thread& thread : threads) thread.join();
              for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
            },
            {{"TRESTLE_CHECK", check}});
      }
    }
  }
}

// ---- more ranks than a kernel adds sources

constexpr int kManyRanks = 130;

// All ranks in this process, in turns on the two devices.
std::vector<trestleComm_t> many_ranks() {
  std::vector<int> devices;
  for (int r = 0; r < kManyRanks; ++r) devices.push_back(r % 2);
  return communicators(devices);
}

TEST(CudaRanks, MoreThanAKernelAddsAtOnceAddWithoutIt) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = many_ranks();
    std::vector<float*> sent, received;
    for (int r = 0; r < kManyRanks; ++r) {
      sent.push_back(memory_of(gpu, r % 2, kManyRanks, static_cast<float>(r)));
      received.push_back(memory_of(gpu, r % 2, kManyRanks, -1));
    }
    constexpr float kSum = kManyRanks * (kManyRanks - 1) / 2;
    const auto in_a_group = [&](const std::function<trestleResult_t(int)>& call) {
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      for (int r = 0; r < kManyRanks; ++r) ASSERT_TRUE(succeeded(call(r)));
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
      for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    };
    in_a_group([&](int r) {
      return trestleAllReduce(sent[r], received[r], 3, trestleFloat32, trestleSum, comms[r], nullptr);
    });
    for (const float* const result : received) EXPECT_EQ(result[2], kSum);
    in_a_group([&](int r) {
      return trestleReduceScatter(sent[r], received[r], 1, trestleFloat32, trestleSum, comms[r], nullptr);
    });
    for (const float* const result : received) EXPECT_EQ(result[0], kSum);
    in_a_group([&](int r) {
      return trestleReduce(sent[r], received[r], kManyRanks, trestleFloat32, trestleSum, 7, comms[r], nullptr);
    });
    EXPECT_EQ(received[7][kManyRanks - 1], kSum);
    destroy(comms);
  });
}

TEST(CudaRanks, MoreThanAKernelAddsAtOnceRefuseAnAlgorithmThatWould) {
  ranks::isolated(
      [] {
        Gpu gpu;
        const auto comms = many_ranks();
        float* const memory = memory_of(gpu, 0, kManyRanks, 1);
        EXPECT_TRUE(refused(sum_in_place(memory, 3, comms[0]), trestleInvalidArgument,
                            {"direct", "130 ranks", "128 sources", "GPU"}));
        for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
      },
      {{"TRESTLE_ALGO", "direct"}});
}

}  // namespace
}  // namespace cuda_ranks_test
}  // namespace fake_gpu
