// The caller's operators as handles, on ranks that differ, and with functions that fail.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <latch>
#include <stdexcept>

#include "conformance/api_redops_cases.h"

namespace api {
namespace api_redops_life_test {
namespace {

using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

trestleRedOp_t user_op(trestleReduceFunction_t function, int commutative, trestleComm_t comm, void* context = nullptr) {
  trestleRedOp_t op = trestleNumOps;
  EXPECT_TRUE(succeeded(trestleRedOpCreate(&op, function, context, commutative, comm)));
  return op;
}

int fold_all(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void* context) {
  const int64_t extra = context == nullptr ? 0 : *static_cast<const int64_t*>(context);
  for (size_t i = 0; i < count; ++i) {
    int64_t sum = extra * (k - 1);
    for (int s = 0; s < k; ++s) sum += static_cast<const int64_t*>(sources[s])[i];
    static_cast<int64_t*>(dst)[i] = sum;
  }
  return 0;
}

void expect_all_reduce(trestleRedOp_t op, size_t count, int64_t expected, trestleComm_t comm) {
  std::vector<int64_t> data(count, 1);
  ASSERT_TRUE(succeeded(trestleAllReduce(data.data(), data.data(), count, trestleInt64, op, comm, nullptr), comm));
  ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(data, std::vector<int64_t>(count, expected));
}

TEST(ApiRedOpHandles, WrongArgumentsAreRefused) {
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t comm) {
    trestleRedOp_t op = trestleMax;
    float scalar = 2;
    const auto make = [&](trestleRedOp_t* to, void* from, int type, int residence, trestleComm_t of) {
      return trestleRedOpCreatePreMulSum(to, from, static_cast<trestleDataType_t>(type),
                                         static_cast<trestleScalarResidence_t>(residence), of);
    };
    EXPECT_TRUE(refused(make(nullptr, &scalar, trestleFloat32, 1, comm), trestleInvalidArgument, {"op is NULL"}));
    EXPECT_TRUE(refused(make(&op, nullptr, trestleFloat32, 1, comm), trestleInvalidArgument, {"scalar is NULL"}));
    EXPECT_TRUE(refused(make(&op, &scalar, 77, 1, comm), trestleInvalidArgument, {"unknown type 77"}));
    EXPECT_TRUE(refused(make(&op, &scalar, trestleFloat32, 2, comm), trestleInvalidArgument, {"residence 2"}));
    EXPECT_TRUE(refused(make(&op, &scalar, trestleFloat32, 1, nullptr), trestleInvalidArgument, {"comm is NULL"}));
    EXPECT_TRUE(refused(trestleRedOpCreate(&op, nullptr, nullptr, 1, comm), trestleInvalidArgument, {"function"}));
    EXPECT_TRUE(refused(trestleRedOpCreate(&op, fold_all, nullptr, 2, comm), trestleInvalidArgument, {"commutative"}));
    EXPECT_TRUE(refused(trestleRedOpCreate(nullptr, fold_all, nullptr, 1, comm), trestleInvalidArgument, {"op is"}));
    EXPECT_EQ(op, trestleMax) << "nothing was written";
    for (const trestleRedOp_t own : {trestleSum, trestleAvg}) {
      EXPECT_TRUE(refused(trestleRedOpDestroy(own, comm), trestleInvalidArgument, {"built in"}));
    }
    for (const int number : {-1, 5, 0x7fffffff}) {
      const auto unknown = static_cast<trestleRedOp_t>(number);
      EXPECT_TRUE(refused(trestleRedOpDestroy(unknown, comm), trestleInvalidArgument, {std::to_string(number)}));
      EXPECT_TRUE(refused(trestleAllReduce(&scalar, &scalar, 1, trestleFloat32, unknown, comm, nullptr),
                          trestleInvalidArgument, {std::to_string(number)}));
    }
    EXPECT_TRUE(refused(trestleRedOpDestroy(trestleSum, nullptr), trestleInvalidArgument, {"comm is NULL"}));
    ASSERT_TRUE(succeeded(make(&op, &scalar, trestleFloat32, 1, comm)));
    int32_t number = 1;
    EXPECT_TRUE(refused(trestleAllReduce(&number, &number, 1, trestleInt32, op, comm, nullptr), trestleInvalidArgument,
                        {"multiplies float", "int32"}));
    expect_all_reduce(trestleSum, 3, 2, comm);
  });
}

TEST(ApiRedOpHandles, BelongToOneCommunicatorUntilTheyAreDestroyed) {
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    trestleComm_t other = nullptr;
    ASSERT_TRUE(succeeded(trestleCommSplit(comm, 0, rank, &other, nullptr), comm));
    const trestleRedOp_t op = user_op(fold_all, 1, comm);
    const trestleRedOp_t others = user_op(fold_all, 1, other);
    EXPECT_NE(op, others);
    expect_all_reduce(op, 100, 2, comm);
    expect_all_reduce(others, 100, 2, other);
    int64_t data = 1;
    EXPECT_TRUE(refused(trestleAllReduce(&data, &data, 1, trestleInt64, op, other, nullptr), trestleInvalidArgument,
                        {"does not belong to this communicator"}));
    EXPECT_TRUE(
        refused(trestleRedOpDestroy(op, other), trestleInvalidArgument, {"does not belong to this communicator"}));
    EXPECT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
    EXPECT_TRUE(refused(trestleRedOpDestroy(op, comm), trestleInvalidArgument, {"destroyed"}));
    EXPECT_TRUE(refused(trestleAllReduce(&data, &data, 1, trestleInt64, op, comm, nullptr), trestleInvalidArgument,
                        {"destroyed"}));
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    EXPECT_TRUE(refused(trestleAllReduce(&data, &data, 1, trestleInt64, op, comm, nullptr), trestleInvalidArgument,
                        {"destroyed"}));
    EXPECT_TRUE(refused(trestleGroupEnd(), trestleInvalidArgument, {"destroyed"}));
    EXPECT_TRUE(succeeded(trestleCommDestroy(other)));
  });
}

