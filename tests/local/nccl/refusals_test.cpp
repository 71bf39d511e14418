// What NCCL's interface refuses over Trestle, each with code and sentence; configurations; registrations.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "local/nccl/nccl_ranks.h"
#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace {

using nccl_ranks::refused;
using nccl_ranks::succeeded;

// Runs on a communicator of one rank.
void alone(const std::function<void(ncclComm_t)>& body, const ranks::Env& env = {}) {
  ranks::isolated(
      [&] {
        ncclComm_t comm = nullptr;
        ASSERT_TRUE(succeeded(ncclCommInitAll(&comm, 1, nullptr)));
        body(comm);
        EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
      },
      env);
}

// A function that the installed header may be too old for.
template <class F>
F* newer(const char* name) {
  void* const found = dlsym(RTLD_DEFAULT, name);
  EXPECT_NE(found, nullptr) << name;
  return reinterpret_cast<F*>(found);
}

TEST(NcclRefusals, CallsThatTrestleLacksSayWhatToUseInstead) {
  alone([](ncclComm_t comm) {
    using OnComm = ncclResult_t(ncclComm_t, int);
    ncclComm_t made = nullptr;
    int excluded = 0;
    ncclUniqueId id;
    void* pointer = nullptr;
    ncclWindow_t window = nullptr;
    EXPECT_TRUE(refused(ncclCommShrink(comm, &excluded, 1, &made, nullptr, 0), ncclInvalidUsage,
                        {"CommShrink", "ncclCommSplit", "ncclCommAbort"}));
    EXPECT_TRUE(refused(ncclCommRevoke(comm, 0), ncclInvalidUsage, {"CommRevoke", "ncclCommAbort"}));
    EXPECT_TRUE(refused(ncclCommWindowRegister(comm, &excluded, 4, &window, 0), ncclInvalidUsage,
                        {"CommWindowRegister", "ncclMemAlloc", "ncclCommRegister"}));
    EXPECT_TRUE(refused(ncclCommWindowDeregister(comm, window), ncclInvalidUsage, {"CommWindowDeregister"}));
    EXPECT_TRUE(refused(newer<ncclResult_t(ncclComm_t, ncclUniqueId*)>("ncclCommGetUniqueId")(comm, &id),
                        ncclInvalidUsage, {"CommGetUniqueId", "ncclCommInitRank"}));
    EXPECT_TRUE(refused(newer<ncclResult_t(ncclComm_t, int, const ncclUniqueId*, int, ncclComm_t*, ncclConfig_t*)>(
                            "ncclCommGrow")(comm, 2, &id, -1, &made, nullptr),
                        ncclInvalidUsage, {"CommGrow", "ncclCommInitRank"}));
    EXPECT_TRUE(refused(newer<OnComm>("ncclCommSuspend")(comm, 1), ncclInvalidUsage, {"CommSuspend", "host memory"}));
    EXPECT_TRUE(refused(newer<ncclResult_t(ncclComm_t)>("ncclCommResume")(comm), ncclInvalidUsage, {"CommResume"}));
    EXPECT_TRUE(
        refused(newer<ncclResult_t(ncclComm_t, ncclWindow_t, void**)>("ncclWinGetUserPtr")(comm, window, &pointer),
                ncclInvalidUsage, {"WinGetUserPtr"}));
    EXPECT_TRUE(refused(newer<ncclResult_t(const void*, size_t, ncclDataType_t, int, ncclWindow_t, size_t, int, int,
                                           unsigned, ncclComm_t, cudaStream_t)>("ncclPutSignal")(
                            &excluded, 1, ncclInt, 0, window, 0, 0, 0, 0, comm, nullptr),
                        ncclInvalidUsage, {"PutSignal", "ncclSend"}));
    EXPECT_TRUE(refused(
        newer<ncclResult_t(int, int, int, unsigned, ncclComm_t, cudaStream_t)>("ncclSignal")(0, 0, 0, 0, comm, nullptr),
        ncclInvalidUsage, {"Signal", "ncclSend"}));
    EXPECT_TRUE(
        refused(newer<ncclResult_t(int, void*, ncclComm_t, cudaStream_t)>("ncclWaitSignal")(0, nullptr, comm, nullptr),
                ncclInvalidUsage, {"WaitSignal", "ncclRecv"}));
    EXPECT_TRUE(refused(newer<ncclResult_t(void**, const char*)>("ncclParamBind")(&pointer, "NCCL_DEBUG"),
                        ncclInvalidUsage, {"ParamBind", "trestle env"}));
    EXPECT_TRUE(
        refused(newer<ncclResult_t(ncclComm_t, const void*, void*)>("ncclDevCommCreate")(comm, nullptr, nullptr),
                ncclInvalidUsage, {"DevCommCreate", "deviceApiSupport"}));
    EXPECT_EQ(made, nullptr);
  });
}

