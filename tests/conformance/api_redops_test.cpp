// The caller's operators: right results in every form of a call, over all transports, algorithms and dimensions;
// refused uses; and the effect of a failing user function on all ranks.
#include <gtest/gtest.h>

#include <cstring>

#include "conformance/api_redops_cases.h"
#include "conformance/buffers/api_values.h"

namespace api {
namespace api_redops_test {
namespace {

using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

trestleRedOp_t pre_mul_sum(trestleDataType_t type, double scalar, trestleComm_t comm) {
  uint64_t bits = bits_of(type, scalar);
  trestleRedOp_t op = trestleNumOps;
  EXPECT_TRUE(succeeded(trestleRedOpCreatePreMulSum(&op, &bits, type, trestleScalarHostImmediate, comm)));
  bits = ~bits;  // changed after it was read
  EXPECT_GE(static_cast<int>(op), static_cast<int>(trestleNumOps));
  return op;
}

trestleRedOp_t user_op(trestleReduceFunction_t function, int commutative, trestleComm_t comm, void* context = nullptr) {
  trestleRedOp_t op = trestleNumOps;
  EXPECT_TRUE(succeeded(trestleRedOpCreate(&op, function, context, commutative, comm)));
  return op;
}

void destroy(trestleRedOp_t op, trestleComm_t comm) {
  EXPECT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
}

// Every number of ranks over every transport that carries data, and both grids of eight. The types take turns on them:
// see has_turn().
std::vector<Settings> all_settings() {
  std::vector<Settings> all;
  for (int n = 1; n <= 8; ++n) all.push_back({.ranks = n, .transport = "loopback"});
  for (const int n : {2, 3, 5, 8}) all.push_back({.ranks = n, .transport = "shm"});
  for (const int n : {2, 4, 7}) all.push_back({.ranks = n, .transport = "tcp"});
  all.push_back({.ranks = 8, .dims = "4x2", .transport = "shm,tcp"});
  all.push_back({.ranks = 8, .dims = "2x2x2", .transport = "loopback"});
  all.push_back({.ranks = 6, .dims = "2x3", .transport = "loopback", .chunks = 3});
  return all;
}

bool has_turn(int type, const Settings& settings) {
  return (type + settings.ranks + static_cast<int>(settings.transport.size())) % 2 == 0;
}

TEST(ApiRedOps, PreMultipliedSumOfAllTypes) {
  for (const Settings& settings : all_settings()) {
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      for (int t = 0; t < trestleNumTypes; ++t) {
        if (!has_turn(t, settings)) continue;
        const auto type = static_cast<trestleDataType_t>(t);
        const trestleRedOp_t op = pre_mul_sum(type, scalar_of(rank), comm);
        const size_t counts[] = {t % 4 < 2 ? size_t{1} : size_t{37}, t % 3 == 0 ? size_t{9001} : size_t{2003}};
        for (const size_t count : counts) {
          run_all_forms(scaled_sum(type, settings.ranks), op, count, 0, rank, settings.ranks, comm);
        }
        destroy(op, comm);
        if (testing::Test::HasFailure()) return;
      }
    });
  }
}

TEST(ApiRedOps, EveryAlgorithm) {
  for (const char* algo : {"ring", "direct", "hd", "rd", "tree", "dbtree", "*direct", "ring,rd"}) {
    for (const Settings& base : {Settings{.ranks = 5, .transport = "loopback"},
                                 Settings{.ranks = 8, .dims = "4x2", .transport = "loopback"}}) {
      Settings settings = base;
      settings.algo = algo;
      ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
        const trestleRedOp_t scaled = pre_mul_sum(trestleFloat32, scalar_of(rank), comm);
        const trestleRedOp_t any_order = user_op(xor_bits, 1, comm);
        const trestleRedOp_t in_order = user_op(compose_maps, 0, comm);
        for (const size_t count : {size_t{3}, size_t{1500}}) {
          run_all_forms(scaled_sum(trestleFloat32, settings.ranks), scaled, count, 0, rank, settings.ranks, comm, true);
          run_all_forms(exclusive_or(trestleInt32, settings.ranks), any_order, count, 0, rank, settings.ranks, comm,
                        true);
          run_all_forms(affine_maps(settings.ranks), in_order, count, 0, rank, settings.ranks, comm, true);
        }
      });
    }
  }
}

TEST(ApiRedOps, UserDefinedInRankOrderAndInAny) {
  for (const Settings& settings : all_settings()) {
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      const trestleRedOp_t composed = user_op(compose_maps, 0, comm);
      const trestleRedOp_t first = user_op(keep_first, 0, comm);
      const trestleRedOp_t any = user_op(xor_bits, 1, comm);
      for (const size_t count : {size_t{37}, size_t{3001}}) {
        run_all_forms(affine_maps(settings.ranks), composed, count, 0, rank, settings.ranks, comm);
      }
      run_all_forms(affine_maps(settings.ranks), composed, 700, 3, rank, settings.ranks, comm);
      for (int t = 0; t < trestleNumTypes; ++t) {
        if (!has_turn(t, settings)) continue;
        const auto type = static_cast<trestleDataType_t>(t);
        run_all_forms(first_of_all(type, settings.ranks), first, 301, 0, rank, settings.ranks, comm);
        run_all_forms(exclusive_or(type, settings.ranks), any, 301, t % 2 == 0 ? 0 : 1, rank, settings.ranks, comm);
      }
    });
  }
}

