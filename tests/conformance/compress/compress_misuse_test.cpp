// Wrong calls get a code and a sentence, on all ranks where the call is collective, and the ranks go on.
#include <cmath>
#include <functional>

#include "conformance/compress/compress_oracle.h"

namespace compressed {
namespace {

using ranks::refused;
using ranks::succeeded;
using Change = std::function<void(trestleTopKConfig_t&)>;

// The communicator works as before.
void expect_sum(trestleComm_t comm, int ranks) {
  float x = 1;
  EXPECT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
  EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(x, static_cast<float>(ranks));
}

struct WrongConfig {
  const char* fact;
  Change change;
};

const size_t kThreeLayers[] = {1, 2, 6};

const std::vector<WrongConfig>& wrong_configs() {
  using Config = trestleTopKConfig_t;
  static const std::vector<WrongConfig> rows = {
      {"size is 3", [](Config& c) { c.size = 3; }},
      {"magic is wrong", [](Config& c) { c.magic = 1; }},
      {"method is 6", [](Config& c) { c.method = 6; }},
      {"method is -1", [](Config& c) { c.method = -1; }},
      {"collective is 4", [](Config& c) { c.collective = 4; }},
      {"op is 2", [](Config& c) { c.op = trestleMax; }},
      {"type is 0: trestleFloat32", [](Config& c) { c.type = trestleInt8; }},
      {"type is 10: trestleFloat32", [](Config& c) { c.type = trestleFloat8e4m3; }},
      {"ratio is -0.1", [](Config& c) { c.ratio = -0.1; }},
      {"ratio is 1.5", [](Config& c) { c.ratio = 1.5; }},
      {"ratio is nan", [](Config& c) { c.ratio = std::nan(""); }},
      {"ratio is inf", [](Config& c) { c.ratio = INFINITY; }},
      {"elements is 11, and the gradient has 10", [](Config& c) { c.ratio = 0, c.elements = 11; }},
      {"exclude each other", [](Config& c) { c.elements = 1; }},
      {"only an all-gather", [](Config& c) { c.method = trestleTopKExact, c.collective = trestleTopKTree; }},
      {"Star and Var add", [](Config& c) { c.method = trestleTopKVar, c.collective = trestleTopKAllGather; }},
      {"startup is 1", [](Config& c) { c.startup = 1; }},
      {"perByte nan", [](Config& c) { c.startup = 1, c.perByte = std::nan(""); }},
      {"reviewSteps is 0", [](Config& c) { c.reviewSteps = 0; }},
      {"ratioRule is 2", [](Config& c) { c.ratioRule = 2; }},
      {"a weight is -1", [](Config& c) { c.timeWeight = -1; }},
      {"a weight is nan", [](Config& c) { c.compressWeight = std::nan(""); }},
      {"layerCount is 18446744073709551615, it must be at most",
       [](Config& c) { c.method = trestleTopKLayerwise, c.layers = kThreeLayers, c.layerCount = SIZE_MAX; }},
      {"layers is NULL", [](Config& c) { c.method = trestleTopKLayerwise, c.layerCount = 2; }},
      {"the layers have 9 elements, and the gradient has 10",
       [](Config& c) { c.method = trestleTopKLayerwise, c.layers = kThreeLayers, c.layerCount = 3; }}};
  return rows;
}

trestleTopKConfig_t good_config() {
  trestleTopKConfig_t config = TRESTLE_TOP_K_CONFIG_INITIALIZER;
  config.ratio = 0.5;
  return config;
}

TEST(CompressedMisuse, WrongConfigsAreRefusedOnAllRanks) {
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    for (const WrongConfig& row : wrong_configs()) {
      SCOPED_TRACE(row.fact);
      trestleTopKConfig_t config = good_config();
      trestleTopK_t topk = nullptr;
      if (rank == 1) row.change(config);
      EXPECT_TRUE(refused(trestleTopKCreate(&topk, comm, 10, &config), trestleInvalidArgument,
                          {rank == 1 ? "TopKCreate: " : "TopKCreate: rank 1 cannot take part: ", row.fact}));
      EXPECT_EQ(topk, nullptr);
    }
    trestleTopK_t topk = nullptr;
    EXPECT_TRUE(refused(trestleTopKCreate(rank == 0 ? nullptr : &topk, comm, 10, nullptr), trestleInvalidArgument,
                        {rank == 0 ? "" : "TopKCreate: rank 0 cannot take part: ", "topk is NULL"}));
    EXPECT_TRUE(refused(trestleTopKCreate(&topk, comm, rank == 0 ? (size_t{1} << 32) + 1 : 10, nullptr),
                        trestleInvalidArgument, {rank == 0 ? "" : "rank 0 cannot take part: ", "count is 4294967297"}));
    EXPECT_TRUE(refused(trestleTopKCreate(&topk, nullptr, 10, nullptr), trestleInvalidArgument, {"comm is NULL"}));
    expect_sum(comm, 2);
  });
}