// Queries of what Trestle lacks tell that it lacks it.
TEST(NcclRefusals, QueriesTellTheTruth) {
  struct Properties {
    size_t size = sizeof(Properties);
    unsigned magic = 0xcafebeef, version = 23007;
    int rank = -7, ranks = -7, cuda = -7, nvml = -7;
    bool device_api = true, multimem = true;
    int gin = -7, teams = -7;
    bool rma = true;
    int railed_gin = -7;
  };
  struct Team {
    int ranks, rank, stride;
  };
  nccl_ranks::on_threads(3, [](int rank, ncclComm_t comm) {
    Properties properties;
    EXPECT_TRUE(succeeded(newer<ncclResult_t(ncclComm_t, Properties*)>("ncclCommQueryProperties")(comm, &properties)));
    EXPECT_EQ(properties.rank, rank);
    EXPECT_EQ(properties.ranks, 3);
    EXPECT_EQ(properties.cuda, -1);
    EXPECT_FALSE(properties.device_api || properties.multimem || properties.rma);
    EXPECT_EQ(properties.gin + properties.railed_gin, 0);
    const Team world = newer<Team(ncclComm_t)>("ncclTeamWorld")(comm);
    EXPECT_TRUE(world.ranks == 3 && world.rank == rank && world.stride == 1);
    const Team reached = newer<Team(ncclComm_t)>("ncclTeamLsa")(comm);
    EXPECT_TRUE(reached.ranks == 1 && reached.rank == 0);
    EXPECT_EQ(newer<int(ncclComm_t, Team, int)>("ncclTeamRankToWorld")(comm, reached, 0), rank);
    EXPECT_EQ(newer<int(ncclComm_t, Team, int)>("ncclTeamRankToLsa")(comm, world, rank), 0);
    uint64_t bytes = 7;
    EXPECT_TRUE(succeeded(newer<ncclResult_t(ncclComm_t, int, uint64_t*)>("ncclCommMemStats")(comm, 3, &bytes)));
    EXPECT_EQ(bytes, 0U);
    const char** keys = nullptr;
    int count = -1;
    EXPECT_TRUE(succeeded(newer<ncclResult_t(const char***, int*)>("ncclParamGetAllParameterKeys")(&keys, &count)));
    EXPECT_EQ(count, 0);
  });
}

TEST(NcclRefusals, WrongArguments) {
  alone([](ncclComm_t comm) {
    int one = 1;
    const auto all_reduce = [&](const void* from, int type, int op, ncclComm_t on) {
      return ncclAllReduce(from, &one, 1, static_cast<ncclDataType_t>(type), static_cast<ncclRedOp_t>(op), on, nullptr);
    };
    EXPECT_TRUE(
        refused(all_reduce(&one, ncclInt, ncclSum, nullptr), ncclInvalidArgument, {"AllReduce", "comm is NULL"}));
    EXPECT_TRUE(
        refused(all_reduce(nullptr, ncclInt, ncclSum, comm), ncclInvalidArgument, {"AllReduce", "send buffer"}));
    EXPECT_TRUE(refused(all_reduce(&one, ncclNumTypes, ncclSum, comm), ncclInvalidArgument, {"AllReduce", "type 12"}));
    EXPECT_TRUE(refused(all_reduce(&one, ncclInt, 77, comm), ncclInvalidArgument, {"AllReduce", "77"}));
    EXPECT_TRUE(refused(ncclBroadcast(&one, &one, 1, ncclInt, 3, comm, nullptr), ncclInvalidArgument, {"root 3"}));
    EXPECT_TRUE(refused(ncclSend(&one, 1, ncclInt, -1, comm, nullptr), ncclInvalidArgument, {"Send", "peer -1"}));
    EXPECT_TRUE(refused(ncclGetUniqueId(nullptr), ncclInvalidArgument, {"GetUniqueId"}));
    EXPECT_TRUE(refused(ncclGetVersion(nullptr), ncclInvalidArgument, {"GetVersion"}));
    EXPECT_TRUE(refused(ncclCommCount(comm, nullptr), ncclInvalidArgument, {"CommCount"}));
    EXPECT_TRUE(refused(ncclCommCuDevice(comm, nullptr), ncclInvalidArgument, {"CommCuDevice"}));
    EXPECT_TRUE(refused(ncclCommGetAsyncError(comm, nullptr), ncclInvalidArgument, {"CommGetAsyncError"}));
    EXPECT_TRUE(refused(ncclGroupEnd(), ncclInvalidUsage, {"GroupEnd without GroupStart"}));
    ncclUniqueId id = {};
    ncclComm_t made = nullptr;
    EXPECT_TRUE(refused(ncclCommInitRank(&made, 2, id, 2), ncclInvalidArgument, {"rank 2"}));
    EXPECT_TRUE(refused(ncclCommInitRankScalable(&made, 2, 0, 3, &id, nullptr), ncclInvalidArgument, {"nId is 3"}));
    EXPECT_TRUE(refused(ncclCommInitRankScalable(&made, 2, 0, 1, nullptr, nullptr), ncclInvalidArgument, {"commIds"}));
    // As in NCCL, these three take NULL.
    EXPECT_TRUE(succeeded(ncclCommFinalize(nullptr)));
    EXPECT_TRUE(succeeded(ncclCommDestroy(nullptr)));
    EXPECT_TRUE(succeeded(ncclCommAbort(nullptr)));
    EXPECT_TRUE(succeeded(all_reduce(&one, ncclInt, ncclSum, comm))) << "the communicator is as it was";
  });
}

