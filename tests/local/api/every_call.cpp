#include "local/api/every_call.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <mutex>
#include <regex>

#include "support/ranks.h"

namespace every_call {

namespace {

using ranks::succeeded;

constexpr size_t kPage = 4096;
constexpr size_t kMost = 64;  // ranks
constexpr trestleDataType_t kType = trestleFloat32;

// Arguments that are valid for any number of ranks.
float sent[kMost], received[kMost];
size_t ones[kMost], places[kMost];
trestleComm_t made_comm;
trestleComm_t made_comms[2];
trestleStream_t made_stream;
trestleEvent_t made_event;
trestleRequest_t made_request;
trestleRedOp_t made_op;
trestleUniqueId made_id;
void* made_memory;
void* made_registration;

// Once, because rank threads of a process share them.
void fill_arguments() {
  static std::once_flag once;
  std::call_once(once, [] {
    for (size_t i = 0; i < kMost; ++i) {
      ones[i] = 1;
      places[i] = i;
    }
  });
}

int add(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void*) {
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int s = 0; s < k; ++s) sum += static_cast<const float*>(sources[s])[i];
    static_cast<float*>(dst)[i] = sum;
  }
  return 0;
}

void append(std::vector<NamedCall>& to, std::vector<NamedCall> more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<NamedCall> life(const Things& t) {
  static trestleResult_t error;
  static int number;
  return {
      {"CommSplit", [=] { return trestleCommSplit(t.comm, 0, 0, &made_comm, nullptr); }},
      {"CommFinalize", [=] { return trestleCommFinalize(t.comm); }},
      {"CommDestroy", [=] { return trestleCommDestroy(t.comm); }},
      {"CommAbort", [=] { return trestleCommAbort(t.comm); }},
      {"CommGetAsyncError", [=] { return trestleCommGetAsyncError(t.comm, &error); }},
      {"CommSynchronize", [=] { return trestleCommSynchronize(t.comm); }},
      {"CommCount", [=] { return trestleCommCount(t.comm, &number); }},
      {"CommUserRank", [=] { return trestleCommUserRank(t.comm, &number); }},
      {"StreamDestroy", [=] { return trestleStreamDestroy(t.stream); }},
      {"StreamSynchronize", [=] { return trestleStreamSynchronize(t.stream); }},
      {"StreamQuery", [=] { return trestleStreamQuery(t.stream); }},
      {"StreamWaitEvent", [=] { return trestleStreamWaitEvent(t.stream, t.event); }},
      {"EventDestroy", [=] { return trestleEventDestroy(t.event); }},
      {"EventRecord", [=] { return trestleEventRecord(t.event, t.stream); }},
      {"EventSynchronize", [=] { return trestleEventSynchronize(t.event); }},
      {"EventQuery", [=] { return trestleEventQuery(t.event); }},
      {"EventNotify",
       [=] {
         return trestleEventNotify(
             t.event, [](void*, trestleResult_t) {}, nullptr);
       }},
  };
}

std::vector<NamedCall> collectives(const Things& t) {
  float* const s = sent;
  float* const r = received;
  return {
      {"AllReduce", [=] { return trestleAllReduce(s, r, 1, kType, trestleSum, t.comm, nullptr); }},
      {"ReduceScatter", [=] { return trestleReduceScatter(s, r, 1, kType, trestleSum, t.comm, nullptr); }},
      {"AllGather", [=] { return trestleAllGather(s, r, 1, kType, t.comm, nullptr); }},
      {"Broadcast", [=] { return trestleBroadcast(s, r, 1, kType, 0, t.comm, nullptr); }},
      {"Reduce", [=] { return trestleReduce(s, r, 1, kType, trestleSum, 0, t.comm, nullptr); }},
      {"AllToAll", [=] { return trestleAllToAll(s, r, 1, kType, t.comm, nullptr); }},
      {"Gather", [=] { return trestleGather(s, r, 1, kType, 0, t.comm, nullptr); }},
      {"Scatter", [=] { return trestleScatter(s, r, 1, kType, 0, t.comm, nullptr); }},
      {"AllGatherV", [=] { return trestleAllGatherV(s, 1, r, ones, places, kType, t.comm, nullptr); }},
      {"ReduceScatterV", [=] { return trestleReduceScatterV(s, r, ones, kType, trestleSum, t.comm, nullptr); }},
      {"AllToAllV", [=] { return trestleAllToAllV(s, ones, places, r, ones, places, kType, t.comm, nullptr); }},
      {"GatherV", [=] { return trestleGatherV(s, 1, r, ones, places, kType, 0, t.comm, nullptr); }},
      {"ScatterV", [=] { return trestleScatterV(s, ones, places, r, 1, kType, 0, t.comm, nullptr); }},
      {"Send", [=] { return trestleSend(s, 1, kType, 0, t.comm, nullptr); }},
      {"Recv", [=] { return trestleRecv(r, 1, kType, 0, t.comm, nullptr); }},
      {"Barrier", [=] { return trestleBarrier(t.comm, nullptr); }},
  };
}

std::vector<NamedCall> requests(const Things& t) {
  static int done;
  const trestleComm_t c = t.comm;
  float* const s = sent;
  float* const r = received;
  trestleRequest_t* const q = &made_request;
  return {
      {"AllReduceStart", [=] { return trestleAllReduceStart(s, r, 1, kType, trestleSum, c, nullptr, q); }},
      {"AllReduceFinish", [=] { return trestleAllReduceFinish(t.request, nullptr); }},
      {"AllReduceInit", [=] { return trestleAllReduceInit(s, r, 1, kType, trestleSum, c, nullptr, q); }},
      {"AllReduceStartInit", [=] { return trestleAllReduceStartInit(s, r, 1, kType, trestleSum, c, nullptr, q); }},
      {"RequestStart", [=] { return trestleRequestStart(t.request); }},
      {"RequestTest", [=] { return trestleRequestTest(t.request, &done); }},
      {"RequestWait", [=] { return trestleRequestWait(t.request); }},
      {"RequestFree", [=] { return trestleRequestFree(t.request); }},
      {"ReduceScatterInit", [=] { return trestleReduceScatterInit(s, r, 1, kType, trestleSum, c, nullptr, q); }},
      {"AllGatherInit", [=] { return trestleAllGatherInit(s, r, 1, kType, c, nullptr, q); }},
      {"BroadcastInit", [=] { return trestleBroadcastInit(s, r, 1, kType, 0, c, nullptr, q); }},
      {"ReduceInit", [=] { return trestleReduceInit(s, r, 1, kType, trestleSum, 0, c, nullptr, q); }},
      {"AllToAllInit", [=] { return trestleAllToAllInit(s, r, 1, kType, c, nullptr, q); }},
      {"GatherInit", [=] { return trestleGatherInit(s, r, 1, kType, 0, c, nullptr, q); }},
      {"ScatterInit", [=] { return trestleScatterInit(s, r, 1, kType, 0, c, nullptr, q); }},
      {"BarrierInit", [=] { return trestleBarrierInit(c, nullptr, q); }},
      {"AllGatherVInit", [=] { return trestleAllGatherVInit(s, 1, r, ones, places, kType, c, nullptr, q); }},
      {"ReduceScatterVInit", [=] { return trestleReduceScatterVInit(s, r, ones, kType, trestleSum, c, nullptr, q); }},
      {"AllToAllVInit", [=] { return trestleAllToAllVInit(s, ones, places, r, ones, places, kType, c, nullptr, q); }},
      {"GatherVInit", [=] { return trestleGatherVInit(s, 1, r, ones, places, kType, 0, c, nullptr, q); }},
      {"ScatterVInit", [=] { return trestleScatterVInit(s, ones, places, r, 1, kType, 0, c, nullptr, q); }},
  };
}

std::vector<NamedCall> memory_and_planning(const Things& t) {
  static trestleRange_t range;
  static int ranges = 1;
  static double microseconds;
  static float two = 2;
  static trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  static trestleCommRailStats_t rails = TRESTLE_RAIL_STATS_INITIALIZER;
  static uint64_t value;
  return {
      {"MemFree", [=] { return trestleMemFree(t.memory); }},
      {"CommRegister", [=] { return trestleCommRegister(t.comm, t.mapped, kPage, &made_registration); }},
      {"CommDeregister", [=] { return trestleCommDeregister(t.comm, t.registration); }},
      {"ShardRanges", [=] { return trestleShardRanges(t.comm, 0, 1, kType, &range, &ranges); }},
      {"PredictTime", [=] { return trestlePredictTime(t.comm, trestleCollAllReduce, 1, kType, &microseconds); }},
      {"RedOpCreatePreMulSum",
       [=] { return trestleRedOpCreatePreMulSum(&made_op, &two, kType, trestleScalarHostImmediate, t.comm); }},
      {"RedOpCreate", [=] { return trestleRedOpCreate(&made_op, add, nullptr, 1, t.comm); }},
      {"RedOpDestroy", [=] { return trestleRedOpDestroy(t.op, t.comm); }},
      {"CommGetStats", [=] { return trestleCommGetStats(t.comm, &stats); }},
      {"CommGetRailStats", [=] { return trestleCommGetRailStats(t.comm, &rails); }},
      {"CommMemStats", [=] { return trestleCommMemStats(t.comm, trestleMemTotal, &value); }},
  };
}

}  // namespace

