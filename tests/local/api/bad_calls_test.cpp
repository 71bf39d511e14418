// Calls with wrong arguments. Each returns its code and a sentence that names the error. Nothing is changed or
// enqueued, and the communicators work afterwards.
#include <gtest/gtest.h>

#include <climits>
#include <cstdint>
#include <functional>
#include <string>

#include "conformance/api_call.h"
#include "support/ranks.h"

namespace api {
namespace {

using ranks::refused;
using ranks::succeeded;

// Two ranks of one thread, and the objects that calls need.
struct World {
  trestleComm_t comms[2] = {};
  trestleComm_t comm = nullptr;  // rank 0's
  float a[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  float b[8] = {};
  trestleStream_t stream = nullptr;
  trestleEvent_t event = nullptr;
};

struct BadCall {
  const char* name;
  trestleResult_t code;
  std::vector<std::string> facts;
  std::function<trestleResult_t(World&)> call;
};

const auto kType = trestleFloat32;
const auto kBadType = static_cast<trestleDataType_t>(12);
const auto kNegativeType = static_cast<trestleDataType_t>(-1);
const auto kBadOp = static_cast<trestleRedOp_t>(5);

std::vector<BadCall> collective_calls() {
  const auto arg = trestleInvalidArgument;
  return {
      {"all-reduce, no send",
       arg,
       {"AllReduce", "send"},
       [](World& w) { return trestleAllReduce(nullptr, w.b, 8, kType, trestleSum, w.comm, nullptr); }},
      {"all-reduce, no receive",
       arg,
       {"AllReduce", "receive"},
       [](World& w) { return trestleAllReduce(w.a, nullptr, 8, kType, trestleSum, w.comm, nullptr); }},
      {"all-reduce, no communicator",
       arg,
       {"AllReduce", "comm"},
       [](World& w) { return trestleAllReduce(w.a, w.b, 8, kType, trestleSum, nullptr, nullptr); }},
      {"all-reduce, unknown type",
       arg,
       {"AllReduce", "type", "12"},
       [](World& w) { return trestleAllReduce(w.a, w.b, 8, kBadType, trestleSum, w.comm, nullptr); }},
      {"all-reduce, negative type",
       arg,
       {"AllReduce", "type", "-1"},
       [](World& w) { return trestleAllReduce(w.a, w.b, 8, kNegativeType, trestleSum, w.comm, nullptr); }},
      {"all-reduce, unknown operator",
       arg,
       {"AllReduce", "operator", "5"},
       [](World& w) { return trestleAllReduce(w.a, w.b, 8, kType, kBadOp, w.comm, nullptr); }},
      {"all-reduce, operator far off",
       arg,
       {"AllReduce", "operator", "256"},
       [](World& w) {
         return trestleAllReduce(w.a, w.b, 8, kType, static_cast<trestleRedOp_t>(256), w.comm, nullptr);
       }},
      {"all-reduce, type far off",
       arg,
       {"AllReduce", "type", "263"},
       [](World& w) {
         return trestleAllReduce(w.a, w.b, 8, static_cast<trestleDataType_t>(263), trestleSum, w.comm, nullptr);
       }},
      {"all-reduce, size overflows",
       arg,
       {"AllReduce", "count"},
       [](World& w) { return trestleAllReduce(w.a, w.b, SIZE_MAX / 2, kType, trestleSum, w.comm, nullptr); }},
      {"all-reduce, size wraps to 4 bytes",
       arg,
       {"AllReduce", "count"},
       [](World& w) { return trestleAllReduce(w.a, w.b, SIZE_MAX / 4 + 2, kType, trestleSum, w.comm, nullptr); }},
      {"reduce-scatter, all blocks overflow",
       arg,
       {"ReduceScatter", "count"},
       [](World& w) { return trestleReduceScatter(w.a, w.b, SIZE_MAX / 4, kType, trestleSum, w.comm, nullptr); }},
      {"reduce-scatter, no send",
       arg,
       {"ReduceScatter", "send"},
       [](World& w) { return trestleReduceScatter(nullptr, w.b, 1, kType, trestleSum, w.comm, nullptr); }},
      {"all-gather, no receive",
       arg,
       {"AllGather", "receive"},
       [](World& w) { return trestleAllGather(w.a, nullptr, 1, kType, w.comm, nullptr); }},
      {"all-gather, unknown type",
       arg,
       {"AllGather", "type"},
       [](World& w) { return trestleAllGather(w.a, w.b, 1, kBadType, w.comm, nullptr); }},
      {"broadcast, root too large",
       arg,
       {"Broadcast", "root", "2"},
       [](World& w) { return trestleBroadcast(w.a, w.b, 1, kType, 2, w.comm, nullptr); }},
      {"broadcast, negative root",
       arg,
       {"Broadcast", "root", "-1"},
       [](World& w) { return trestleBroadcast(w.a, w.b, 1, kType, -1, w.comm, nullptr); }},
      {"broadcast, root without send",
       arg,
       {"Broadcast", "send"},
       [](World& w) { return trestleBroadcast(nullptr, w.b, 1, kType, 0, w.comm, nullptr); }},
      {"broadcast, no receive",
       arg,
       {"Broadcast", "receive"},
       [](World& w) { return trestleBroadcast(w.a, nullptr, 1, kType, 1, w.comm, nullptr); }},
      {"reduce, root without receive",
       arg,
       {"Reduce", "receive"},
       [](World& w) { return trestleReduce(w.a, nullptr, 1, kType, trestleSum, 0, w.comm, nullptr); }},
      {"reduce, root too large",
       arg,
       {"Reduce", "root", "9"},
       [](World& w) { return trestleReduce(w.a, w.b, 1, kType, trestleSum, 9, w.comm, nullptr); }},
      {"all-to-all, no send",
       arg,
       {"AllToAll", "send"},
       [](World& w) { return trestleAllToAll(nullptr, w.b, 1, kType, w.comm, nullptr); }},
      {"send, no buffer",
       arg,
       {"Send", "buffer"},
       [](World& w) { return trestleSend(nullptr, 1, kType, 1, w.comm, nullptr); }},
      {"send, peer too large",
       arg,
       {"Send", "peer", "2"},
       [](World& w) { return trestleSend(w.a, 1, kType, 2, w.comm, nullptr); }},
      {"receive, negative peer",
       arg,
       {"Recv", "peer", "-1"},
       [](World& w) { return trestleRecv(w.a, 1, kType, -1, w.comm, nullptr); }},
      {"receive, no buffer",
       arg,
       {"Recv", "buffer"},
       [](World& w) { return trestleRecv(nullptr, 1, kType, 1, w.comm, nullptr); }},
      {"barrier, no communicator", arg, {"Barrier", "comm"}, [](World&) { return trestleBarrier(nullptr, nullptr); }},
  };
}

// Counts whose bytes overflow: of one buffer, of the blocks of all ranks, and counts that wrap around to a few bytes.
std::vector<BadCall> overflowing_calls() {
  const auto arg = trestleInvalidArgument;
  const size_t two_to_62 = size_t{1} << 62;
  return {
      {"all-gather, all blocks overflow",
       arg,
       {"AllGather", "count"},
       [](World& w) { return trestleAllGather(w.a, w.b, SIZE_MAX / 4, kType, w.comm, nullptr); }},
      {"all-gather, wraps to nothing",
       arg,
       {"AllGather", "count"},
       [=](World& w) { return trestleAllGather(w.a, w.b, two_to_62, kType, w.comm, nullptr); }},
      {"all-gather of bytes, two blocks wrap to 4 bytes",
       arg,
       {"AllGather", "count"},
       [](World& w) { return trestleAllGather(w.a, w.b, SIZE_MAX / 2 + 3, trestleInt8, w.comm, nullptr); }},
      {"all-to-all, all blocks overflow",
       arg,
       {"AllToAll", "count"},
       [](World& w) { return trestleAllToAll(w.a, w.b, SIZE_MAX / 4, kType, w.comm, nullptr); }},
      {"all-to-all, wraps to 4 bytes",
       arg,
       {"AllToAll", "count"},
       [=](World& w) { return trestleAllToAll(w.a, w.b, two_to_62 + 1, kType, w.comm, nullptr); }},
      {"send, overflows",
       arg,
       {"Send", "count"},
       [](World& w) { return trestleSend(w.a, SIZE_MAX / 2, kType, 1, w.comm, nullptr); }},
      {"send, wraps to 4 bytes",
       arg,
       {"Send", "count"},
       [=](World& w) { return trestleSend(w.a, two_to_62 + 1, kType, 1, w.comm, nullptr); }},
      {"receive, wraps to 4 bytes",
       arg,
       {"Recv", "count"},
       [=](World& w) { return trestleRecv(w.a, two_to_62 + 1, kType, 1, w.comm, nullptr); }},
      {"prediction, overflows",
       arg,
       {"PredictTime", "count"},
       [](World& w) {
         double t = 0;
         return trestlePredictTime(w.comm, trestleCollAllReduce, SIZE_MAX / 2, kType, &t);
       }},
      {"prediction, all blocks wrap to 8 bytes",
       arg,
       {"PredictTime", "count"},
       [=](World& w) {
         double t = 0;
         return trestlePredictTime(w.comm, trestleCollAllGather, two_to_62 + 1, kType, &t);
       }},
  };
}

std::vector<BadCall> other_calls() {
  const auto arg = trestleInvalidArgument;
  return {
      {"version", arg, {"version"}, [](World&) { return trestleGetVersion(nullptr); }},
      {"id", arg, {"id"}, [](World&) { return trestleGetUniqueId(nullptr); }},
      {"count", arg, {"count"}, [](World& w) { return trestleCommCount(w.comm, nullptr); }},
      {"rank", arg, {"rank"}, [](World& w) { return trestleCommUserRank(w.comm, nullptr); }},
      {"async error", arg, {"asyncError"}, [](World& w) { return trestleCommGetAsyncError(w.comm, nullptr); }},
      {"synchronize", arg, {"comm"}, [](World&) { return trestleCommSynchronize(nullptr); }},
      {"finalize", arg, {"comm"}, [](World&) { return trestleCommFinalize(nullptr); }},
      {"destroy", arg, {"comm"}, [](World&) { return trestleCommDestroy(nullptr); }},
      {"abort", arg, {"comm"}, [](World&) { return trestleCommAbort(nullptr); }},
      {"stream to nowhere", arg, {"stream"}, [](World&) { return trestleStreamCreate(nullptr); }},
      {"no stream to wait for", arg, {"stream"}, [](World&) { return trestleStreamSynchronize(nullptr); }},
      {"no stream to ask", arg, {"stream"}, [](World&) { return trestleStreamQuery(nullptr); }},
      {"no stream to destroy", arg, {"stream"}, [](World&) { return trestleStreamDestroy(nullptr); }},
      {"event to nowhere", arg, {"event"}, [](World&) { return trestleEventCreate(nullptr); }},
      {"wait for no event", arg, {"event"}, [](World& w) { return trestleStreamWaitEvent(w.stream, nullptr); }},
      {"record no event", arg, {"event"}, [](World& w) { return trestleEventRecord(nullptr, w.stream); }},
      {"record on no stream", arg, {"stream"}, [](World& w) { return trestleEventRecord(w.event, nullptr); }},
      {"no event to ask", arg, {"event"}, [](World&) { return trestleEventQuery(nullptr); }},
      {"start without a request",
       arg,
       {"request"},
       [](World& w) { return trestleAllReduceStart(w.a, w.b, 8, kType, trestleSum, w.comm, nullptr, nullptr); }},
      {"finish of no request", arg, {"request"}, [](World&) { return trestleAllReduceFinish(nullptr, nullptr); }},
      {"wait for no request", arg, {"request"}, [](World&) { return trestleRequestWait(nullptr); }},
      {"free no request", arg, {"request"}, [](World&) { return trestleRequestFree(nullptr); }},
      {"memory to nowhere", arg, {"ptr"}, [](World&) { return trestleMemAlloc(nullptr, 8); }},
      {"foreign memory", arg, {"trestleMemAlloc"}, [](World& w) { return trestleMemFree(w.a); }},
      {"more memory than there is",
       trestleSystemError,
       {"1152921504606846976"},
       [](World&) {
         void* p = nullptr;
         return trestleMemAlloc(&p, size_t{1} << 60);
       }},
      {"prediction to nowhere",
       arg,
       {"microseconds"},
       [](World& w) { return trestlePredictTime(w.comm, trestleCollAllReduce, 8, kType, nullptr); }},
      {"prediction of what is not",
       arg,
       {"collective", "15"},
       [](World& w) {
         double t = 0;
         return trestlePredictTime(w.comm, static_cast<trestleCollective_t>(15), 8, kType, &t);
       }},
      {"shards to nowhere",
       arg,
       {"nranges"},
       [](World& w) { return trestleShardRanges(w.comm, 0, 8, kType, nullptr, nullptr); }},
      {"shards of a negative rank",
       arg,
       {"rank", "-1"},
       [](World& w) {
         int n = 0;
         return trestleShardRanges(w.comm, -1, 8, kType, nullptr, &n);
       }},
      {"shards of an unknown type",
       arg,
       {"type"},
       [](World& w) {
         int n = 0;
         return trestleShardRanges(w.comm, 0, 8, kBadType, nullptr, &n);
       }},
      {"communicators to nowhere", arg, {"comms"}, [](World&) { return trestleCommInitAll(nullptr, 2, nullptr); }},
      {"no ranks", arg, {"nranks", "0"}, [](World& w) { return trestleCommInitAll(w.comms, 0, nullptr); }},
      {"devices",
       arg,
       {"devlist[1]", "-2"},
       [](World& w) {
         const int devices[2] = {-1, -2};
         return trestleCommInitAll(w.comms, 2, devices);
       }},
      {"communicator to nowhere",
       arg,
       {"comm"},
       [](World&) { return trestleCommInitRank(nullptr, 1, trestleUniqueId{}, 0); }},
      {"rank beyond",
       arg,
       {"rank 3", "2"},
       [](World& w) { return trestleCommInitRank(&w.comm, 3, trestleUniqueId{}, 3); }},
      {"negative rank",
       arg,
       {"rank -1"},
       [](World& w) { return trestleCommInitRank(&w.comm, 3, trestleUniqueId{}, -1); }},
      {"an id that is none",
       arg,
       {"id"},
       [](World& w) {
         trestleUniqueId id;
         for (char& c : id.internal) c = 'x';
         return trestleCommInitRank(&w.comm, 2, id, 0);
       }},
      {"nothing says where to meet",
       trestleInvalidUsage,
       {"TRESTLE_COMM_ID"},
       [](World& w) { return trestleCommInitRank(&w.comm, 2, trestleUniqueId{}, 0); }},
      {"end without start", trestleInvalidUsage, {"Group"}, [](World&) { return trestleGroupEnd(); }},
  };
}

trestleResult_t with_config(World& w, const std::function<void(trestleConfig_t&)>& change) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  change(config);
  return trestleCommInitAllConfig(w.comms, 2, &config);
}

std::vector<BadCall> configurations() {
  const auto bad = [](const char* name, std::vector<std::string> facts, std::function<void(trestleConfig_t&)> change) {
    return BadCall{name, trestleInvalidArgument, std::move(facts),
                   [change = std::move(change)](World& w) { return with_config(w, change); }};
  };
  return {
      bad("size", {"size"}, [](trestleConfig_t& c) { c.size = 3; }),
      bad("magic", {"magic"}, [](trestleConfig_t& c) { c.magic = 1; }),
      bad("neither blocking nor not", {"blocking", "2"}, [](trestleConfig_t& c) { c.blocking = 2; }),
      bad("chunks", {"chunks", "-5"}, [](trestleConfig_t& c) { c.chunks = -5; }),
      bad("too many chunks", {"1000000"}, [](trestleConfig_t& c) { c.chunks = 1'000'000; }),
      bad("dims of another product", {"4x2", "8", "2"}, [](trestleConfig_t& c) { c.dims = "4x2"; }),
      bad("dims that are none", {"abc"}, [](trestleConfig_t& c) { c.dims = "abc"; }),
      bad("a dimension of 0", {"2x0"}, [](trestleConfig_t& c) { c.dims = "2x0"; }),
      bad("dims that end early", {"2x"}, [](trestleConfig_t& c) { c.dims = "2x"; }),
      bad("dims that overflow", {"65536x65536"}, [](trestleConfig_t& c) { c.dims = "65536x65536"; }),
      bad("unknown transport", {"pigeon", "loopback", "shm", "tcp"},
          [](trestleConfig_t& c) { c.transport = "pigeon"; }),
      bad("more transports than dimensions", {"shm,tcp,tcp"}, [](trestleConfig_t& c) { c.transport = "shm,tcp,tcp"; }),
      bad("unknown algorithm", {"quick", "ring", "direct", "hd", "rd", "tree", "dbtree"},
          [](trestleConfig_t& c) { c.algo = "quick"; }),
      bad("unknown collective", {"allsum", "allreduce"}, [](trestleConfig_t& c) { c.algo = "allsum:ring"; }),
      bad("algorithm that cannot serve", {"tree", "ring", "direct"},
          [](trestleConfig_t& c) { c.algo = "reducescatter:tree"; }),
      bad("sizes that end before they begin", {"64k-1k"}, [](trestleConfig_t& c) { c.algo = "allreduce:64k-1k=ring"; }),
      bad("unknown policy", {"random", "baseline"}, [](trestleConfig_t& c) { c.sched = "random"; }),
      bad("unknown order inside a dimension", {"config.intra", "TRESTLE_INTRA=lifo", "scf"},
          [](trestleConfig_t& c) { c.intra = "lifo"; }),
      bad("ports in no order", {"config.portRange", "9-1"}, [](trestleConfig_t& c) { c.portRange = "9-1"; }),
      bad("measuring now and then", {"config.calibrate", "TRESTLE_CALIBRATE=sometimes", "cached"},
          [](trestleConfig_t& c) { c.calibrate = "sometimes"; }),
      bad("interfaces that are not there", {"TRESTLE_SOCKET_IFNAME", "=nosuch7", "lo"},
          [](trestleConfig_t& c) { c.transport = "tcp", c.socketIfname = "=nosuch7"; }),
      bad("another family", {"config.socketFamily", "TRESTLE_SOCKET_FAMILY=ipx", "AF_INET6"},
          [](trestleConfig_t& c) { c.socketFamily = "ipx"; }),
      bad("segments of more than there is", {"config.segmentBytes", "TRESTLE_SEGMENT=2147483648", "1G"},
          [](trestleConfig_t& c) { c.segmentBytes = int64_t{1} << 31; }),
      bad("more than the express path has room for", {"config.expressBytes", "TRESTLE_EXPRESS_BYTES=8193"},
          [](trestleConfig_t& c) { c.expressBytes = 8193; }),
      bad("eager beyond measure", {"config.eagerBytes", "TRESTLE_EAGER=1048577", "1M"},
          [](trestleConfig_t& c) { c.eagerBytes = (1 << 20) + 1; }),
      bad("too much at once", {"config.inflight", "TRESTLE_INFLIGHT=1025", "1024"},
          [](trestleConfig_t& c) { c.inflight = 1025; }),
      bad("neither mapped nor not", {"config.shmMap", "TRESTLE_SHM_MAP=2", "1 or 0"},
          [](trestleConfig_t& c) { c.shmMap = 2; }),
      bad("plans neither checked nor not", {"config.checkPlans", "TRESTLE_CHECK_PLANS=2", "1 or 0"},
          [](trestleConfig_t& c) { c.checkPlans = 2; }),
      bad("calls neither checked nor not", {"config.check", "TRESTLE_CHECK=-1", "1 or 0"},
          [](trestleConfig_t& c) { c.check = -1; }),
      bad("hardly any staging", {"config.stagingBytes", "1M"}, [](trestleConfig_t& c) { c.stagingBytes = 1; }),
      bad("a heart that stands still", {"config.heartbeatMs", "100ms"}, [](trestleConfig_t& c) { c.heartbeatMs = 1; }),
      bad("neither express nor not", {"config.express", "1 or 0"}, [](trestleConfig_t& c) { c.express = 2; }),
      bad("spinning backwards", {"config.spinUs", "auto"}, [](trestleConfig_t& c) { c.spinUs = -2; }),
      bad("topology file that is not there", {"/nonexistent/topology.json"},
          [](trestleConfig_t& c) { c.topoFile = "/nonexistent/topology.json"; }),
  };
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
          EXPECT_TRUE(refused(bad.call(world), bad.code, bad.facts)) << bad.name;
          EXPECT_EQ(world.comm, before.comm) << bad.name << " wrote a communicator";
          EXPECT_EQ(world.comms[0], before.comms[0]) << bad.name << " wrote a communicator";
          trestleResult_t state = trestleInternalError;
          EXPECT_TRUE(succeeded(trestleCommGetAsyncError(before.comm, &state)));
          EXPECT_EQ(state, trestleSuccess) << bad.name << " is no failure of the communicator";
          world = before;
        }
        std::vector<std::unique_ptr<Execution>> runs;
        for (int r = 0; r < 2; ++r) {
          runs.push_back(std::make_unique<Execution>(Call{.count = 5000}, r, 2));
          ASSERT_TRUE(succeeded(runs.back()->start(world.comms[r], nullptr), world.comms[r]));
        }
        for (int r = 0; r < 2; ++r) {
          ASSERT_TRUE(succeeded(trestleCommSynchronize(world.comms[r]), world.comms[r]));
          EXPECT_EQ(runs[static_cast<size_t>(r)]->verify(), "");
          EXPECT_TRUE(succeeded(trestleCommDestroy(world.comms[r])));
        }
        EXPECT_TRUE(succeeded(trestleStreamDestroy(world.stream)));
        EXPECT_TRUE(succeeded(trestleEventDestroy(world.event)));
      },
      {}, 60);
}

TEST(ApiBadCalls, Collectives) {
  expect_refused(collective_calls());
}
TEST(ApiBadCalls, CountsThatOverflow) {
  expect_refused(overflowing_calls());
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
}  // namespace api
