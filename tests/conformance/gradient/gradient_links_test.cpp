// Several links: ranks that have given their schedulers different communicators, and a communicator that fails while
// nothing is under way on it.
#include <atomic>
#include <functional>
#include <thread>

#include "conformance/gradient/gradient_model.h"

namespace gradients {
namespace gradient_links_test {
namespace {

using ranks::refused;
using ranks::succeeded;

const std::vector<Tensor> kThree = {{10}, {20}, {30}};

trestleComm_t copy_of(trestleComm_t comm, int rank) {
  trestleComm_t copy = nullptr;
  EXPECT_TRUE(succeeded(trestleCommSplit(comm, 0, rank, &copy, nullptr), comm));
  return copy;
}

void expect_sums(trestleComm_t comm, int ranks) {
  float x = 1;
  EXPECT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(x, static_cast<float>(ranks));
}

// A step under a plan that uses these links.
void expect_step(const std::vector<trestleComm_t>& comms, int rank) {
  trestleGrad_t grad = make(comms);
  Model model(kThree, Memory::kApart, rank);
  model.register_in(grad);
  ASSERT_TRUE(succeeded(trestleGradPlan(grad, "sync")));
  model.step(grad, 1, 0);
  EXPECT_EQ(model.compare(model.sums(comms.front(), 1, {{0, 2}}, false), true), "");
  EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
}

// No rank waits for a deadline, and no communicator is left with half a call: schedulers with the same links follow.
TEST(GradientLinks, DifferentCommunicatorsAreRefusedOnAllRanks) {
  struct Row {
    std::string rank_0, rank_1;  // links, by their letters
    std::string fact;
  };
  const std::vector<Row> rows = {{"AB", "B", "rank 1 gave 1 (link 1 of rank 0)"},
                                 {"AB", "A", "rank 1 gave 1 (link 0 of rank 0)"},
                                 {"B", "AB", "rank 1 gave 2 (one that rank 0 did not give, link 0 of rank 0)"},
                                 {"A", "AB", "rank 1 gave 2 (link 0 of rank 0, one that rank 0 did not give)"},
                                 {"BA", "AB", "rank 1 gave 2 (link 1 of rank 0, link 0 of rank 0)"}};
  for (const char* transport : {"shm", "tcp"}) {
    for (const Row& row : rows) {
      SCOPED_TRACE(std::string(transport) + ": " + row.rank_0 + " and " + row.rank_1);
      ranks::on_threads({.ranks = 2, .transport = transport}, [&](int rank, trestleComm_t comm) {
        trestleComm_t second = copy_of(comm, rank);
        std::vector<trestleComm_t> comms;
        for (const char letter : rank == 0 ? row.rank_0 : row.rank_1) comms.push_back(letter == 'A' ? comm : second);
        trestleGrad_t grad = make(comms);
        Model model(kThree, Memory::kApart, rank);
        model.register_in(grad);
        for (int again = 0; again < 2; ++again) {
          EXPECT_TRUE(
              refused(trestleGradPlan(grad, "sync"), trestleInvalidUsage, {"GradPlan", row.fact, "same order"}));
        }
        EXPECT_TRUE(refused(trestleGradProfileEnd(grad), trestleInvalidUsage, {"GradProfileEnd", row.fact}));
        EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
        for (trestleComm_t one : {comm, second}) expect_step({one}, rank);
        expect_step({comm, second}, rank);
        for (trestleComm_t one : {comm, second}) expect_sums(one, 2);
        EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
      });
    }
  }
}

TEST(GradientLinks, OneOfManyRanksIsNamed) {
  ranks::on_threads({.ranks = 4, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleComm_t second = copy_of(comm, rank);
    trestleGrad_t grad = rank == 2 ? make({second}) : rank == 3 ? make({comm}) : make({comm, second});
    Model model(kThree, Memory::kApart, rank);
    model.register_in(grad);
    EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleInvalidUsage,
                        {"rank 0 gave GradCreate 2 communicators", "rank 2 gave 1 (link 1 of rank 0)"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    expect_step({comm, second}, rank);
    EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
  });
}

// Where ranks have no communicator in common, only the deadline is left.
TEST(GradientLinks, NothingInCommonEndsAtTheDeadline) {
  const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = "shm", .timeout_ms = 500});
  ranks::on_threads(settings, [](int rank, trestleComm_t comm) {
    trestleComm_t second = copy_of(comm, rank);
    trestleGrad_t grad = make({rank == 0 ? comm : second});
    Model model(kThree, Memory::kApart, rank);
    model.register_in(grad);
    EXPECT_TRUE(
        refused(trestleGradPlan(grad, "sync"), trestleTimeout, {"GradPlan", "rank " + std::to_string(1 - rank)}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(second)));
  });
}

// ---- failures of a link without work

struct Waits {
  const char* name;
  bool in_step;  // behind a step that rank 1 does not take part in
  trestleResult_t (*call)(trestleGrad_t grad);
};

const Waits kWaits[] = {
    {"GradWaitParam", true, [](trestleGrad_t grad) { return trestleGradWaitParam(grad, 0); }},
    {"GradSynchronize", true, [](trestleGrad_t grad) { return trestleGradSynchronize(grad); }},
    {"GradPlan behind a step", true, [](trestleGrad_t grad) { return trestleGradPlan(grad, "sync"); }},
    {"GradPlan", false, [](trestleGrad_t grad) { return trestleGradPlan(grad, "sync"); }},
    {"GradDrain", false, [](trestleGrad_t grad) { return trestleGradDrain(grad, nullptr); }},
};

// Rank 0 waits for something of the first link. Then the second one fails, which nobody uses.
void fail_second_link(ranks::Process& process, const Waits& waits, const std::function<void(trestleComm_t)>& end) {
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = "shm"}, &comm)));
  trestleComm_t second = copy_of(comm, process.rank);
  trestleGrad_t grad = make({comm, second});
  Model model(kThree, Memory::kApart, process.rank);
  model.register_in(grad);
  ASSERT_TRUE(succeeded(trestleGradPlan(grad, "sync")));
  if (process.rank == 1) {
    ranks::meet(process.board, 2);
    end(second);
    // The first one goes on, and rank 0's messages are there. Their end is the program's to make.
    ranks::meet(process.board, 2);
    EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    return;
  }
  model.fill(1);
  if (waits.in_step) {
    model.make_ready(grad, 0);
    ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
  }
  std::atomic<bool> called{false};
  std::thread thread([&] {
    called = true;
    EXPECT_TRUE(refused(waits.call(grad), trestleAborted, {"rank 1"}));
  });
  ranks::wait_until([&] { return called.load(); });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  ranks::meet(process.board, 2);
  thread.join();
  EXPECT_TRUE(refused(trestleGradReady(grad, 0, nullptr), trestleAborted, {"rank 1"}));
  EXPECT_TRUE(refused(trestleGradPlan(grad, "wfbp"), trestleAborted, {"rank 1"}));
  trestleResult_t first = trestleSuccess;
  EXPECT_TRUE(succeeded(trestleCommGetAsyncError(comm, &first)));
  EXPECT_EQ(first, trestleSuccess) << "only the second communicator has failed";
  ranks::meet(process.board, 2);
  EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
  for (trestleComm_t one : {comm, second}) EXPECT_TRUE(succeeded(trestleCommDestroy(one)));
}

