// Wrong calls of a scheduler get a code and a sentence, on all ranks where the call is collective. A rank that dies
// ends every call of the others with the core's sentence.
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_misuse_test {
namespace {

using ranks::refused;
using ranks::succeeded;

const std::vector<Tensor> kThree = {{10}, {20}, {30}};

TEST(GradientMisuse, StepsOutOfOrder) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(kThree, Memory::kTogether, rank);
    model.register_in(grad);
    for (const trestleResult_t result : {trestleGradReady(grad, 0, nullptr), trestleGradWaitParam(grad, 0),
                                         trestleGradStepEnd(grad), trestleGradSynchronize(grad)}) {
      EXPECT_TRUE(refused(result, trestleInvalidUsage, {"there is no plan"}));
    }
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "sync")));
    int number = 0;
    EXPECT_TRUE(refused(trestleGradRegister(grad, "late", 1, trestleFloat32, &number, nullptr, &number),
                        trestleInvalidUsage, {"before the first plan"}));
    model.fill(1);
    EXPECT_TRUE(
        refused(trestleGradWaitParam(grad, 1), trestleInvalidUsage, {"GradWaitParam", "no step has ended", "w1"}));
    EXPECT_TRUE(succeeded(trestleGradSynchronize(grad)));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 1, nullptr)));
    EXPECT_TRUE(refused(trestleGradReady(grad, 1, nullptr), trestleInvalidUsage, {"GradReady", "w1", "ready already"}));
    EXPECT_TRUE(refused(trestleGradWaitParam(grad, 1), trestleInvalidUsage, {"w1", "has not ended", "GradStepEnd"}));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage, {"a step is under way"}));
    EXPECT_TRUE(refused(trestleGradProfileBegin(grad), trestleInvalidUsage, {"a step is under way"}));
    EXPECT_TRUE(refused(trestleGradStepEnd(grad), trestleInvalidUsage,
                        {"GradStepEnd", "tensor 0 (\"w0\")", "tensor 2 (\"w2\")", "ready in this step"}));
    for (const int unknown : {-1, 3, 1 << 30}) {
      const std::string sentence = "there is no tensor " + std::to_string(unknown) + ": 3 are registered";
      EXPECT_TRUE(refused(trestleGradReady(grad, unknown, nullptr), trestleInvalidArgument, {sentence}));
      EXPECT_TRUE(refused(trestleGradWaitParam(grad, unknown), trestleInvalidArgument, {sentence}));
    }
    // The step goes on behind all that.
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 2, nullptr)));
    float elsewhere[10] = {};
    EXPECT_TRUE(refused(trestleGradReady(grad, 0, elsewhere), trestleInvalidArgument, {"w0", "another one"}));
    ASSERT_TRUE(succeeded(trestleGradReady(grad, 0, model.gradient(0))));
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    EXPECT_TRUE(refused(trestleGradReady(grad, 0, nullptr), trestleInvalidUsage, {"w0", "was not waited for"}));
    ASSERT_TRUE(succeeded(trestleGradWaitParam(grad, 0)));
    ASSERT_TRUE(succeeded(trestleGradSynchronize(grad)));
    EXPECT_EQ(model.compare(model.sums(comm, 1, {{0, 2}}, false), true), "");
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    EXPECT_TRUE(refused(trestleGradStepEnd(grad), trestleInvalidUsage, {"scheduler", "destroyed"}));
    EXPECT_TRUE(refused(trestleGradDestroy(grad), trestleInvalidUsage, {"scheduler", "destroyed"}));
  });
}

