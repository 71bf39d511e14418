// Schedulers of gradients and compressed all-reduces on communicators with devices: they work on host memory, and say
// so where they are given memory of a device.
#include <trestle/compress.h>
#include <trestle/gradient.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "local/cuda/fake_gpu.h"

namespace fake_gpu {
namespace cuda_gradients_test {
namespace {

constexpr size_t kCount = 1000;
constexpr int kRanks = 2;

float* memory_of(Gpu& gpu, int index) {
  return reinterpret_cast<float*>(gpu.device(index).allocate(kCount * sizeof(float)).value());
}

// The body of each rank on a thread of its own; rank r is on devices[r].
void on_devices(const std::vector<int>& devices, const std::function<void(Gpu&, int rank, trestleComm_t)>& body) {
  ranks::isolated([&] {
    Gpu gpu;
    const auto comms = communicators(devices);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < kRanks; ++rank) threads.emplace_back([&, rank] { body(gpu, rank, comms[rank]); });
    for (std::thread& thread : threads) thread.join();
    destroy(comms);
  });
}

testing::AssertionResult refused_as_device_memory(trestleResult_t result, const char* function, const char* name) {
  return refused(result, trestleInvalidArgument, {function, name, "memory of device", "must be host memory"});
}

// ---- schedulers of gradients

struct Gradients {
  Gradients(Gpu& gpu, int rank)
      : ordinary(kCount), of_the_step(kCount), pinned(gpu.pinned(kCount, 0)), value(rank + 1) {}
  void fill() {
    std::fill_n(ordinary.data(), kCount, value);
    std::fill_n(of_the_step.data(), kCount, value);
    std::fill_n(pinned, kCount, value);
  }
  void expect_sums() {
    for (const float* const sums : {ordinary.data(), of_the_step.data(), pinned})
      EXPECT_EQ(std::count(sums, sums + kCount, 3.0F), kCount);
  }
  std::vector<float> ordinary, of_the_step;
  float* pinned;
  float value;
};

trestleResult_t add(trestleGrad_t grad, const char* name, void* gradient) {
  int tensor = -1;
  return trestleGradRegister(grad, name, kCount, trestleFloat32, gradient, nullptr, &tensor);
}

void train(Gpu& gpu, int rank, trestleComm_t comm, float* on_device) {
  Gradients gradients(gpu, rank);
  trestleGrad_t grad = nullptr;
  ASSERT_TRUE(succeeded(trestleGradCreate(&grad, &comm, 1, nullptr)));
  if (on_device != nullptr) {
    EXPECT_TRUE(refused_as_device_memory(add(grad, "a", on_device), "GradRegister", "gradient"));
  }
  ASSERT_TRUE(succeeded(add(grad, "a", gradients.ordinary.data()))) << "as if the call before had not been";
  ASSERT_TRUE(succeeded(add(grad, "b", gradients.pinned)));
  ASSERT_TRUE(succeeded(add(grad, "c", nullptr)));
  ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
  for (int step = 0; step < 3; ++step) {
    gradients.fill();
    if (on_device != nullptr) {
      EXPECT_TRUE(refused_as_device_memory(trestleGradReady(grad, 2, on_device), "GradReady", "gradient"));
    }
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 2, gradients.of_the_step.data())));
    for (const int tensor : {1, 0}) ASSERT_TRUE(succeeded(trestleGradReady(grad, tensor, nullptr)));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    gradients.expect_sums();
  }
  ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
}

TEST(CudaGradients, TakeHostMemoryAndRefuseMemoryOfADevice) {
  on_devices({0, 1}, [](Gpu& gpu, int rank, trestleComm_t comm) { train(gpu, rank, comm, memory_of(gpu, rank)); });
}

TEST(CudaGradients, GoOnWhereOnlySomeRanksHaveADevice) {
  on_devices({0, -1}, [](Gpu& gpu, int rank, trestleComm_t comm) {
    train(gpu, rank, comm, rank == 0 ? memory_of(gpu, 1) : nullptr);
  });
}

void update_nothing(void*, int, size_t, size_t, const void*, void*) {}

TEST(CudaGradients, RefuseParametersOfADevice) {
  ranks::isolated([] {
    Gpu gpu;
    const auto comms = communicators({0});
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.update = update_nothing;
    trestleGrad_t grad = nullptr;
    ASSERT_TRUE(succeeded(trestleGradCreate(&grad, comms.data(), 1, &config)));
    std::vector<float> gradient(kCount), parameter(kCount);
    int tensor = -1;
    EXPECT_TRUE(refused_as_device_memory(
        trestleGradRegister(grad, "a", kCount, trestleFloat32, gradient.data(), memory_of(gpu, 0), &tensor),
        "GradRegister", "parameter"));
    EXPECT_TRUE(
        succeeded(trestleGradRegister(grad, "a", kCount, trestleFloat32, gradient.data(), parameter.data(), &tensor)));
    ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
    destroy(comms);
  });
}

// ---- compressed all-reduces

void exchange(Gpu& gpu, int rank, trestleComm_t comm, float* on_device) {
  trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  config.ratio = 1;
  config.startup = 1e-5;
  config.perByte = 1e-9;
  config.op = trestleSum;
  trestleTopK_t topk = nullptr;
  ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, kCount, &config)));
  std::vector<float> gradient(kCount, static_cast<float>(rank + 1)), residual(kCount, 0);
  float* const result = gpu.pinned(kCount, 0);
  if (on_device != nullptr) {
    const char* const function = "AllReduceTopK";
    EXPECT_TRUE(
        refused_as_device_memory(trestleAllReduceTopK(on_device, residual.data(), result, topk), function, "gradient"));
    EXPECT_TRUE(
        refused_as_device_memory(trestleAllReduceTopK(gradient.data(), on_device, result, topk), function, "residual"));
    EXPECT_TRUE(refused_as_device_memory(trestleAllReduceTopK(gradient.data(), residual.data(), on_device, topk),
                                         function, "result"));
  }
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), result, topk)));
    EXPECT_EQ(std::count(result, result + kCount, 3.0F), kCount);
  }
  ASSERT_TRUE(succeeded(trestleTopKDestroy(topk)));
}

TEST(CudaCompression, TakesHostMemoryAndRefusesMemoryOfADevice) {
  on_devices({0, 1}, [](Gpu& gpu, int rank, trestleComm_t comm) { exchange(gpu, rank, comm, memory_of(gpu, rank)); });
}

TEST(CudaCompression, GoesOnWhereOnlySomeRanksHaveADevice) {
  on_devices({-1, 1}, [](Gpu& gpu, int rank, trestleComm_t comm) {
    exchange(gpu, rank, comm, rank == 1 ? memory_of(gpu, 0) : nullptr);
  });
}

}  // namespace
}  // namespace cuda_gradients_test
}  // namespace fake_gpu