// Plans for a destroyed operator must not be used for the next one, even with equal numbers and addresses.
TEST(ApiRedOpHandles, OneAfterTheOther) {
  ranks::on_threads({.ranks = 3, .transport = "loopback"}, [](int, trestleComm_t comm) {
    int64_t extras[20];
    for (int64_t i = 0; i < 20; ++i) {
      extras[i] = i;
      const trestleRedOp_t op = user_op(fold_all, 1, comm, &extras[i]);
      expect_all_reduce(op, 64, 3 + 2 * i, comm);
      EXPECT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
    }
  });
}

TEST(ApiRedOpHandles, DestroyedWhileCallsRun) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    ranks::on_threads({.ranks = 4, .transport = transport}, [](int rank, trestleComm_t comm) {
      constexpr size_t kCount = 200'000;
      int64_t scalar = rank + 1;
      std::vector<std::vector<int64_t>> data(6, std::vector<int64_t>(kCount, 1));
      for (size_t i = 0; i < data.size(); ++i) {
        trestleRedOp_t op = trestleSum;
        if (i % 2 == 0) {
          op = user_op(fold_all, i % 4 == 0 ? 1 : 0, comm);
        } else {
          ASSERT_TRUE(
              succeeded(trestleRedOpCreatePreMulSum(&op, &scalar, trestleInt64, trestleScalarHostImmediate, comm)));
        }
        ASSERT_TRUE(
            succeeded(trestleAllReduce(data[i].data(), data[i].data(), kCount, trestleInt64, op, comm, nullptr), comm));
        ASSERT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
      }
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      for (size_t i = 0; i < data.size(); ++i) {
        EXPECT_EQ(data[i], std::vector<int64_t>(kCount, i % 2 == 0 ? 4 : 1 + 2 + 3 + 4));
      }
    });
  }
}