TEST(CompressedMisuse, RanksThatDisagreeAreNamed) {
  struct Row {
    std::vector<std::string> facts;
    Change change;
    size_t count = 10;
  };
  using Config = trestleTopKConfig_t;
  static const size_t kLayers[] = {4, 6}, kOtherLayers[] = {5, 5};
  static const std::vector<Row> rows = {
      {{"rank 2 has count=11, rank 0 has count=10;"}, [](Config&) {}, 11},
      {{"rank 2 has type=bfloat16, rank 0 has type=float;"}, [](Config& c) { c.type = trestleBfloat16; }},
      {{"rank 2 has method=2, rank 0 has method=0;"}, [](Config& c) { c.method = trestleTopKVar; }},
      {{"rank 2 has collective=2, rank 0 has collective=0;"}, [](Config& c) { c.collective = trestleTopKTree; }},
      {{"rank 2 has op=0, rank 0 has op=4;"}, [](Config& c) { c.op = trestleSum; }},
      {{"rank 2 has ratio=0.25, rank 0 has ratio=0.5;"}, [](Config& c) { c.ratio = 0.25; }},
      {{"rank 2 has ratio=", "rank 0 has ratio=0.5;"}, [](Config& c) { c.ratio = 0, c.elements = 3; }},
      {{"rank 2 has startup=1, rank 0 has startup=-1;"}, [](Config& c) { c.startup = c.perByte = 1; }},
      {{"rank 2 has ratioRule=1, rank 0 has ratioRule=0;"}, [](Config& c) { c.ratioRule = trestleTopKKnee; }},
      {{"rank 2 has timeWeight=1, rank 0 has timeWeight=0.6;"}, [](Config& c) { c.timeWeight = 1; }},
      {{"rank 2 has gainWeight=1,"}, [](Config& c) { c.gainWeight = 1; }},
      {{"rank 2 has compressWeight=1, rank 0 has compressWeight=0;"}, [](Config& c) { c.compressWeight = 1; }},
      {{"rank 2 has reviewSteps=7, rank 0 has reviewSteps=20;"}, [](Config& c) { c.reviewSteps = 7; }},
      {{"rank 2 has steps=1, rank 0 has steps=0;"}, [](Config& c) { c.steps = 1; }}};
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    trestleTopK_t topk = nullptr;
    for (const Row& row : rows) {
      trestleTopKConfig_t config = good_config();
      if (rank == 2) row.change(config);
      std::vector<std::string> facts = row.facts;
      facts.push_back("TopKCreate: ");
      EXPECT_TRUE(
          refused(trestleTopKCreate(&topk, comm, rank == 2 ? row.count : 10, &config), trestleInvalidUsage, facts));
    }
    trestleTopKConfig_t config = good_config();
    config.method = trestleTopKLayerwise;
    config.layers = rank == 1 ? kOtherLayers : kLayers;
    config.layerCount = 2;
    EXPECT_TRUE(refused(trestleTopKCreate(&topk, comm, 10, &config), trestleInvalidUsage,
                        {"rank 1 has layers=5,5, rank 0 has layers=4,6;"}));
    EXPECT_EQ(topk, nullptr);
    expect_sum(comm, 3);
  });
}