TEST(NcclRefusals, AfterItsEndACommunicatorIsRefused) {
  ranks::isolated([] {
    ncclComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ncclCommInitAll(&comm, 1, nullptr)));
    ASSERT_TRUE(succeeded(ncclCommDestroy(comm)));
    int one = 1;
    EXPECT_EQ(ncclAllReduce(&one, &one, 1, ncclInt, ncclSum, comm, nullptr), ncclInvalidUsage);
    EXPECT_TRUE(ranks::contains(ncclGetLastError(nullptr), "destroyed")) << ncclGetLastError(nullptr);
    EXPECT_EQ(ncclCommDestroy(comm), ncclInvalidUsage);
  });
}

// Memory of a device is mapped such that the processor cannot read it.
TEST(NcclRefusals, MemoryThatTheProcessorCannotRead) {
  alone([](ncclComm_t comm) {
    void* const device = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(device, MAP_FAILED);
    int one = 1;
    const std::vector<std::string> facts = {"device memory", "built without CUDA", "host memory"};
    EXPECT_TRUE(refused(ncclAllReduce(device, &one, 1, ncclInt, ncclSum, comm, nullptr), ncclInvalidArgument, facts));
    EXPECT_TRUE(refused(ncclAllReduce(&one, device, 1, ncclInt, ncclSum, comm, nullptr), ncclInvalidArgument, facts));
    EXPECT_TRUE(refused(ncclBroadcast(device, &one, 1, ncclInt, 0, comm, nullptr), ncclInvalidArgument, facts));
    EXPECT_TRUE(refused(ncclRecv(device, 1, ncclInt, 0, comm, nullptr), ncclInvalidArgument, facts));
    EXPECT_TRUE(succeeded(ncclAllReduce(device, device, 0, ncclInt, ncclSum, comm, nullptr))) << "nothing is read";
    ncclRedOp_t op = ncclSum;
    EXPECT_TRUE(
        refused(ncclRedOpCreatePreMulSum(&op, device, ncclFloat, ncclScalarDevice, comm), ncclInvalidArgument, facts));
    munmap(device, 4096);
  });
}

// A call that is refused here refuses its group, as one does that Trestle refuses.
TEST(NcclRefusals, AGroupWithOneDoesNothing) {
  alone([](ncclComm_t comm) {
    int from = 5;
    int to = 0;
    const auto copy = [&] { return ncclAllReduce(&from, &to, 1, ncclInt, ncclSum, comm, nullptr); };
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    EXPECT_TRUE(succeeded(copy()));
    EXPECT_TRUE(refused(ncclCommRevoke(comm, 0), ncclInvalidUsage, {"CommRevoke"}));
    EXPECT_TRUE(succeeded(copy()));
    EXPECT_TRUE(refused(ncclGroupEnd(), ncclInvalidUsage, {"CommRevoke"}));
    EXPECT_EQ(to, 0);
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    EXPECT_TRUE(succeeded(copy()));
    EXPECT_TRUE(refused(ncclSend(&from, 1, ncclInt, 9, comm, nullptr), ncclInvalidArgument, {"peer 9"}));
    EXPECT_TRUE(refused(ncclGroupEnd(), ncclInvalidArgument, {"peer 9"}));
    EXPECT_EQ(to, 0);
    ASSERT_TRUE(succeeded(ncclGroupStart()));
    EXPECT_TRUE(succeeded(copy()));
    EXPECT_TRUE(succeeded(ncclGroupEnd()));
    EXPECT_EQ(to, 5);
  });
}

