// Communicators end while work waits: abort is bounded, and calls that come too late are refused, not lost.
#include <gtest/gtest.h>
#include <trestle/trestle.h>

#include <string>

#include "support/ranks.h"

namespace api {
namespace api_life_test {
namespace {

struct Pair {
  trestleComm_t rank[2] = {nullptr, nullptr};
  Pair() { EXPECT_EQ(trestleCommInitAll(rank, 2, nullptr), trestleSuccess) << trestleGetLastError(nullptr); }
};

TEST(ApiLife, AbortDoesNotWaitForAnotherCommunicatorsWork) {
  ranks::isolated([] {
    Pair blocked;
    Pair aborted;
    trestleStream_t stream = nullptr;
    ASSERT_EQ(trestleStreamCreate(&stream), trestleSuccess);
    int32_t message = 0;
    float value = 1;
    // No rank ever sends this message, so the calls after it on the stream never reach the head.
    ASSERT_EQ(trestleRecv(&message, 1, trestleInt32, 1, blocked.rank[0], stream), trestleSuccess);
    ASSERT_EQ(trestleAllReduce(&value, &value, 1, trestleFloat32, trestleSum, aborted.rank[0], stream), trestleSuccess);
    EXPECT_EQ(trestleCommAbort(aborted.rank[0]), trestleSuccess);
    EXPECT_EQ(trestleStreamQuery(stream), trestleInProgress) << "the receive is of the other communicator";
    EXPECT_EQ(trestleCommAbort(blocked.rank[0]), trestleSuccess);
    EXPECT_EQ(trestleStreamSynchronize(stream), trestleAborted);
    EXPECT_EQ(trestleStreamDestroy(stream), trestleSuccess);
    EXPECT_EQ(trestleCommAbort(aborted.rank[1]), trestleSuccess);
    EXPECT_EQ(trestleCommAbort(blocked.rank[1]), trestleSuccess);
  });
}

TEST(ApiLife, AFailedCommunicatorDoesNotStopTheOthersOfTheProcess) {
  ranks::isolated([] {
    Pair failed;
    Pair alive;
    trestleStream_t stream = nullptr;
    ASSERT_EQ(trestleStreamCreate(&stream), trestleSuccess);
    int32_t received = 0;
    int32_t never = 0;
    const int32_t sent = 7;
    ASSERT_EQ(trestleRecv(&received, 1, trestleInt32, 1, alive.rank[0], stream), trestleSuccess);
    ASSERT_EQ(trestleRecv(&never, 1, trestleInt32, 1, failed.rank[0], stream), trestleSuccess);
    EXPECT_EQ(trestleCommAbort(failed.rank[1]), trestleSuccess);  // rank 0 is told of it while its receive is queued
    ASSERT_EQ(trestleSend(&sent, 1, trestleInt32, 0, alive.rank[1], nullptr), trestleSuccess);
    EXPECT_EQ(trestleCommSynchronize(alive.rank[1]), trestleSuccess);
    EXPECT_EQ(trestleCommSynchronize(alive.rank[0]), trestleSuccess);
    EXPECT_EQ(received, sent);
    EXPECT_EQ(trestleStreamSynchronize(stream), trestleAborted);
    EXPECT_EQ(trestleStreamDestroy(stream), trestleSuccess);
    EXPECT_EQ(trestleCommAbort(failed.rank[0]), trestleSuccess);
    for (trestleComm_t comm : alive.rank) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  });
}

TEST(ApiLife, ACommunicatorMayGoWhileItsGroupIsNotDone) {
  ranks::isolated([] {
    Pair first;
    Pair second;
    trestleStream_t stream = nullptr;
    ASSERT_EQ(trestleStreamCreate(&stream), trestleSuccess);
    int32_t a = 0;
    int32_t b = 0;
    const int32_t sent = 3;
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    ASSERT_EQ(trestleRecv(&a, 1, trestleInt32, 1, first.rank[0], stream), trestleSuccess);
    ASSERT_EQ(trestleRecv(&b, 1, trestleInt32, 1, second.rank[0], stream), trestleSuccess);
    ASSERT_EQ(trestleGroupEnd(), trestleSuccess);
    ASSERT_EQ(trestleSend(&sent, 1, trestleInt32, 0, first.rank[1], nullptr), trestleSuccess);
    for (trestleComm_t comm : first.rank) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
    EXPECT_EQ(a, sent);
    ASSERT_EQ(trestleSend(&sent, 1, trestleInt32, 0, second.rank[1], nullptr), trestleSuccess);
    EXPECT_EQ(trestleStreamSynchronize(stream), trestleSuccess);
    EXPECT_EQ(b, sent);
    EXPECT_EQ(trestleStreamDestroy(stream), trestleSuccess);
    for (trestleComm_t comm : second.rank) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  });
}

TEST(ApiLife, WhatComesAfterTheEndIsRefused) {
  ranks::isolated([] {
    trestleComm_t comm = nullptr;
    ASSERT_EQ(trestleCommInitAll(&comm, 1, nullptr), trestleSuccess);
    float data[4] = {1, 2, 3, 4};
    trestleRequest_t request = nullptr;
    ASSERT_EQ(trestleAllReduceStart(data, data, 4, trestleFloat32, trestleSum, comm, nullptr, &request),
              trestleSuccess);
    ASSERT_EQ(trestleRequestWait(request), trestleSuccess);
    ASSERT_EQ(trestleCommFinalize(comm), trestleSuccess);
    ASSERT_EQ(trestleGroupStart(), trestleSuccess);
    EXPECT_EQ(trestleAllReduce(data, data, 4, trestleFloat32, trestleSum, comm, nullptr), trestleInvalidUsage);
    EXPECT_EQ(trestleGroupEnd(), trestleInvalidUsage);
    ASSERT_EQ(trestleCommDestroy(comm), trestleSuccess);
    EXPECT_EQ(trestleAllReduceFinish(request, nullptr), trestleInvalidUsage);
    EXPECT_NE(std::string(trestleGetLastError(nullptr)).find("destroyed"), std::string::npos);
    EXPECT_EQ(trestleRequestFree(request), trestleSuccess);
  });
}

}  // namespace
}  // namespace api_life_test
}  // namespace api
