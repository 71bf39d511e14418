// What trestleGradReady costs its caller: allocations and system calls, counted.
//
// The function below replaces that of the whole program.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <functional>
#include <thread>

#include "conformance/gradient/gradient_model.h"
#include "support/allocations.h"

namespace {
thread_local int system_calls = 0;  // of this thread
}  // namespace

// The library's bells ring through it: the system's functions for futexes have no wrapper.
extern "C" __attribute__((visibility("default"))) long syscall(long number, ...) noexcept {
  using Call = long (*)(long, long, long, long, long, long, long);
  static std::atomic<Call> real{nullptr};
  if (real.load() == nullptr) real.store(reinterpret_cast<Call>(dlsym(RTLD_NEXT, "syscall")));
  ++system_calls;
  long words[6];
  va_list list;
  va_start(list, number);
  for (long& word : words) word = va_arg(list, long);
  va_end(list);
  return real.load()(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

namespace gradients {
namespace {

using ranks::succeeded;

struct Cost {
  int allocations = 0;
  int system_calls = 0;
};

Cost of_ready(trestleGrad_t grad, int tensor) {
  const Cost before{allocations::made(), system_calls};
  const trestleResult_t result = trestleGradReady(grad, tensor, nullptr);
  const Cost cost{allocations::made() - before.allocations, system_calls - before.system_calls};
  EXPECT_TRUE(succeeded(result));
  return cost;
}

// Holds the scheduler's thread in the update of one tensor.
struct Hold {
  std::atomic<bool> reached{false}, over{false};
};

void hold_at_the_last(void* hold, int tensor, size_t, size_t, const void*, void*) {
  if (tensor != 5) return;
  auto& at = *static_cast<Hold*>(hold);
  at.reached.store(true);
  while (!at.over.load()) std::this_thread::yield();
}

void steps_of(trestleComm_t comm, int rank, trestleGradConfig_t config, const char* policy,
              const std::function<void(trestleGrad_t)>& backward) {
  trestleGrad_t grad = make({comm}, config);
  Model model(std::vector<Tensor>(6, {1000}), Memory::kApart, rank);
  model.register_in(grad, config.update != nullptr);
  ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
  for (uint64_t step = 1; step <= 5; ++step) {
    model.fill(step);
    backward(grad);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
  }
  ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
}

TEST(GradReady, IsCountedHere) {
  EXPECT_EQ(dlsym(RTLD_DEFAULT, "syscall"), reinterpret_cast<void*>(&syscall)) << "the library finds another one";
}

// The scheduler's thread may sleep. It need not know of a gradient that no message waits for alone.
TEST(GradReady, MakesNoSystemCallBeforeItsGroupIsComplete) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    const trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    steps_of(comm, rank, config, "nearby:3", [](trestleGrad_t grad) {
      for (const int tensor : {5, 4, 2, 1}) {
        const Cost cost = of_ready(grad, tensor);
        EXPECT_EQ(cost.system_calls, 0) << tensor;
        EXPECT_EQ(cost.allocations, 0) << tensor;
      }
      for (const int tensor : {3, 0}) {
        const Cost cost = of_ready(grad, tensor);
        EXPECT_LE(cost.system_calls, 1) << tensor;  // wakes the thread, if it sleeps
        EXPECT_EQ(cost.allocations, 0) << tensor;
      }
    });
  });
}

// Every tensor is a message.
TEST(GradReady, MakesNoSystemCallWhileTheSchedulersThreadIsAwake) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    Hold hold;
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.update = hold_at_the_last;
    config.updateContext = &hold;
    steps_of(comm, rank, config, "wfbp", [&hold](trestleGrad_t grad) {
      hold.reached.store(false);
      hold.over.store(false);
      EXPECT_EQ(of_ready(grad, 5).allocations, 0);
      while (!hold.reached.load()) std::this_thread::yield();
      for (const int tensor : {4, 3, 2, 1, 0}) {
        const Cost cost = of_ready(grad, tensor);
        EXPECT_EQ(cost.system_calls, 0) << tensor;
        EXPECT_EQ(cost.allocations, 0) << tensor;
      }
      hold.over.store(true);
    });
  });
}

// Rank 1 holds two messages up. They ring when they are complete, and keep the link busy until then.
TEST(GradReady, MakesNoSystemCallWhileMessagesAreUnderWay) {
  std::atomic<int> marked{0};
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [&marked](int rank, trestleComm_t comm) {
    const trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    uint64_t messages = 0;
    int step = 0;
    steps_of(comm, rank, config, "wfbp", [&](trestleGrad_t grad) {
      ++step;
      if (rank == 1) {
        while (marked.load() < step) std::this_thread::yield();
        for (int tensor = 6; tensor-- > 0;) of_ready(grad, tensor);
        return;
      }
      for (const int tensor : {5, 4}) of_ready(grad, tensor);
      while (stats_of(grad).messages < messages + 2) std::this_thread::yield();
      for (const int tensor : {3, 2, 1, 0}) {
        const Cost cost = of_ready(grad, tensor);
        EXPECT_EQ(cost.system_calls, 0) << tensor;
        EXPECT_EQ(cost.allocations, 0) << tensor;
      }
      messages += 6;
      marked.store(step);
    });
  });
}

// The scheduler's thread dozes while rank 1 holds two messages up. A tensor without bytes needs none of them.
TEST(GradReady, ATensorWithoutBytesIsCompleteWhileMessagesAreUnderWay) {
  std::atomic<bool> waited{false};
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [&waited](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{0}, {1000}, {1000}, {1000}}, Memory::kApart, rank);
    model.register_in(grad, false);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    model.fill(1);
    while (rank == 1 && !waited.load()) std::this_thread::yield();
    for (const int tensor : {3, 2}) of_ready(grad, tensor);
    while (rank == 0 && stats_of(grad).messages < 2) std::this_thread::yield();
    for (const int tensor : {1, 0}) of_ready(grad, tensor);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, 0)));
    if (rank == 0) waited.store(true);
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    ASSERT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradients
