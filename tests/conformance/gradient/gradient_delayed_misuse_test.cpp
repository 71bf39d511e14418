// What schedulers that delay or have several links refuse; and a rank that dies in the middle of a step.
#include <unistd.h>

#include <stdexcept>

#include "conformance/gradient/delayed_trainer.h"

namespace gradients {
namespace gradient_delayed_misuse_test {
namespace {

using ranks::refused;
using ranks::succeeded;

const std::vector<Tensor> kThree = {{10}, {20}, {30}};

trestleGrad_t make(const std::vector<trestleComm_t>& comms) {
  trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
  config.allow = trestleGradAllowStale;
  return gradients::make(comms, config);
}

trestleComm_t split(trestleComm_t comm, int color, int key) {
  trestleComm_t part = nullptr;
  EXPECT_TRUE(succeeded(trestleCommSplit(comm, color, key, &part, nullptr), comm));
  return part;
}

TEST(GradientDelayedMisuse, CallsOutOfOrder) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make({comm});
    int batches = 7, age = 7;
    EXPECT_TRUE(refused(trestleGradDrain(grad, &batches), trestleInvalidUsage, {"GradDrain", "there is no plan"}));
    EXPECT_TRUE(refused(trestleGradBatches(grad, 0, &batches, &age), trestleInvalidUsage, {"there is no plan"}));
    EXPECT_TRUE(refused(trestleGradDrain(nullptr, nullptr), trestleInvalidArgument, {"GradDrain", "NULL"}));
    Model model(kThree, Memory::kApart, rank, Numbers::kWhole);
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "deft"), trestleInvalidUsage, {"deft", "GradSetTimes"}));
    set_delayed_times(grad, model.tensors(), 2);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "deft:0"), trestleInvalidArgument, {"deft:0"}));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft:1")));
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    EXPECT_EQ(batches, 0);
    ASSERT_TRUE(succeeded(trestleGradBatches(grad, 0, &batches, &age)));
    EXPECT_EQ(batches, 0) << "before the first step";
    EXPECT_TRUE(refused(trestleGradBatches(grad, 3, nullptr, nullptr), trestleInvalidArgument, {"no tensor 3"}));
    model.fill(1);
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 1, nullptr)));
    EXPECT_TRUE(refused(trestleGradDrain(grad, nullptr), trestleInvalidUsage, {"GradDrain", "a step is under way"}));
    EXPECT_TRUE(refused(trestleGradBatches(grad, 1, nullptr, nullptr), trestleInvalidUsage, {"w1", "has not ended"}));
    for (const int tensor : {0, 2}) ASSERT_TRUE(succeeded(trestleGradReady(grad, tensor, nullptr)));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, 1)));
    EXPECT_TRUE(refused(trestleGradDrain(grad, nullptr), trestleInvalidUsage, {"w0", "was not waited for"}));
    EXPECT_TRUE(refused(trestleGradBatches(grad, 2, nullptr, nullptr), trestleInvalidUsage, {"w2", "not waited for"}));
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    ASSERT_TRUE(succeeded(trestleGradBatches(grad, 2, nullptr, nullptr)));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage, {"1 step are pending", "GradDrain"}));
    ASSERT_TRUE(succeeded(trestleGradDrain(grad, &batches)));
    EXPECT_EQ(batches, 1);
    EXPECT_EQ(model.compare(model.whole_sums(2, 1, 1), true), "");
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    ASSERT_TRUE(succeeded(trestleGradBatches(grad, 0, &batches, &age)));
    EXPECT_EQ(batches, 1);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientDelayedMisuse, WrongConfigsAndRatios) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.update = [](void*, int, size_t, size_t, const void*, void*) {};
    config.updateMerged = [](void*, int, size_t, size_t, const void*, void*, int, int) {};
    trestleGrad_t grad = nullptr;
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &comm, 1, &config), trestleInvalidArgument, {"updateMerged"}));
    grad = make({comm});
    const double ratios[] = {1, 2}, slow[] = {2};
    EXPECT_TRUE(refused(trestleGradSetLinkRatios(grad, ratios, 2), trestleInvalidArgument, {"2 ratios", "1 links"}));
    EXPECT_TRUE(refused(trestleGradSetLinkRatios(grad, nullptr, 1), trestleInvalidArgument, {"NULL"}));
    EXPECT_TRUE(refused(trestleGradSetLinkRatios(grad, slow, 1), trestleInvalidArgument, {"link 0", "fastest"}));
    float x = 0;
    int tensor = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "w", 1, trestleFloat32, &x, nullptr, &tensor)));
    const double none = 0, some = 1;
    const trestleGradCost_t cost{1, 1};
    ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, &none, &some, &cost, &cost, &cost)));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "deft"), trestleInvalidArgument, {"forward pass that takes time"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    trestleComm_t second = split(comm, 0, 0);
    grad = make({comm, second});
    for (const double wrong : {0.5, -1.0, 0.0, 1001.0, std::stod("nan")}) {
      const double pair[] = {1, wrong};
      EXPECT_TRUE(refused(trestleGradSetLinkRatios(grad, pair, 2), trestleInvalidArgument, {"link 1", "1 to 1000"}));
    }
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
  });
}