TEST(NcclConfigs, AreReadAsFarAsTheyGo) {
  ranks::isolated([] {
    ncclComm_t comm = nullptr;
    const auto join = [&](ncclConfig_t config) {
      ncclUniqueId id;  // an id is used up when its ranks have met
      EXPECT_TRUE(succeeded(ncclGetUniqueId(&id)));
      return ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    };
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.magic = 1;
    EXPECT_TRUE(refused(join(config), ncclInvalidArgument, {"magic", "NCCL_CONFIG_INITIALIZER"}));
    config = NCCL_CONFIG_INITIALIZER;
    config.size = 8;
    EXPECT_TRUE(refused(join(config), ncclInvalidArgument, {"size", "NCCL_CONFIG_INITIALIZER"}));
    config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 7;
    EXPECT_TRUE(refused(join(config), ncclInvalidArgument, {"blocking is 7"}));
    config = NCCL_CONFIG_INITIALIZER;
    config.netName = "IB";
    EXPECT_TRUE(refused(join(config), ncclInvalidUsage, {"netName is 'IB'", "Socket"}));
    EXPECT_EQ(comm, nullptr);
    config.netName = "socket";
    config.minCTAs = 4;
    EXPECT_TRUE(succeeded(join(config)));
    EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
    // The struct of 2.14 ended behind `blocking`; what follows is not its own.
    config.size = 24;
    config.version = 21400;
    memset(&config.minCTAs, 0x77, sizeof config - offsetof(ncclConfig_t, minCTAs));
    EXPECT_TRUE(succeeded(join(config)));
    EXPECT_TRUE(succeeded(ncclCommDestroy(comm)));
  });
}

TEST(NcclMemory, AnythingCanBeRegistered) {
  const TemporaryFolder folder;
  const ranks::Env env = {{"TRESTLE_DEBUG", "INFO"}, {"TRESTLE_DEBUG_FILE", folder.path("log")}};
  alone(
      [](ncclComm_t comm) {
        int data[100] = {};
        void* handles[3] = {};
        void* allocated = nullptr;
        ASSERT_TRUE(succeeded(ncclMemAlloc(&allocated, 5000)));
        const int file = memfd_create("registered", MFD_ALLOW_SEALING);
        ASSERT_EQ(ftruncate(file, 8192), 0);
        void* const mapped = mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        EXPECT_TRUE(succeeded(ncclCommRegister(comm, data, sizeof data, &handles[0])));
        EXPECT_TRUE(succeeded(ncclCommRegister(comm, allocated, 5000, &handles[1])));
        EXPECT_TRUE(succeeded(ncclCommRegister(comm, mapped, 8192, &handles[2])));
        for (void* const handle : handles) {
          ASSERT_NE(handle, nullptr);
          EXPECT_TRUE(succeeded(ncclCommDeregister(comm, handle)));
        }
        EXPECT_EQ(ncclCommDeregister(comm, handles[2]), ncclInvalidArgument) << "twice";
        EXPECT_TRUE(refused(ncclCommDeregister(comm, nullptr), ncclInvalidArgument, {"handle is NULL"}));
        EXPECT_TRUE(refused(ncclCommRegister(comm, data, 4, nullptr), ncclInvalidArgument, {"handle is NULL"}));
        EXPECT_TRUE(refused(ncclCommRegister(nullptr, data, 4, handles), ncclInvalidArgument, {"comm is NULL"}));
        munmap(mapped, 8192);
        close(file);
        EXPECT_TRUE(succeeded(ncclMemFree(allocated)));
      },
      env);
  const std::string text = folder.content("log");
  EXPECT_TRUE(ranks::contains(text, "CommRegister: 400 bytes at")) << text;
  EXPECT_TRUE(ranks::contains(text, "are used as they are")) << text;
  EXPECT_TRUE(ranks::contains(text, "CommRegister: 8192 bytes at")) << text;
  EXPECT_TRUE(ranks::contains(text, "read them in place")) << text;
}

}  // namespace