TEST(CompressedMisuse, RatiosThatAreSet) {
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    const trestleTopKConfig_t config = good_config();
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 10, &config), comm));
    for (const double wrong : {0.0, -1.0, 1.0000001, std::nan(""), static_cast<double>(INFINITY)}) {
      EXPECT_TRUE(
          refused(trestleTopKSetRatio(topk, rank == 1 ? wrong : 0.1), trestleInvalidArgument,
                  {rank == 1 ? "TopKSetRatio: " : "TopKSetRatio: rank 1 cannot take part: ", "above 0 and at most 1"}));
    }
    EXPECT_TRUE(
        refused(trestleTopKSetRatio(topk, rank == 1 ? 0.25 : 0.125), trestleInvalidUsage,
                {"TopKSetRatio: rank 1 has ratio=0.25, rank 0 has ratio=0.125; it must be the same on all ranks"}));
    EXPECT_TRUE(refused(rank == 1 ? trestleTopKFit(topk) : trestleTopKSetRatio(topk, 0.1), trestleInvalidUsage,
                        {"rank 1 has the call=TopKFit, rank 0 has the call=TopKSetRatio"}));
    EXPECT_EQ(stats_of(topk).ratio, 0.5);
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    expect_sum(comm, 3);
  });
}

TEST(CompressedMisuse, BuffersOfAStep) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    const trestleTopKConfig_t config = good_config();
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 10, &config), comm));
    Floats memory(40, 1);
    float* const a = memory.data();
    float* const b = a + 10;
    float* const c = b + 10;
    const auto wrong = [&](const float* gradient, float* residual, float* result, const char* fact) {
      EXPECT_TRUE(refused(trestleAllReduceTopK(gradient, residual, result, topk), trestleInvalidArgument,
                          {"AllReduceTopK: ", fact}));
    };
    wrong(nullptr, b, c, "gradient is NULL");
    wrong(a, nullptr, c, "residual is NULL");
    wrong(a, b, nullptr, "result is NULL");
    wrong(a, a, c, "residual and gradient overlap");
    wrong(a, a + 9, c, "residual and gradient overlap");
    wrong(a, b, b - 1, "residual and result overlap");
    wrong(a, c, a + 5, "gradient and result overlap");
    EXPECT_TRUE(refused(trestleAllReduceTopK(a, b, c, nullptr), trestleInvalidArgument, {"topk is NULL"}));
    EXPECT_EQ(memory, Floats(40, 1)) << "nothing was changed";
    EXPECT_EQ(stats_of(topk).steps, 0u);
    EXPECT_TRUE(succeeded(trestleAllReduceTopK(a, b, a, topk), comm));
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
    EXPECT_TRUE(refused(trestleAllReduceTopK(a, b, c, topk), trestleInvalidUsage, {"AllReduceTopK", "destroyed"}));
    EXPECT_TRUE(refused(trestleTopKDestroy(topk), trestleInvalidUsage, {"TopKDestroy", "destroyed"}));
    EXPECT_TRUE(refused(trestleTopKDestroy(nullptr), trestleInvalidArgument, {"topk is NULL"}));
  });
}

// A residual has twice the bytes of 16-bit gradients.
TEST(CompressedMisuse, BuffersOfAStepOf16Bits) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleTopKConfig_t config = good_config();
    config.type = trestleBfloat16;
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 10, &config), comm));
    std::vector<std::byte> memory(80);
    std::byte* const residual = memory.data() + 20;
    std::byte* const behind = residual + 40;
    EXPECT_TRUE(refused(trestleAllReduceTopK(behind - 2, residual, memory.data(), topk), trestleInvalidArgument,
                        {"residual and gradient overlap"}));
    EXPECT_TRUE(refused(trestleAllReduceTopK(behind, residual, memory.data() + 2, topk), trestleInvalidArgument,
                        {"residual and result overlap"}));
    EXPECT_TRUE(refused(trestleAllReduceTopK(behind, residual, behind + 18, topk), trestleInvalidArgument,
                        {"gradient and result overlap"}));
    EXPECT_TRUE(succeeded(trestleAllReduceTopK(behind, residual, memory.data(), topk), comm));
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

TEST(CompressedMisuse, NoElementsNeedNoMemory) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 0, nullptr), comm));
    EXPECT_TRUE(succeeded(trestleAllReduceTopK(nullptr, nullptr, nullptr, topk), comm));
    EXPECT_EQ(stats_of(topk).steps, 1u);
    EXPECT_EQ(stats_of(topk).elements, 0u);
    EXPECT_TRUE(succeeded(trestleTopKFit(topk), comm));
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