TEST(ApiRedOps, AnAlgorithmWithoutRankOrderIsRefusedForWhatNeedsIt) {
  for (const char* algo : {"ring", "hd", "tree"}) {
    ranks::on_threads({.ranks = 4, .transport = "loopback", .algo = algo}, [&](int rank, trestleComm_t comm) {
      const trestleRedOp_t in_order = user_op(compose_maps, 0, comm);
      const trestleRedOp_t any_order = user_op(xor_bits, 1, comm);
      uint64_t data[8] = {};
      EXPECT_TRUE(refused(trestleAllReduce(data, data, 8, trestleUint64, in_order, comm, nullptr),
                          trestleInvalidArgument, {algo, "in rank order of 4 ranks", "direct", "rd"}));
      EXPECT_TRUE(succeeded(trestleAllReduce(data, data, 8, trestleUint64, any_order, comm, nullptr), comm));
      EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      (void)rank;
    });
  }
}

TEST(ApiRedOps, EmptyCallsDoNothing) {
  ranks::on_threads({.ranks = 3}, [](int, trestleComm_t comm) {
    const trestleRedOp_t op = user_op(compose_maps, 0, comm);
    const trestleRedOp_t scaled = pre_mul_sum(trestleInt8, 3, comm);
    EXPECT_TRUE(succeeded(trestleAllReduce(nullptr, nullptr, 0, trestleInt64, op, comm, nullptr), comm));
    EXPECT_TRUE(succeeded(trestleReduceScatter(nullptr, nullptr, 0, trestleInt8, scaled, comm, nullptr), comm));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  });
}

// Each operation reads the scalar when it starts, on the board and in phases.
TEST(ApiRedOps, ScalarThatIsReadLater) {
  ranks::on_threads({.ranks = 4}, [](int, trestleComm_t comm) {
    int32_t scalar = 0;
    trestleRedOp_t op = trestleSum;
    ASSERT_TRUE(succeeded(trestleRedOpCreatePreMulSum(&op, &scalar, trestleInt32, trestleScalarDevice, comm)));
    for (const size_t count : {size_t{1}, size_t{50'000}}) {
      for (scalar = 1; scalar < 4; ++scalar) {
        std::vector<int32_t> data(count, 5);
        ASSERT_TRUE(succeeded(trestleAllReduce(data.data(), data.data(), count, trestleInt32, op, comm, nullptr)));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        ASSERT_EQ(data, std::vector<int32_t>(count, 20 * scalar));
      }
    }
  });
}

int add_rounding(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void*) {
  for (size_t i = 0; i < count; ++i) {
    float sum = static_cast<const float*>(sources[0])[i];
    for (int s = 1; s < k; ++s) sum += static_cast<const float*>(sources[s])[i];
    static_cast<float*>(dst)[i] = sum;
  }
  return 0;
}

TEST(ApiRedOps, TheSameBitsTwiceAndOnAllRanks) {
  for (const Settings& settings :
       {Settings{.ranks = 5, .transport = "loopback"}, Settings{.ranks = 8, .dims = "4x2", .transport = "loopback"}}) {
    ranks::on_threads(settings, [&](int rank, trestleComm_t comm) {
      float thirds[3] = {1.0f / 3.0f, 1.0f / 7.0f, 1.1f};
      trestleRedOp_t scaled = trestleSum;
      ASSERT_TRUE(succeeded(
          trestleRedOpCreatePreMulSum(&scaled, &thirds[rank % 3], trestleFloat32, trestleScalarHostImmediate, comm)));
      for (const trestleRedOp_t op : {user_op(add_rounding, 1, comm), user_op(add_rounding, 0, comm), scaled}) {
        constexpr size_t kCount = 20'000;
        std::vector<float> send(kCount), once(kCount), twice(kCount);
        for (size_t i = 0; i < kCount; ++i) send[i] = 1.0f / static_cast<float>(1 + i + static_cast<size_t>(rank));
        for (std::vector<float>* recv : {&once, &twice}) {
          ASSERT_TRUE(
              succeeded(trestleAllReduce(send.data(), recv->data(), kCount, trestleFloat32, op, comm, nullptr)));
          ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        }
        EXPECT_EQ(std::memcmp(once.data(), twice.data(), kCount * sizeof(float)), 0);
        std::vector<float> of_root = once;
        ASSERT_TRUE(succeeded(
            trestleBroadcast(of_root.data(), of_root.data(), kCount, trestleFloat32, 0, comm, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        EXPECT_EQ(std::memcmp(once.data(), of_root.data(), kCount * sizeof(float)), 0);
      }
    });
  }
}

}  // namespace
}  // namespace api_redops_test
}  // namespace api