TEST(GradientDelayedMisuse, CommunicatorsThatAreNoLinksOfEachOther) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleComm_t half = split(comm, rank % 2, rank);
    trestleComm_t turned = split(comm, 0, 2 - rank);
    trestleComm_t second = split(comm, 0, rank);
    trestleGrad_t grad = nullptr;
    const trestleComm_t smaller[] = {comm, half}, other[] = {comm, turned}, none[] = {comm, nullptr};
    EXPECT_TRUE(refused(trestleGradCreate(&grad, smaller, 2, nullptr), trestleInvalidArgument,
                        {"GradCreate", "link 1", "of 3", "same ranks"}));
    if (rank != 1) {
      EXPECT_TRUE(refused(trestleGradCreate(&grad, other, 2, nullptr), trestleInvalidArgument,
                          {"link 1", "as rank " + std::to_string(2 - rank)}));
    }
    EXPECT_TRUE(refused(trestleGradCreate(&grad, none, 2, nullptr), trestleInvalidArgument, {"link 1", "NULL"}));
    // Rank 1 has them in another order.
    grad = rank == 1 ? make({second, comm}) : make({comm, second});
    Model model(kThree, Memory::kApart, rank);
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage,
                        {"GradPlan", "rank 1 gave 2 (link 1 of rank 0, link 0 of rank 0)", "same order"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    for (trestleComm_t one : {half, turned, second}) EXPECT_TRUE(succeeded(trestleCommDestroy(one)));
  });
}

[[noreturn]] void throws(void*, int, size_t, size_t, const void*, void*, int, int) {
  throw std::runtime_error("no such learning rate");
}

TEST(GradientDelayedMisuse, AnExceptionInAnUpdateEndsTheScheduler) {
  for (const bool in_drain : {false, true}) {
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
      config.allow = trestleGradAllowStale;
      config.updateMerged = throws;
      trestleGrad_t grad = gradients::make({comm}, config);
      Model model({{100}}, Memory::kApart, rank);
      model.register_in(grad, true);
      set_delayed_times(grad, 1, 0.1);
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft")));
      const std::vector<std::string> facts = {"update function", "no such learning rate"};
      for (uint64_t step = 1; step <= (in_drain ? 1 : 2); ++step) {
        model.fill(step);
        model.make_ready(grad, 0);
        const trestleResult_t ended = trestleGradStepEnd(grad);
        if (step == 1) {
          ASSERT_TRUE(succeeded(ended));
          ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
        } else if (ended != trestleSuccess) {
          // The update of the second step may have run, and thrown, before the step ends here.
          EXPECT_TRUE(refused(ended, trestleInvalidUsage, facts));
        }
      }
      EXPECT_TRUE(refused(in_drain ? trestleGradDrain(grad, nullptr) : trestleGradSynchronize(grad),
                          trestleInvalidUsage, facts));
      EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleInvalidUsage, facts));
      EXPECT_TRUE(refused(trestleGradDrain(grad, nullptr), trestleInvalidUsage, facts));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

// ---- failures

TEST(GradientDelayedFailures, ARankThatDiesInAStepEndsEveryCall) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const int links : {1, 2}) {
      SCOPED_TRACE(testing::Message() << transport << ", links " << links);
      ranks::joined({.ranks = 3, .transport = transport}, [&](ranks::Process& process, trestleComm_t comm) {
        std::vector<trestleComm_t> comms = {comm};
        if (links == 2) comms.push_back(split(comm, 0, process.rank));
        trestleGrad_t grad = make(comms);
        Model model({{1000}, {2000}, {300'000}}, Memory::kApart, process.rank);
        model.register_in(grad);
        set_delayed_times(grad, model.tensors(), 2);
        ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft:1")));
        for (uint64_t step = 1; step <= 5; ++step) {
          model.step(grad, step, step);
        }
        ranks::meet(process.board, 3);
        model.fill(6);
        // Others may have met the death already.
        const trestleResult_t ready = trestleGradReady(grad, 2, nullptr);
        if (process.rank == 1) ::_exit(0);
        if (ready == trestleSuccess && trestleGradReady(grad, 1, nullptr) == trestleSuccess &&
            trestleGradReady(grad, 0, nullptr) == trestleSuccess) {
          (void)trestleGradStepEnd(grad);
        }
        ranks::wait_until([&] { return trestleGradStepEnd(grad) == trestleRemoteError; });
        EXPECT_TRUE(refused(trestleGradReady(grad, 0, nullptr), trestleRemoteError, {"rank 1"}));
        EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleRemoteError, {"rank 1"}));
        EXPECT_TRUE(refused(trestleGradSynchronize(grad), trestleRemoteError, {"rank 1"}));
        EXPECT_TRUE(refused(trestleGradDrain(grad, nullptr), trestleRemoteError, {"rank 1"}));
        EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleRemoteError, {"rank 1"}));
        EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
        for (trestleComm_t one : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(one)));
      });
    }
  }
}

// A drain that another rank does not take part in ends at the deadline.
TEST(GradientDelayedFailures, ADeadlineEndsADrain) {
  const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = "shm", .timeout_ms = 500});
  ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make({comm});
    Model model({{1000}}, Memory::kApart, rank);
    model.register_in(grad);
    set_delayed_times(grad, 1, 1);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "deft")));
    model.step(grad, 1, 0);
    if (rank == 0) {
      EXPECT_TRUE(refused(trestleGradDrain(grad, nullptr), trestleTimeout, {"rank 1"}));
    } else {
      trestleResult_t failure = trestleSuccess;
      ranks::wait_until(
          [&] { return trestleCommGetAsyncError(comm, &failure) == trestleSuccess && failure != trestleSuccess; });
      EXPECT_EQ(failure, trestleTimeout);
    }
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradient_delayed_misuse_test
}  // namespace gradients