Things make_things(trestleComm_t comm) {
  fill_arguments();
  Things things;
  things.comm = comm;
  EXPECT_TRUE(succeeded(trestleStreamCreate(&things.stream)));
  EXPECT_TRUE(succeeded(trestleEventCreate(&things.event)));
  EXPECT_TRUE(succeeded(trestleEventRecord(things.event, things.stream)));
  EXPECT_TRUE(
      succeeded(trestleAllReduceStartInit(sent, received, 1, kType, trestleSum, comm, things.stream, &things.request)));
  EXPECT_TRUE(succeeded(trestleMemAlloc(&things.memory, kPage)));
  const int memfd = memfd_create("every call", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(memfd, 2 * kPage), 0);
  things.mapped = mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
  void* const second = static_cast<char*>(things.mapped) + kPage;
  EXPECT_TRUE(succeeded(trestleCommRegister(comm, second, kPage, &things.registration)));
  close(memfd);
  EXPECT_TRUE(succeeded(trestleRedOpCreate(&things.op, add, nullptr, 1, comm)));
  return things;
}

void free_things(const Things& things) {
  EXPECT_TRUE(succeeded(trestleRedOpDestroy(things.op, things.comm)));
  EXPECT_TRUE(succeeded(trestleCommDeregister(things.comm, things.registration)));
  EXPECT_EQ(munmap(things.mapped, 2 * kPage), 0);
  EXPECT_TRUE(succeeded(trestleMemFree(things.memory)));
  EXPECT_TRUE(succeeded(trestleRequestFree(things.request)));
  EXPECT_TRUE(succeeded(trestleEventDestroy(things.event)));
  EXPECT_TRUE(succeeded(trestleStreamDestroy(things.stream)));
}

