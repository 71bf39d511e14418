// A group that is not ended: a thread that waits for its calls is told so, and so is a thread that never ends it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "support/ranks.h"

namespace api {
namespace open_group_test {
namespace {

using ranks::refused;
using ranks::succeeded;

// A communicator of one rank with two calls of its own.
struct Alone {
  trestleComm_t comm = nullptr;
  float x = 2;
  float y = 0;
  float z = 0;
  Alone() { EXPECT_TRUE(succeeded(trestleCommInitAll(&comm, 1, nullptr))); }
  trestleResult_t reduce(trestleStream_t stream) {
    return trestleAllReduce(&x, &y, 1, trestleFloat32, trestleSum, comm, stream);
  }
};

TEST(ApiOpenGroup, AWaitForItsCallsIsRefused) {
  ranks::isolated([] {
    Alone one, other;
    trestleStream_t stream = nullptr, idle = nullptr;
    trestleEvent_t before = nullptr, behind = nullptr;
    trestleRequest_t request = nullptr;
    for (trestleStream_t* s : {&stream, &idle}) ASSERT_TRUE(succeeded(trestleStreamCreate(s)));
    for (trestleEvent_t* e : {&before, &behind}) ASSERT_TRUE(succeeded(trestleEventCreate(e)));
    ASSERT_TRUE(succeeded(trestleEventRecord(before, stream)));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(one.comm))) << "nothing to wait for is in it yet";
    ASSERT_TRUE(succeeded(one.reduce(stream)));
    ASSERT_TRUE(
        succeeded(trestleAllReduceStart(&one.x, &one.z, 1, trestleFloat32, trestleSum, one.comm, nullptr, &request)));
    ASSERT_TRUE(succeeded(trestleEventRecord(behind, stream)));
    const auto told = [](trestleResult_t result, const char* function, const char* what) {
      return refused(result, trestleInvalidUsage, {function, what, "GroupEnd"});
    };
    EXPECT_TRUE(told(trestleCommSynchronize(one.comm), "CommSynchronize: 2 calls", "communicator"));
    EXPECT_TRUE(told(trestleStreamSynchronize(stream), "StreamSynchronize: 1 call ", "stream"));
    EXPECT_TRUE(told(trestleStreamQuery(stream), "StreamQuery", "stream"));
    EXPECT_TRUE(told(trestleEventSynchronize(behind), "EventSynchronize", "event's stream"));
    EXPECT_TRUE(told(trestleEventQuery(behind), "EventQuery", "event's stream"));
    EXPECT_TRUE(told(trestleRequestWait(request), "RequestWait", "request"));
    int done = 0;
    EXPECT_TRUE(told(trestleRequestTest(request, &done), "RequestTest", "request"));
    // Waits that do not concern the group's calls are allowed.
    EXPECT_TRUE(succeeded(trestleEventSynchronize(before)));
    EXPECT_TRUE(succeeded(trestleStreamSynchronize(idle)));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(other.comm)));
    std::thread([&] { EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream))); }).join();
    EXPECT_EQ(one.y, 0);
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    EXPECT_TRUE(succeeded(trestleRequestWait(request)));
    EXPECT_TRUE(succeeded(trestleEventSynchronize(behind)));
    EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream)));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(one.comm)));
    EXPECT_EQ(one.y, 2);
    EXPECT_TRUE(succeeded(trestleRequestFree(request)));
    for (trestleStream_t s : {stream, idle}) EXPECT_TRUE(succeeded(trestleStreamDestroy(s)));
    for (trestleEvent_t e : {before, behind}) EXPECT_TRUE(succeeded(trestleEventDestroy(e)));
    for (trestleComm_t comm : {one.comm, other.comm}) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

void forget_the_end() {
  Alone one;
  EXPECT_TRUE(succeeded(trestleGroupStart()));
  EXPECT_TRUE(succeeded(one.reduce(nullptr)));
  EXPECT_TRUE(succeeded(one.reduce(nullptr)));
  EXPECT_TRUE(succeeded(trestleCommDestroy(one.comm)));
}

TEST(ApiOpenGroup, IsToldWhenItsThreadOrProcessEnds) {
  for (const bool of_process : {false, true}) {
    SCOPED_TRACE(of_process);
    ranks::Job job;
    job.body = [&](ranks::Process&) {
      if (!of_process) return std::thread(forget_the_end).join();
      forget_the_end();
      std::exit(testing::Test::HasFailure() ? 1 : 0);
    };
    const auto outcomes = ranks::run(job);
    ranks::expect_ended_well(outcomes);
    EXPECT_TRUE(ranks::contains(outcomes[0].output, "GroupStart without GroupEnd): 2 calls were not made, "))
        << outcomes[0].output;
    EXPECT_TRUE(ranks::contains(outcomes[0].output, "1 not destroyed in order")) << outcomes[0].output;
  }
}

}  // namespace
}  // namespace open_group_test
}  // namespace api