TEST(GradientMisuse, ManyMissingTensorsAreCounted) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(std::vector<Tensor>(20, Tensor{1}), Memory::kTogether, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    EXPECT_TRUE(refused(trestleGradStepEnd(grad), trestleInvalidUsage, {"\"w7\"", "and of 12 more"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientMisuse, WrongArguments) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleGrad_t grad = nullptr;
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    const trestleComm_t two[] = {comm, comm};
    const trestleComm_t none = nullptr;
    EXPECT_TRUE(refused(trestleGradCreate(nullptr, &comm, 1, nullptr), trestleInvalidArgument, {"grad is NULL"}));
    EXPECT_TRUE(refused(trestleGradCreate(&grad, nullptr, 1, nullptr), trestleInvalidArgument, {"communicator"}));
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &none, 1, nullptr), trestleInvalidArgument, {"communicator is NULL"}));
    EXPECT_TRUE(refused(trestleGradCreate(&grad, two, 2, nullptr), trestleInvalidArgument, {"link 1", "twice"}));
    EXPECT_TRUE(
        refused(trestleGradCreate(&grad, two, 17, nullptr), trestleInvalidArgument, {"17 links", "at most 16"}));
    config.op = trestleMax;
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &comm, 1, &config), trestleInvalidArgument, {"op is 2"}));
    config.op = trestleSum;
    config.allow = 4;
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &comm, 1, &config), trestleInvalidArgument, {"allow"}));
    config.allow = 0;
    config.countNans = 2;
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &comm, 1, &config), trestleInvalidArgument, {"countNans is 2"}));
    config.magic = 1;
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &comm, 1, &config), trestleInvalidArgument, {"magic"}));
    config.size = 3;
    EXPECT_TRUE(refused(trestleGradCreate(&grad, &comm, 1, &config), trestleInvalidArgument, {"size is 3"}));
    EXPECT_EQ(grad, nullptr);
    EXPECT_TRUE(refused(trestleGradStepEnd(nullptr), trestleInvalidArgument, {"GradStepEnd", "NULL"}));

    grad = make(comm);
    float x = 0;
    int tensor = 0;
    const auto add = [&](const char* name, size_t count, int type, int* number) {
      return trestleGradRegister(grad, name, count, static_cast<trestleDataType_t>(type), &x, nullptr, number);
    };
    EXPECT_TRUE(refused(add(nullptr, 1, trestleFloat32, &tensor), trestleInvalidArgument, {"name is NULL"}));
    EXPECT_TRUE(refused(add("w", 1, 99, &tensor), trestleInvalidArgument, {"GradRegister", "99"}));
    EXPECT_TRUE(refused(add("w", 1, trestleFloat32, nullptr), trestleInvalidArgument, {"tensor is NULL"}));
    EXPECT_TRUE(refused(add("w", SIZE_MAX / 2, trestleFloat64, &tensor), trestleInvalidArgument, {"count"}));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage, {"no tensor is registered"}));
    EXPECT_TRUE(refused(trestleGradProfileBegin(grad), trestleInvalidUsage, {"no tensor is registered"}));
    ASSERT_TRUE(succeeded(add("w", 1, trestleFloat32, &tensor)));
    EXPECT_TRUE(refused(trestleGradPlan(grad, nullptr), trestleInvalidArgument, {"policy is NULL"}));
    EXPECT_TRUE(
        refused(trestleGradPlan(grad, "fastest"), trestleInvalidArgument, {"'fastest' is not a policy", "wfbp"}));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "threshold:much"), trestleInvalidArgument, {"much"}));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "optimal"), trestleInvalidUsage, {"optimal", "GradProfileBegin"}));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "dear:tuned"), trestleInvalidUsage, {"dear:tuned", "GradSetTimes"}));
    size_t size = 0;
    double seconds = 0;
    EXPECT_TRUE(refused(trestleGradPlanJson(grad, nullptr, &size), trestleInvalidUsage, {"no plan"}));
    EXPECT_TRUE(refused(trestleGradProfileJson(grad, nullptr, &size), trestleInvalidUsage, {"no times"}));
    EXPECT_TRUE(refused(trestleGradSimulate(grad, "wfbp", &seconds), trestleInvalidUsage, {"no times"}));
    const double good = 1, bad = std::nan("");
    const trestleGradCost_t cost{1, 1}, negative{-1, 1};
    EXPECT_TRUE(refused(trestleGradSetTimes(grad, &good, &bad, &cost, &cost, &cost), trestleInvalidArgument,
                        {"backward time of tensor 0"}));
    EXPECT_TRUE(refused(trestleGradSetTimes(grad, &good, &good, &cost, &negative, &cost), trestleInvalidArgument,
                        {"startup", "-1"}));
    EXPECT_TRUE(
        refused(trestleGradSetTimes(grad, nullptr, &good, &cost, &cost, &cost), trestleInvalidArgument, {"NULL"}));
    ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, &good, &good, &cost, &cost, &cost)));
    ASSERT_TRUE(succeeded(trestleGradSimulate(grad, "wfbp", &seconds)));
    EXPECT_EQ(seconds, 2 + 1 + 4.0);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    char text[4] = "abc";
    size = sizeof text;
    EXPECT_TRUE(refused(trestleGradPlanJson(grad, text, &size), trestleInvalidArgument, {"room for 4"}));
    EXPECT_STREQ(text, "abc");
    EXPECT_GT(size, 40U);
    trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
    stats.magic = 7;
    EXPECT_TRUE(refused(trestleGradGetStats(grad, &stats), trestleInvalidArgument, {"magic"}));
    EXPECT_TRUE(refused(trestleGradGetStats(grad, nullptr), trestleInvalidArgument, {"NULL"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// A caller that knows less of a struct gets as much as it knows.
TEST(GradientMisuse, OlderStructsAreFilledInAsFarAsTheyReach) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(kThree, Memory::kTogether, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    model.make_ready(grad, 0);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    trestleGradStats_t stats = TRESTLE_GRAD_STATS_INITIALIZER;
    stats.size = offsetof(trestleGradStats_t, messages);
    stats.messages = 77;
    ASSERT_TRUE(succeeded(trestleGradGetStats(grad, &stats)));
    EXPECT_EQ(stats.steps, 1U);
    EXPECT_EQ(stats.messages, 77U);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientMisuse, PoliciesThatNeedALiberty) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(kThree, Memory::kTogether, rank);
    model.register_in(grad);
    set_times(grad, model.tensors());
    EXPECT_TRUE(refused(trestleGradPlan(grad, "deft"), trestleInvalidUsage, {"deft", "trestleGradAllowStale"}));
    // Rank 0's sentence reaches all ranks, and they go on.
    EXPECT_TRUE(refused(trestleGradPlan(grad, "topk:0.25"), trestleInvalidUsage,
                        {"topk:0.25", "does not permit", "trestleGradAllowCompression"}));
    EXPECT_TRUE(succeeded(trestleGradPlan(grad, "auto")));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// Where it is allowed, auto takes the plan that it predicts to be the fastest.
TEST(GradientMisuse, AutoCompressesOnlyWhereItMay) {
  for (const unsigned allow : {unsigned{trestleGradAllowNone}, unsigned{trestleGradAllowCompression}}) {
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
      config.allow = allow;
      trestleGrad_t grad = make({comm}, config);
      Model model(kThree, Memory::kTogether, rank);
      model.register_in(grad);
      const std::vector<double> times(kThree.size(), 1e-3);
      const trestleGradCost_t whole{1e-6, 1e-4}, half{5e-7, 5e-5};  // communication takes four times as long as compute
      ASSERT_TRUE(succeeded(trestleGradSetTimes(grad, times.data(), times.data(), &whole, &half, &half)));
      double compressed = 0, optimal = 0, fastest = 0;
      EXPECT_TRUE(succeeded(trestleGradSimulate(grad, "topk:hidden", &compressed)));
      EXPECT_TRUE(succeeded(trestleGradSimulate(grad, "optimal", &optimal)));
      EXPECT_TRUE(succeeded(trestleGradSimulate(grad, "auto", &fastest)));
      EXPECT_LT(compressed, optimal);
      EXPECT_EQ(fastest == compressed, allow == trestleGradAllowCompression);
      ASSERT_TRUE(succeeded(trestleGradPlan(grad, "auto")));
      EXPECT_EQ(ranks::contains(plan_json(grad), "topk:hidden"), allow == trestleGradAllowCompression);
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    });
  }
}

// ---- ranks that differ

TEST(GradientMisuse, RanksThatRegisterDifferently) {
  struct Row {
    std::vector<Tensor> rank_1;
    std::vector<std::string> facts;
  };
  const std::vector<Row> rows = {
      {{{10}, {21}, {30}}, {"tensor 1", "rank 1", "84 bytes", "rank 0", "80 bytes"}},
      {{{10}, {20}}, {"tensor 2", "rank 1 has no tensor 2", "rank 0 has tensor 2=\"", "120 bytes"}},
      {{{10}, {20}, {30}, {40}}, {"tensor 3", "rank 1 has tensor 3=\"", "160 bytes", "rank 0 has no tensor 3"}},
      {{{10}, {20, trestleInt32}, {30}}, {"tensor 1", "80 bytes (int32)", "80 bytes (float)"}}};
  for (const Row& row : rows) {
    ranks::on_threads({.ranks = 3, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      trestleGrad_t grad = make(comm);
      Model model(rank == 1 ? row.rank_1 : kThree, Memory::kTogether, rank);
      model.register_in(grad);
      EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage, row.facts));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
      float x = 1;
      EXPECT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
      EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      EXPECT_EQ(x, 3);
    });
  }
}