// Calls wait for their messages, which in a group have not begun. The group stays usable.
TEST(CompressedMisuse, InsideAGroup) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    const trestleTopKConfig_t config = good_config();
    trestleTopK_t topk = nullptr, other = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 4, &config), comm));
    Floats gradient(4, 1), residual(4);
    float x = 1;
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(refused(trestleTopKCreate(&other, comm, 4, &config), trestleInvalidUsage, {"TopKCreate", "group"}));
    EXPECT_TRUE(refused(trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk),
                        trestleInvalidUsage, {"AllReduceTopK", "GroupEnd"}));
    EXPECT_TRUE(refused(trestleTopKFit(topk), trestleInvalidUsage, {"TopKFit", "group"}));
    EXPECT_TRUE(refused(trestleTopKSetRatio(topk, 1), trestleInvalidUsage, {"TopKSetRatio", "group"}));
    EXPECT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleGroupEnd()));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(x, 2);
    EXPECT_TRUE(succeeded(trestleAllReduceTopK(gradient.data(), residual.data(), gradient.data(), topk), comm));
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

// The program's own scope has an algorithm and a policy that could not serve these messages, and options that differ
// between the ranks, which a collective of its own would be refused for.
TEST(CompressedMisuse, ScopesOfTheProgramDoNotApply) {
  ranks::on_threads({.ranks = 3, .transport = "shm"}, [](int rank, trestleComm_t comm) {
    trestleCallConfig_t scope = TRESTLE_CALL_CONFIG_INITIALIZER;
    scope.algo = "no such algorithm";
    scope.sched = "no such policy";
    scope.chunks = 1 + rank;
    scope.deterministic = rank % 2;
    ASSERT_TRUE(succeeded(trestleCallConfigPush(&scope)));
    const Case one{3, 100, 0.1};
    trestleTopK_t topk = make(comm, one);
    Oracle oracle(one);
    Floats residual(100);
    for (uint64_t step = 1; step <= 5; ++step) {
      const std::vector<Floats> gradients = {gradient_of(0, step, 100), gradient_of(1, step, 100),
                                             gradient_of(2, step, 100)};
      Floats result = gradients[static_cast<size_t>(rank)];
      oracle.step(gradients);
      ASSERT_TRUE(succeeded(trestleAllReduceTopK(result.data(), residual.data(), result.data(), topk), comm));
      EXPECT_EQ(difference(result, oracle.result()), "");
    }
    float x = 1;
    EXPECT_TRUE(refused(trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr), trestleInvalidArgument,
                        {"no such policy"}));
    ASSERT_TRUE(succeeded(trestleCallConfigPop()));
    EXPECT_TRUE(refused(trestleCallConfigPop(), trestleInvalidUsage, {"CallConfigPop"})) << "none is left over";
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

// A caller that knows less of a struct gets as much as it knows.
TEST(CompressedMisuse, OlderStructsCountAsFarAsTheyReach) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleTopKConfig_t config = good_config();
    config.size = offsetof(trestleTopKConfig_t, ratio);
    config.method = trestleTopKVar;
    config.ratio = 77;  // of memory that is not the struct's
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 10, &config), comm));
    trestleTopKStats_t stats = TRESTLE_TOP_K_STATS_INITIALIZER;
    stats.size = offsetof(trestleTopKStats_t, collective);
    stats.collective = 77;
    ASSERT_TRUE(succeeded(trestleTopKGetStats(topk, &stats)));
    EXPECT_EQ(stats.method, trestleTopKVar);
    EXPECT_EQ(stats.collective, 77);
    stats.magic = 1;
    EXPECT_TRUE(refused(trestleTopKGetStats(topk, &stats), trestleInvalidArgument, {"TopKGetStats", "magic"}));
    EXPECT_TRUE(refused(trestleTopKGetStats(topk, nullptr), trestleInvalidArgument, {"stats is NULL"}));
    EXPECT_EQ(stats_of(topk).ratio, 0.1) << "the default";
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));

    config = good_config();
    config.size = offsetof(trestleTopKConfig_t, type);
    config.type = 77;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, 1, &config), comm));
    float gradient = 3, residual = 0, result = 0;
    ASSERT_TRUE(succeeded(trestleAllReduceTopK(&gradient, &residual, &result, topk), comm));
    EXPECT_EQ(result, 3) << "float32 is the default";
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

}  // namespace
}  // namespace compressed
