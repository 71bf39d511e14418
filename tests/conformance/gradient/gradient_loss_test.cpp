// The model of the loss that limits delays: measured from the ranks' gradients, supplied, and what it does to a plan.
#include <cmath>
#include <limits>

#include "conformance/gradient/delayed_trainer.h"

namespace gradients {
namespace gradient_loss_test {
namespace {

using ranks::refused;
using ranks::succeeded;

trestleGradLoss_t some_loss() {
  trestleGradLoss_t loss = TRESTLE_GRAD_LOSS_INITIALIZER;
  loss.loss = 1;
  loss.rate = 1;
  loss.drift = 0.05;
  loss.mean = 1;
  return loss;
}

// Two ranks with (3, 0) and (1, 2), so the mean is (2, 1): what they share is 3, and each one's product with the mean
// is 1 off its average of 5.
TEST(GradientLoss, IsMeasuredFromTheGradientsOfAStep) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    float first = rank == 0 ? 3 : 1;
    double second = rank == 0 ? 0 : 2;
    int tensor = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "a", 1, trestleFloat32, &first, nullptr, &tensor)));
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "none", 0, trestleInt32, nullptr, nullptr, &tensor)));
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "b", 1, trestleFloat64, nullptr, nullptr, &tensor)));
    trestleGradLoss_t loss = TRESTLE_GRAD_LOSS_INITIALIZER;
    loss.batch = 8;
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage, {"GradMeasureLoss", "no plan yet"}));
    ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage, {"no step has ended"}));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 1, nullptr)));
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage, {"a step is under way"}));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 2, &second)));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradMeasureLoss(grad, &loss)));
    EXPECT_DOUBLE_EQ(loss.drift, 3);
    EXPECT_DOUBLE_EQ(loss.deviation, std::sqrt(2.0 * 4));
    EXPECT_EQ(first, rank == 0 ? 3 : 1) << "the gradients stay";
    ASSERT_TRUE(succeeded(trestleGradProfileEnd(grad)));
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage, {"there is a plan"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// A rank that cannot make the call takes part in its refusal, so the others do not wait for it.
TEST(GradientLoss, ARefusalReachesTheOtherRanks) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    float value = 1;
    int tensor = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "a", 1, trestleFloat32, &value, nullptr, &tensor)));
    trestleGradLoss_t loss = TRESTLE_GRAD_LOSS_INITIALIZER;
    loss.batch = 8;
    const auto step = [&] {
      ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    };
    // Rank 1 measures nothing yet.
    if (rank == 0) {
      ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
      step();
    }
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage,
                        {rank == 1 ? "" : "rank 1 cannot take part: ", "no plan yet"}));
    if (rank == 1) {
      ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
      step();
    }
    for (const double wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
      for (const int by : {0, 1}) {
        loss.batch = rank == by ? wrong : 8;
        EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidArgument,
                            {rank == by ? "" : " cannot take part: ", "batch"}));
      }
    }
    loss.batch = 8;
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, rank == 0 ? nullptr : &loss), trestleInvalidArgument,
                        {rank == 0 ? "" : "rank 0 cannot take part: ", "loss is NULL"}));
    loss.batch = 8 + rank;
    EXPECT_TRUE(
        refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage, {"rank 1 has batch=9, rank 0 has batch=8"}));
    loss.batch = 8;
    EXPECT_TRUE(succeeded(trestleGradMeasureLoss(grad, &loss)));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientLoss, IntegersAreNoGradientsToMeasure) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    int32_t value = 1;
    int tensor = 0;
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, "whole", 1, trestleInt32, &value, nullptr, &tensor)));
    ASSERT_TRUE(succeeded(trestleGradProfileBegin(grad)));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, nullptr)));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    trestleGradLoss_t loss = TRESTLE_GRAD_LOSS_INITIALIZER;
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidUsage, {"\"whole\"", "integers"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// A mean of two steps moves the loss as one step does. So this model wants more updates, and pays with waits.
TEST(GradientLoss, MakesUpdatesMoreFrequent) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    DelayedTrainer trainer({comm}, rank, {{1000}, {2000}, {3000}, {400}}, Memory::kApart, 1.5);
    trainer.plan("deft:1");
    const double without = updates_per_iteration(trainer.grad());
    EXPECT_EQ(plan_json(trainer.grad()).find("\"capacity\""), std::string::npos);
    const trestleGradLoss_t loss = some_loss();
    ASSERT_TRUE(succeeded(trestleGradSetLoss(trainer.grad(), &loss)));
    trainer.plan("deft:1");
    const std::string json = plan_json(trainer.grad());
    EXPECT_GT(updates_per_iteration(trainer.grad()), without) << json;
    EXPECT_TRUE(ranks::contains(json, "\"capacity\":1.")) << json;
    EXPECT_TRUE(ranks::contains(json, "\"loss_ratio\":")) << json;
    trainer.train(9);
    trainer.drain();
    ASSERT_TRUE(succeeded(trestleGradSetLoss(trainer.grad(), nullptr)));
    trainer.plan("deft:1");
    EXPECT_EQ(updates_per_iteration(trainer.grad()), without);
  });
}

TEST(GradientLoss, WrongModelsAreRefused) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    const auto expect_refused = [&](void (*spoil)(trestleGradLoss_t&), const char* fact) {
      trestleGradLoss_t loss = some_loss();
      spoil(loss);
      EXPECT_TRUE(refused(trestleGradSetLoss(grad, &loss), trestleInvalidArgument, {"GradSetLoss", fact}));
    };
    expect_refused([](trestleGradLoss_t& loss) { loss.magic = 3; }, "magic");
    expect_refused([](trestleGradLoss_t& loss) { loss.size = 16; }, "size is 16");
    expect_refused([](trestleGradLoss_t& loss) { loss.reserved = 5; }, "reserved is 5: 0");
    expect_refused([](trestleGradLoss_t& loss) { loss.drift = std::numeric_limits<double>::infinity(); }, "finite");
    expect_refused([](trestleGradLoss_t& loss) { loss.batch = 0; }, "batch");
    expect_refused([](trestleGradLoss_t& loss) { loss.deviation = -1; }, "negative");
    expect_refused([](trestleGradLoss_t& loss) { loss.mean = 2; }, "mean is 2");
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, nullptr), trestleInvalidArgument, {"loss is NULL"}));
    trestleGradLoss_t loss = some_loss();
    loss.batch = -1;
    EXPECT_TRUE(refused(trestleGradMeasureLoss(grad, &loss), trestleInvalidArgument, {"batch"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradient_loss_test
}  // namespace gradients