TEST(GradientMisuse, RanksThatNameTensorsDifferently) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    float x = 0;
    int tensor = 0;
    const char* name = rank == 0 ? "weight" : "bias";
    ASSERT_TRUE(succeeded(trestleGradRegister(grad, name, 1, trestleFloat32, &x, nullptr, &tensor)));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage,
                        {"rank 1 has tensor 0=\"bias\" of", "rank 0 has tensor 0=\"weight\" of"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientMisuse, RanksThatAskForDifferentThings) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    trestleGrad_t grad = make(comm);
    Model model(kThree, Memory::kTogether, rank);
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradPlan(grad, rank == 2 ? "sync" : "wfbp"), trestleInvalidUsage,
                        {"rank 2 has policy=sync, rank 0 has policy=wfbp"}));
    EXPECT_TRUE(refused(trestleGradPlan(grad, rank == 1 ? nullptr : "wfbp"), trestleInvalidArgument,
                        {rank == 1 ? "" : "GradPlan: rank 1 cannot take part: ", "policy is NULL"}));
    EXPECT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    config.op = rank == 0 ? trestleSum : trestleAvg;
    ASSERT_TRUE(succeeded(trestleGradCreate(&grad, &comm, 1, &config)));
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage,
                        {"rank 1 and 1 more have the config's op=avg, rank 0 has the config's op=sum"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

// ---- failures

// Every call ends with the failure's code and the communicator's sentence.
void expect_ended(trestleGrad_t grad, trestleResult_t code, const std::vector<std::string>& facts) {
  EXPECT_TRUE(refused(trestleGradReady(grad, 0, nullptr), code, facts));
  EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), code, facts));
  EXPECT_TRUE(refused(trestleGradStepEnd(grad), code, facts));
  EXPECT_TRUE(refused(trestleGradSynchronize(grad), code, facts));
  EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), code, facts));
  EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
}