TEST(GradientLinks, AFailureOfAnotherLinkEndsEveryWait) {
  for (const Waits& waits : kWaits) {
    SCOPED_TRACE(waits.name);
    ranks::Job job{.ranks = 2};
    job.body = [&](ranks::Process& process) {
      fail_second_link(process, waits, [](trestleComm_t second) { EXPECT_TRUE(succeeded(trestleCommAbort(second))); });
    };
    ranks::expect_ended_well(ranks::run(job));
  }
}

// Behind the failure rank 1 does nothing for the first link any more, and nobody aborts it. The end of rank 0's
// scheduler ends it, with that failure, and does not wait for the deadline.
TEST(GradientLinks, DestroyBehindAFailureEndsOtherLinksUnderWay) {
  ranks::joined({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
    trestleComm_t second = copy_of(comm, process.rank), third = copy_of(comm, process.rank);
    trestleGrad_t grad = make({comm, second, third});
    Model model(kThree, Memory::kApart, process.rank);
    model.register_in(grad);
    ASSERT_TRUE(succeeded(trestleGradPlan(grad, "sync")));
    if (process.rank == 1) {
      ranks::meet(process.board, 2);
      EXPECT_TRUE(succeeded(trestleCommAbort(second)));
      ranks::meet(process.board, 2);
    } else {
      model.fill(1);
      model.make_ready(grad, 0);
      ASSERT_TRUE(succeeded(trestleGradStepEnd(grad)));
      ranks::wait_until([&] { return stats_of(grad).messages == 1; });
      ranks::meet(process.board, 2);
      EXPECT_TRUE(refused(trestleGradWaitParam(grad, 0), trestleAborted, {"rank 1"}));
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
      trestleResult_t first = trestleSuccess, idle = trestleSuccess;
      EXPECT_TRUE(succeeded(trestleCommGetAsyncError(comm, &first)));
      EXPECT_EQ(first, trestleAborted) << trestleGetLastError(comm);
      EXPECT_TRUE(succeeded(trestleCommGetAsyncError(third, &idle)));
      EXPECT_EQ(idle, trestleSuccess) << "nothing was under way there";
      ranks::meet(process.board, 2);
    }
    if (process.rank == 1) {
      EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
      EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
    } else {
      for (trestleComm_t one : {comm, second}) EXPECT_TRUE(succeeded(trestleCommDestroy(one)));
    }
    EXPECT_TRUE(succeeded(trestleCommDestroy(third)));
  });
}

// The program itself aborts the second link, while another thread of it waits.
TEST(GradientLinks, TheOwnAbortOfAnotherLinkEndsTheWait) {
  ranks::on_threads({.ranks = 1}, [](int rank, trestleComm_t comm) {
    trestleComm_t second = copy_of(comm, rank);
    trestleGrad_t grad = make({comm, second});
    Model model(kThree, Memory::kApart, rank);
    model.register_in(grad);
    EXPECT_TRUE(succeeded(trestleCommAbort(second)));
    EXPECT_TRUE(refused(trestleGradPlan(grad, "sync"), trestleAborted, {"the communicator was aborted"}));
    EXPECT_TRUE(refused(trestleGradStepEnd(grad), trestleAborted, {"the communicator was aborted"}));
    EXPECT_TRUE(succeeded(trestleGradDestroy(grad)));
    expect_sums(comm, 1);
  });
}

}  // namespace
}  // namespace gradient_links_test
}  // namespace gradients
