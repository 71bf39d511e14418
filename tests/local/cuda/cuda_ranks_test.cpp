// Several ranks of one process on devices: what they share, and what becomes of ranks that differ.
#include <algorithm>
#include <thread>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
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

}  // namespace
}  // namespace fake_gpu