TEST(ApiRedOpHandles, PersistentRequestsKeepThem) {
  ranks::on_threads({.ranks = 3}, [](int rank, trestleComm_t comm) {
    for (const size_t count : {size_t{2}, size_t{30'000}}) {
      int32_t scalar = rank + 1;
      trestleRedOp_t scaled = trestleSum;
      ASSERT_TRUE(
          succeeded(trestleRedOpCreatePreMulSum(&scaled, &scalar, trestleInt32, trestleScalarHostImmediate, comm)));
      const trestleRedOp_t user = user_op(fold_all, 0, comm);
      std::vector<int32_t> send(count, 7), recv(count);
      std::vector<int64_t> own(count, 1), sum(count);
      trestleRequest_t requests[2] = {};
      ASSERT_TRUE(succeeded(trestleAllReduceStartInit(send.data(), recv.data(), count, trestleInt32, scaled, comm,
                                                      nullptr, &requests[0])));
      ASSERT_TRUE(succeeded(
          trestleAllReduceStartInit(own.data(), sum.data(), count, trestleInt64, user, comm, nullptr, &requests[1])));
      EXPECT_TRUE(succeeded(trestleRedOpDestroy(scaled, comm)));
      EXPECT_TRUE(succeeded(trestleRedOpDestroy(user, comm)));
      for (int round = 0; round < 3; ++round) {
        std::fill(recv.begin(), recv.end(), -1);
        std::fill(sum.begin(), sum.end(), -1);
        for (trestleRequest_t request : requests) {
          ASSERT_TRUE(succeeded(trestleRequestStart(request), comm));
          ASSERT_TRUE(succeeded(trestleAllReduceFinish(request, nullptr), comm));
          ASSERT_TRUE(succeeded(trestleRequestWait(request), comm));
        }
        EXPECT_EQ(recv, std::vector<int32_t>(count, 7 * 6));
        EXPECT_EQ(sum, std::vector<int64_t>(count, 3));
      }
      for (trestleRequest_t request : requests) EXPECT_TRUE(succeeded(trestleRequestFree(request)));
    }
  });
}

// ---- ranks that differ

void expect_disagreement(const ranks::Env& env, const std::vector<std::string>& facts) {
  ranks::on_threads(
      {.ranks = 2},
      [&](int rank, trestleComm_t comm) {
        const trestleRedOp_t mine[] = {user_op(fold_all, 1, comm), user_op(fold_all, 0, comm)};
        int64_t data[4] = {1, 1, 1, 1};
        trestleResult_t result = trestleAllReduce(data, data, 4, trestleInt64, mine[rank], comm, nullptr);
        if (result == trestleSuccess) result = trestleCommSynchronize(comm);
        EXPECT_TRUE(refused(result, trestleInvalidUsage, facts, comm));
      },
      env);
}

TEST(ApiRedOpKinds, MustBeAlikeOnAllRanks) {
  expect_disagreement({}, {"rank 0", "rank 1", "user-defined, not commutative"});
  expect_disagreement({{"TRESTLE_CHECK", "1"}},
                      {"rank 0", "rank 1", "user-defined, not commutative", "user-defined, commutative"});
}

TEST(ApiRedOpKinds, HandlesNeedNotBeAlike) {
  ranks::on_threads({.ranks = 3},
                    [](int rank, trestleComm_t comm) {
                      trestleRedOp_t op = trestleSum;
                      for (int i = 0; i <= rank; ++i) op = user_op(fold_all, 1, comm);
                      for (const size_t count : {size_t{1}, size_t{5000}}) expect_all_reduce(op, count, 3, comm);
                    },
                    {{"TRESTLE_CHECK", "1"}, {"TRESTLE_CHECK_PLANS", "1"}});
}

// ---- functions that fail

enum class End { kGiveUp, kThrow, kThrowOther, kAbort };

struct Doomed {
  bool here = false;
  End end = End::kGiveUp;
};

int doomed(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t type, void* context) {
  const auto& how = *static_cast<const Doomed*>(context);
  if (how.here && how.end == End::kGiveUp) return 42;
  if (how.here && how.end == End::kThrow) throw std::runtime_error("there is no inverse");
  if (how.here && how.end == End::kThrowOther) throw 7;
  if (how.here && how.end == End::kAbort) abort();
  return fold_all(dst, sources, k, count, type, nullptr);
}

void expect_failure(const Settings& settings, End end, const std::string& reason, const ranks::Env& env = {}) {
  std::latch first_done(settings.ranks);
  ranks::on_threads(
      settings,
      [&](int rank, trestleComm_t comm) {
        Doomed how{false, end};
        const trestleRedOp_t op = user_op(doomed, 0, comm, &how);
        std::vector<int64_t> data(3000, 1);
        const auto run = [&] {
          trestleResult_t result =
              trestleAllReduce(data.data(), data.data(), data.size(), trestleInt64, op, comm, nullptr);
          return result == trestleSuccess ? trestleCommSynchronize(comm) : result;
        };
        EXPECT_TRUE(succeeded(run(), comm));
        // A failure ends every pending operation. So rank 2 fails only after the others have completed their first
        // call.
        first_done.arrive_and_wait();
        how.here = rank == 2;
        // A rank that already has its data completes this call. Then its next call fails.
        if (rank != 2) (void)run();
        const std::vector<std::string> facts = {"rank 2", "operation 1", "user-defined reduction", reason};
        EXPECT_TRUE(refused(run(), trestleReductionFailed, facts, comm));
        EXPECT_TRUE(refused(run(), trestleReductionFailed, facts, comm)) << "the failure is sticky";
        trestleResult_t async = trestleSuccess;
        EXPECT_TRUE(succeeded(trestleCommGetAsyncError(comm, &async)));
        EXPECT_EQ(async, trestleReductionFailed);
        EXPECT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
      },
      env);
}

TEST(ApiRedOpFailure, AllRanksHearWhoGaveUpAndWhy) {
  for (const char* transport : {"loopback", "shm", "tcp"}) {
    expect_failure({.ranks = 4, .transport = transport}, End::kGiveUp, "gave up (it returned 42)");
    expect_failure({.ranks = 4, .transport = transport}, End::kThrow, "there is no inverse");
  }
  expect_failure({.ranks = 8, .dims = "4x2", .transport = "shm,tcp"}, End::kThrowOther, "not a std::exception");
  expect_failure({.ranks = 4}, End::kThrow, "there is no inverse", {{"TRESTLE_CHECK", "1"}});
}

TEST(ApiRedOpFailure, AFunctionThatAbortsIsADeadRank) {
  ranks::Job job{.ranks = 4};
  job.body = [](ranks::Process& process) {
    trestleComm_t comm = nullptr;
    ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 4}, &comm)));
    Doomed how{process.rank == 1, End::kAbort};
    const trestleRedOp_t op = user_op(doomed, 0, comm, &how);
    std::vector<int64_t> data(3000, 1);
    trestleResult_t result = trestleSuccess;
    // A rank that already has its data completes its call. Then its next call fails.
    while (result == trestleSuccess) {
      result = trestleAllReduce(data.data(), data.data(), data.size(), trestleInt64, op, comm, nullptr);
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
    }
    EXPECT_TRUE(refused(result, trestleRemoteError, {"rank 1"}, comm));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  };
  const std::vector<ranks::Outcome> outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes, {1});
  EXPECT_EQ(outcomes[1].signal, SIGABRT);
}

}  // namespace
}  // namespace api_redops_life_test
}  // namespace api
