// Calls with wrong arguments, but for collectives. Each returns its code and a sentence that names the error. Nothing
// is changed or enqueued, and the communicators work afterwards.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>

#include "support/ranks.h"

namespace api {
namespace bad_calls_test {
namespace {

using ranks::refused;
using ranks::succeeded;

// Two ranks of one thread, and what calls need. The calls are rank 0's.
struct World {
  trestleComm_t comms[2] = {};
  trestleComm_t comm = nullptr;
  float a[8] = {};
  trestleStream_t stream = nullptr;
  trestleEvent_t event = nullptr;
  int number = 0;
  double time = 0;
  void* memory = nullptr;
};

struct BadCall {
  std::vector<std::string> facts;
  std::function<trestleResult_t(World&)> call;
  trestleResult_t code = trestleInvalidArgument;
};

const auto kType = trestleFloat32;
const auto kBadType = static_cast<trestleDataType_t>(12);
const auto kBadCollective = static_cast<trestleCollective_t>(15);
const int kBadDevices[] = {-1, -2};

trestleUniqueId id_of(char c) {
  trestleUniqueId id;
  std::fill(std::begin(id.internal), std::end(id.internal), c);
  return id;
}

std::vector<BadCall> other_calls() {
  return {
      {{"version"}, [](World&) { return trestleGetVersion(nullptr); }},
      {{"id"}, [](World&) { return trestleGetUniqueId(nullptr); }},
      {{"count"}, [](World& w) { return trestleCommCount(w.comm, nullptr); }},
      {{"rank"}, [](World& w) { return trestleCommUserRank(w.comm, nullptr); }},
      {{"asyncError"}, [](World& w) { return trestleCommGetAsyncError(w.comm, nullptr); }},
      {{"comm"}, [](World&) { return trestleCommSynchronize(nullptr); }},
      {{"comm"}, [](World&) { return trestleCommFinalize(nullptr); }},
      {{"comm"}, [](World&) { return trestleCommDestroy(nullptr); }},
      {{"comm"}, [](World&) { return trestleCommAbort(nullptr); }},
      {{"stream"}, [](World&) { return trestleStreamCreate(nullptr); }},
      {{"stream"}, [](World&) { return trestleStreamSynchronize(nullptr); }},
      {{"stream"}, [](World&) { return trestleStreamQuery(nullptr); }},
      {{"stream"}, [](World&) { return trestleStreamDestroy(nullptr); }},
      {{"event"}, [](World&) { return trestleEventCreate(nullptr); }},
      {{"event"}, [](World& w) { return trestleStreamWaitEvent(w.stream, nullptr); }},
      {{"event"}, [](World& w) { return trestleEventRecord(nullptr, w.stream); }},
      {{"stream"}, [](World& w) { return trestleEventRecord(w.event, nullptr); }},
      {{"event"}, [](World&) { return trestleEventQuery(nullptr); }},
      {{"request"},
       [](World& w) { return trestleAllReduceStart(w.a, w.a, 8, kType, trestleSum, w.comm, nullptr, nullptr); }},
      {{"request"}, [](World&) { return trestleAllReduceFinish(nullptr, nullptr); }},
      {{"request"}, [](World&) { return trestleRequestWait(nullptr); }},
      {{"request"}, [](World&) { return trestleRequestFree(nullptr); }},
      {{"ptr"}, [](World&) { return trestleMemAlloc(nullptr, 8); }},
      {{"trestleMemAlloc"}, [](World& w) { return trestleMemFree(w.a); }},
      {{"1152921504606846976"},
       [](World& w) { return trestleMemAlloc(&w.memory, size_t{1} << 60); },
       trestleSystemError},
      {{"microseconds"}, [](World& w) { return trestlePredictTime(w.comm, trestleCollAllReduce, 8, kType, nullptr); }},
      {{"collective", "15"}, [](World& w) { return trestlePredictTime(w.comm, kBadCollective, 8, kType, &w.time); }},
      {{"nranges"}, [](World& w) { return trestleShardRanges(w.comm, 0, 8, kType, nullptr, nullptr); }},
      {{"rank", "-1"}, [](World& w) { return trestleShardRanges(w.comm, -1, 8, kType, nullptr, &w.number); }},
      {{"type"}, [](World& w) { return trestleShardRanges(w.comm, 0, 8, kBadType, nullptr, &w.number); }},
      {{"comms"}, [](World&) { return trestleCommInitAll(nullptr, 2, nullptr); }},
      {{"nranks", "0"}, [](World& w) { return trestleCommInitAll(w.comms, 0, nullptr); }},
      {{"devlist[1]", "-2"}, [](World& w) { return trestleCommInitAll(w.comms, 2, kBadDevices); }},
      {{"comm"}, [](World&) { return trestleCommInitRank(nullptr, 1, id_of(0), 0); }},
      {{"rank 3", "2"}, [](World& w) { return trestleCommInitRank(&w.comm, 3, id_of(0), 3); }},
      {{"rank -1"}, [](World& w) { return trestleCommInitRank(&w.comm, 3, id_of(0), -1); }},
      {{"id"}, [](World& w) { return trestleCommInitRank(&w.comm, 2, id_of('x'), 0); }},
      {{"TRESTLE_COMM_ID"}, [](World& w) { return trestleCommInitRank(&w.comm, 2, id_of(0), 0); }, trestleInvalidUsage},
      {{"Group"}, [](World&) { return trestleGroupEnd(); }, trestleInvalidUsage},
  };
}

struct BadConfig {
  std::vector<std::string> facts;
  void (*change)(trestleConfig_t& c);
};

std::vector<BadCall> configurations() {
  static const BadConfig rows[] = {
      {{"size"}, [](trestleConfig_t& c) { c.size = 3; }},
      {{"magic"}, [](trestleConfig_t& c) { c.magic = 1; }},
      {{"blocking", "2"}, [](trestleConfig_t& c) { c.blocking = 2; }},
      {{"chunks", "-5"}, [](trestleConfig_t& c) { c.chunks = -5; }},
      {{"1000000"}, [](trestleConfig_t& c) { c.chunks = 1'000'000; }},
      {{"4x2", "8", "2"}, [](trestleConfig_t& c) { c.dims = "4x2"; }},
      {{"abc"}, [](trestleConfig_t& c) { c.dims = "abc"; }},
      {{"2x0"}, [](trestleConfig_t& c) { c.dims = "2x0"; }},
      {{"2x"}, [](trestleConfig_t& c) { c.dims = "2x"; }},
      {{"65536x65536"}, [](trestleConfig_t& c) { c.dims = "65536x65536"; }},
      {{"pigeon", "loopback", "shm", "tcp"}, [](trestleConfig_t& c) { c.transport = "pigeon"; }},
      {{"shm,tcp,tcp"}, [](trestleConfig_t& c) { c.transport = "shm,tcp,tcp"; }},
      {{"quick", "ring", "direct", "hd", "rd", "tree", "dbtree"}, [](trestleConfig_t& c) { c.algo = "quick"; }},
      {{"allsum", "allreduce"}, [](trestleConfig_t& c) { c.algo = "allsum:ring"; }},
      {{"tree", "ring", "direct"}, [](trestleConfig_t& c) { c.algo = "reducescatter:tree"; }},
      {{"64k-1k"}, [](trestleConfig_t& c) { c.algo = "allreduce:64k-1k=ring"; }},
      {{"random", "baseline"}, [](trestleConfig_t& c) { c.sched = "random"; }},
      {{"config.intra", "TRESTLE_INTRA=lifo", "scf"}, [](trestleConfig_t& c) { c.intra = "lifo"; }},
      {{"config.portRange", "9-1"}, [](trestleConfig_t& c) { c.portRange = "9-1"; }},
      {{"config.calibrate", "TRESTLE_CALIBRATE=sometimes", "cached"},
       [](trestleConfig_t& c) { c.calibrate = "sometimes"; }},
      {{"TRESTLE_SOCKET_IFNAME", "=nosuch7", "lo"},
       [](trestleConfig_t& c) { c.transport = "tcp", c.socketIfname = "=nosuch7"; }},
      {{"config.socketFamily", "TRESTLE_SOCKET_FAMILY=ipx", "AF_INET6"},
       [](trestleConfig_t& c) { c.socketFamily = "ipx"; }},
      {{"config.segmentBytes", "TRESTLE_SEGMENT=2147483648", "1G"},
       [](trestleConfig_t& c) { c.segmentBytes = int64_t{1} << 31; }},
      {{"config.expressBytes", "TRESTLE_EXPRESS_BYTES=8193"}, [](trestleConfig_t& c) { c.expressBytes = 8193; }},
      {{"config.eagerBytes", "TRESTLE_EAGER=1048577", "1M"}, [](trestleConfig_t& c) { c.eagerBytes = (1 << 20) + 1; }},
      {{"config.inflight", "TRESTLE_INFLIGHT=1025", "1024"}, [](trestleConfig_t& c) { c.inflight = 1025; }},
      {{"config.shmMap", "TRESTLE_SHM_MAP=2", "1 or 0"}, [](trestleConfig_t& c) { c.shmMap = 2; }},
      {{"config.checkPlans", "TRESTLE_CHECK_PLANS=2", "1 or 0"}, [](trestleConfig_t& c) { c.checkPlans = 2; }},
      {{"config.check", "TRESTLE_CHECK=-1", "1 or 0"}, [](trestleConfig_t& c) { c.check = -1; }},
      {{"config.stagingBytes", "1M"}, [](trestleConfig_t& c) { c.stagingBytes = 1; }},
      {{"config.heartbeatMs", "100ms"}, [](trestleConfig_t& c) { c.heartbeatMs = 1; }},
      {{"config.express", "1 or 0"}, [](trestleConfig_t& c) { c.express = 2; }},
      {{"config.spinUs", "auto"}, [](trestleConfig_t& c) { c.spinUs = -2; }},
      {{"/nonexistent/topology.json"}, [](trestleConfig_t& c) { c.topoFile = "/nonexistent/topology.json"; }},
  };
  std::vector<BadCall> calls;
  for (const BadConfig& row : rows) {
    calls.push_back({row.facts, [&row](World& w) {
                       trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
                       row.change(config);
                       return trestleCommInitAllConfig(w.comms, 2, &config);
                     }});
  }
  return calls;
}

void expect_refused(const std::vector<BadCall>& calls) {
  ranks::isolated(
      [&] {
        World world;
        ASSERT_TRUE(succeeded(trestleCommInitAll(world.comms, 2, nullptr)));
        ASSERT_TRUE(succeeded(trestleStreamCreate(&world.stream)));
        ASSERT_TRUE(succeeded(trestleEventCreate(&world.event)));
        world.comm = world.comms[0];
        const World before = world;
        for (const BadCall& bad : calls) {
          EXPECT_TRUE(refused(bad.call(world), bad.code, bad.facts)) << bad.facts[0];
          EXPECT_EQ(world.comm, before.comm) << bad.facts[0] << " wrote a communicator";
          EXPECT_EQ(world.comms[0], before.comms[0]) << bad.facts[0] << " wrote a communicator";
          trestleResult_t state = trestleInternalError;
          EXPECT_TRUE(succeeded(trestleCommGetAsyncError(before.comm, &state)));
          EXPECT_EQ(state, trestleSuccess) << bad.facts[0] << " is no failure of the communicator";
          world = before;
        }
        float x[] = {1, 2};
        for (int r = 0; r < 2; ++r)
          ASSERT_TRUE(succeeded(trestleAllReduce(&x[r], &x[r], 1, kType, trestleSum, world.comms[r], nullptr)));
        for (trestleComm_t comm : world.comms) {
          EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
          EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
        }
        EXPECT_EQ(x[0] + x[1], 6);
        EXPECT_TRUE(succeeded(trestleStreamDestroy(world.stream)));
        EXPECT_TRUE(succeeded(trestleEventDestroy(world.event)));
      },
      {}, 60);
}

TEST(ApiBadCalls, Others) {
  expect_refused(other_calls());
}
TEST(ApiBadCalls, Configurations) {
  expect_refused(configurations());
}

TEST(ApiBadCalls, DestroyedHandles) {
  ranks::isolated([] {
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, nullptr)));
    for (trestleComm_t comm : comms) ASSERT_TRUE(succeeded(trestleCommDestroy(comm)));
    float x = 1;
    const std::vector<std::string> facts = {"destroyed"};
    EXPECT_TRUE(refused(trestleAllReduce(&x, &x, 1, kType, trestleSum, comms[0], nullptr), trestleInvalidUsage, facts));
    EXPECT_TRUE(refused(trestleCommSynchronize(comms[0]), trestleInvalidUsage, facts));
    EXPECT_TRUE(refused(trestleCommDestroy(comms[0]), trestleInvalidUsage, facts));
    EXPECT_TRUE(refused(trestleCommAbort(comms[1]), trestleInvalidUsage, facts));
    int count = 7;
    EXPECT_TRUE(refused(trestleCommCount(comms[0], &count), trestleInvalidUsage, facts));
    EXPECT_EQ(count, 7);
    trestleStream_t stream = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
    ASSERT_TRUE(succeeded(trestleStreamDestroy(stream)));
    EXPECT_TRUE(refused(trestleStreamSynchronize(stream), trestleInvalidUsage, facts));
    ASSERT_TRUE(succeeded(trestleCommInitAll(comms, 2, nullptr)));
    EXPECT_TRUE(refused(trestleAllReduce(&x, &x, 1, kType, trestleSum, comms[0], stream), trestleInvalidUsage, facts));
  });
}

// A struct of an older, shorter version is read only up to its size.
TEST(ApiBadCalls, ShorterConfigurationsAreServed) {
  ranks::isolated([] {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.size = offsetof(trestleConfig_t, algo);
    config.dims = "2";
    config.algo = "not read";
    trestleComm_t comms[2] = {};
    ASSERT_TRUE(succeeded(trestleCommInitAllConfig(comms, 2, &config)));
    for (trestleComm_t comm : comms) EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  });
}

TEST(ApiBadCalls, TextsAreThereForEveryCode) {
  ranks::isolated([] {
    for (int code = -2; code < trestleNumResults + 3; ++code) {
      const char* text = trestleGetErrorString(static_cast<trestleResult_t>(code));
      ASSERT_NE(text, nullptr);
      EXPECT_NE(std::string(text), "");
    }
    EXPECT_EQ(std::string(trestleGetLastError(nullptr)), "") << "nothing has failed yet";
    trestleGetVersion(nullptr);
    EXPECT_NE(std::string(trestleGetLastError(nullptr)), "");
  });
}

}  // namespace
}  // namespace bad_calls_test
}  // namespace api