std::vector<NamedCall> calls_on(const Things& things) {
  std::vector<NamedCall> all = life(things);
  append(all, collectives(things));
  append(all, requests(things));
  append(all, memory_and_planning(things));
  return all;
}

std::vector<NamedCall> other_calls() {
  static int number;
  static const trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
  return {
      {"GetUniqueId", [] { return trestleGetUniqueId(&made_id); }},
      {"CommInitRank", [] { return trestleCommInitRank(&made_comm, 1, made_id, 0); }},
      {"CommInitRankConfig", [] { return trestleCommInitRankConfig(&made_comm, 1, made_id, 0, nullptr); }},
      {"CommInitAll", [] { return trestleCommInitAll(made_comms, 2, nullptr); }},
      {"CommInitAllConfig", [] { return trestleCommInitAllConfig(made_comms, 2, nullptr); }},
      {"LauncherInfo", [] { return trestleLauncherInfo(&number, nullptr, nullptr); }},
      {"StreamCreate", [] { return trestleStreamCreate(&made_stream); }},
      {"EventCreate", [] { return trestleEventCreate(&made_event); }},
      {"GroupStart", [] { return trestleGroupStart(); }},
      {"GroupEnd", [] { return trestleGroupEnd(); }},
      {"CallConfigPush", [] { return trestleCallConfigPush(&config); }},
      {"CallConfigPop", [] { return trestleCallConfigPop(); }},
      {"MemAlloc", [] { return trestleMemAlloc(&made_memory, kPage); }},
  };
}

std::vector<std::string> queries() {
  return {"GetVersion", "GetErrorString", "GetLastError"};
}

std::vector<std::string> functions_of_the_header() {
  std::vector<std::string> names;
  for (const char* file : {"trestle.h", "call_config.h", "operators.h", "persistent.h", "rails.h", "statistics.h"}) {
    std::ifstream in(std::string(TRESTLE_SOURCE_DIR "/include/trestle/") + file);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const std::regex declaration("TRESTLE_API\\s[^(;]*[\\s*]trestle(\\w+)\\(");
    for (std::sregex_iterator it(text.begin(), text.end(), declaration), end; it != end; ++it)
      names.push_back((*it)[1]);
  }
  return names;
}

}  // namespace every_call