TEST(GradientFailures, ARankThatDiesInAStepEndsEveryCall) {
  for (const char* transport : {"shm", "tcp"}) {
    for (const char* policy : {"wfbp", "dear:64:lookahead", "split_optimal:free"}) {
      SCOPED_TRACE(std::string(transport) + ", " + policy);
      ranks::joined({.ranks = 3, .transport = transport}, [&](ranks::Process& process, trestleComm_t comm) {
        trestleGrad_t grad = make(comm);
        Model model({{1000}, {2000}, {300'000}}, Memory::kApart, process.rank);
        model.register_in(grad);
        set_times(grad, model.tensors());
        ASSERT_TRUE(succeeded(trestleGradPlan(grad, policy)));
        for (uint64_t step = 1; step <= 2; ++step) {
          model.step(grad, step, step);
        }
        // A death fails also what would have been complete without that rank.
        ranks::meet(process.board, process.ranks);
        model.fill(3);
        // The death may be noticed at any of these.
        const trestleResult_t ready = trestleGradReady(grad, 2, nullptr);
        if (process.rank == 1) ::_exit(0);
        if (ready == trestleSuccess && trestleGradReady(grad, 1, nullptr) == trestleSuccess &&
            trestleGradReady(grad, 0, nullptr) == trestleSuccess) {
          if (trestleGradStepEnd(grad) == trestleSuccess) {
            EXPECT_TRUE(refused(trestleGradSynchronize(grad), trestleRemoteError, {"rank 1"}));
          }
        }
        ranks::wait_until([&] {
          trestleResult_t failure = trestleSuccess;
          return trestleCommGetAsyncError(comm, &failure) != trestleSuccess || failure != trestleSuccess;
        });
        ranks::wait_until([&] { return trestleGradSynchronize(grad) != trestleSuccess; });
        expect_ended(grad, trestleRemoteError, {"rank 1"});
        EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
      });
    }
  }
}

// A thread waits for a result that never comes, because another rank does not take part.
TEST(GradientFailures, ADeadlineEndsTheWait) {
  const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = "shm", .timeout_ms = 500});
  ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{100'000}}, Memory::kTogether, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    if (rank == 0) {
      model.fill(1);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleTimeout, {"rank 1"}));
      expect_ended(grad, trestleTimeout, {"rank 1"});
      return;
    }
    trestleResult_t failure = trestleSuccess;
    ranks::wait_until(
        [&] { return trestleCommGetAsyncError(comm, &failure) == trestleSuccess && failure != trestleSuccess; });
    EXPECT_EQ(failure, trestleTimeout);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

TEST(GradientFailures, AnAbortEndsTheWait) {
  ranks::joined({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model({{100'000}}, Memory::kTogether, process.rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    if (process.rank == 0) {
      model.fill(1);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
    }
    ranks::meet(process.board, 2);
    if (process.rank == 1) {
      EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
      return;
    }
    EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleAborted, {"rank 1"}));
    expect_ended(grad, trestleAborted, {"rank 1"});
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

TEST(GradientFailures, AForkedChildRefusesTheScheduler) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleGrad_t grad = make(comm);
    Model model(kThree, Memory::kTogether, rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "wfbp")));
    const pid_t child = ::fork();
    if (child == 0) {
      const bool right = trestleGradReady(grad, 0, nullptr) == trestleInvalidUsage &&
                         ranks::contains(trestleGetLastError(nullptr), "before fork()") &&
                         trestleGradDestroy(grad) == trestleInvalidUsage;
      ::_exit(right ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    model.step(grad, 1, 0);
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  });
}

}  // namespace
}  // namespace gradient_misuse_test
}  // namespace gradients
