// Ranks make different calls. Each gets an error that names the operation and both ranks, well before the deadline.
#include <gtest/gtest.h>

#include <mutex>

#include "support/ranks.h"

namespace api {
namespace disagreement_test {
namespace {

using ranks::contains;
using ranks::succeeded;

struct Mistake {
  const char* name;
  // The call of each rank. Rank 1 is `odd` and calls something else than the others.
  std::function<trestleResult_t(bool odd, std::byte* send, std::byte* recv, trestleComm_t comm)> call;
};

constexpr size_t kMost = 400'000;  // elements

trestleResult_t all_reduce(std::byte* send, std::byte* recv, size_t count, trestleDataType_t type, trestleRedOp_t op,
                           trestleComm_t comm) {
  return trestleAllReduce(send, recv, count, type, op, comm, nullptr);
}

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all;
  const auto add = [&all](const char* name, auto call) { all.push_back({name, call}); };
  add("small: all-reduce and broadcast", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    if (odd) return trestleBroadcast(send, recv, 2, trestleFloat32, 0, comm, nullptr);
    return all_reduce(send, recv, 2, trestleFloat32, trestleSum, comm);
  });
  add("small: sum and max", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, 2, trestleFloat32, odd ? trestleMax : trestleSum, comm);
  });
  add("small: counts", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, odd ? 3 : 2, trestleFloat32, trestleSum, comm);
  });
  add("small and large", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, odd ? kMost : 2, trestleFloat32, trestleSum, comm);
  });
  add("small barrier and large broadcast of another rank",
      [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
        if (!odd) return trestleBarrier(comm, nullptr);
        return trestleBroadcast(send, recv, kMost, trestleFloat32, 0, comm, nullptr);
      });
  add("large: collectives", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    if (odd) return trestleAllGather(send, recv, 50'000, trestleFloat32, comm, nullptr);
    return trestleReduceScatter(send, recv, 50'000, trestleFloat32, trestleSum, comm, nullptr);
  });
  add("large: sum and max", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, kMost, trestleFloat32, odd ? trestleMax : trestleSum, comm);
  });
  add("large: types of the same size", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, kMost, odd ? trestleInt32 : trestleFloat32, trestleSum, comm);
  });
  add("large: counts", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, odd ? kMost : kMost - 1, trestleFloat32, trestleSum, comm);
  });
  add("middle: counts of very different schedules", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return all_reduce(send, recv, odd ? kMost : 5000, trestleFloat32, trestleSum, comm);
  });
  // Each rank names another rank as the root, so no rank sends anything.
  add("roots", [](bool odd, std::byte* send, std::byte* recv, trestleComm_t comm) {
    return trestleBroadcast(send, recv, kMost, trestleFloat32, odd ? 0 : 1, comm, nullptr);
  });
  return all;
}

// Makes a few right calls and the mistake, and checks the error of every rank.
void make_mistake(const Mistake& mistake, int rank, trestleComm_t comm) {
  SCOPED_TRACE(testing::Message() << mistake.name << ", rank " << rank);
  std::vector<std::byte> send(kMost * 4), recv(kMost * 4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(succeeded(
        all_reduce(send.data(), recv.data(), i % 2 == 0 ? 2 : 60'000, trestleFloat32, trestleSum, comm), comm));
  }
  trestleResult_t result = mistake.call(rank == 1, send.data(), recv.data(), comm);
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  // A rank whose part needed no other rank is told a moment later.
  while (result == trestleSuccess) ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comm, &result)));
  const std::string sentence = trestleGetLastError(comm);
  EXPECT_EQ(result, trestleInvalidUsage) << sentence;
  EXPECT_TRUE(contains(sentence, "rank 0")) << sentence;
  EXPECT_TRUE(contains(sentence, "rank 1")) << sentence;
  EXPECT_TRUE(contains(sentence, "operation 3 ")) << sentence;
  EXPECT_TRUE(contains(sentence, "hash")) << sentence;
  EXPECT_TRUE(contains(sentence, "TRESTLE_CHECK=1 shows both calls")) << sentence;
}

class ApiDisagreement : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(All, ApiDisagreement, testing::Range(size_t{0}, mistakes().size()));

TEST_P(ApiDisagreement, IsFoundBetweenThreads) {
  for (const char* transport : {"", "tcp"}) {
    SCOPED_TRACE(transport);
    const Mistake mistake = mistakes()[GetParam()];
    ranks::on_threads(
        {.ranks = 2, .transport = transport}, [&](int rank, trestleComm_t comm) { make_mistake(mistake, rank, comm); },
        {}, 50);
  }
}

// Ranks that the difference does not concern are told too.
TEST_P(ApiDisagreement, IsToldToAllRanks) {
  for (const char* transport : {"shm", "tcp"}) {
    SCOPED_TRACE(transport);
    const Mistake mistake = mistakes()[GetParam()];
    const auto body = [&](ranks::Process& process, trestleComm_t comm) {
      std::vector<std::byte> send(kMost * 16), recv(kMost * 16);
      trestleResult_t result = mistake.call(process.rank == 1, send.data(), recv.data(), comm);
      if (result == trestleSuccess) result = trestleCommSynchronize(comm);
      while (result == trestleSuccess) ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comm, &result)));
      const std::string sentence = trestleGetLastError(comm);
      EXPECT_EQ(result, trestleInvalidUsage) << sentence;
      EXPECT_TRUE(contains(sentence, "rank 1")) << sentence;
      EXPECT_TRUE(contains(sentence, "operation 0 ")) << sentence;
    };
    ranks::on_processes({.ranks = 4, .transport = transport}, body, {}, 50);
  }
}

void hear_both_calls(trestleResult_t result, trestleComm_t comm, const std::vector<std::string>& parts) {
  if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  while (result == trestleSuccess) ASSERT_TRUE(succeeded(trestleCommGetAsyncError(comm, &result)));
  const std::string sentence = trestleGetLastError(comm);
  EXPECT_EQ(result, trestleInvalidUsage) << sentence;
  for (const std::string& part : parts) EXPECT_TRUE(contains(sentence, part)) << part << " is not in: " << sentence;
}

ranks::Env checked(int) {
  return {{"TRESTLE_CHECK", "1"}};
}

// With TRESTLE_CHECK the sentence describes both calls, whichever rank finds the difference first.
TEST_P(ApiDisagreement, IsToldInWordsWhereCallsAreChecked) {
  for (const char* transport : {"shm", "tcp"}) {
    SCOPED_TRACE(transport);
    const Mistake mistake = mistakes()[GetParam()];
    const auto body = [&](ranks::Process& process, trestleComm_t comm) {
      std::vector<std::byte> send(kMost * 12), recv(kMost * 12);
      for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(succeeded(
            all_reduce(send.data(), recv.data(), i % 2 == 0 ? 2 : 60'000, trestleFloat32, trestleSum, comm), comm));
      }
      ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      ranks::meet(process.board, 3);  // the news of the mistake arrives quickly
      hear_both_calls(mistake.call(process.rank == 1, send.data(), recv.data(), comm), comm,
                      {"rank 1 (", " calls operation 3 as ", ", rank "});
    };
    ranks::on_processes({.ranks = 3, .transport = transport}, body, checked, 50);
  }
}

// Only the check finds these mistakes, because the number of bytes is the expected one.
TEST(ApiChecked, MessagesOfOtherTypesAreFound) {
  const auto body = [](ranks::Process& process, trestleComm_t comm) {
    std::vector<std::byte> data(4000);
    const trestleResult_t result = process.rank == 0 ? trestleSend(data.data(), 1000, trestleFloat32, 1, comm, nullptr)
                                                     : trestleRecv(data.data(), 1000, trestleInt32, 0, comm, nullptr);
    hear_both_calls(result, comm, {"rank 0 (", "sends message 0 as", "float", "rank 1 (", "receives it as", "int32"});
  };
  ranks::on_processes({.ranks = 2, .transport = "shm"}, body, checked, 50);
}

TEST(ApiChecked, OrderIsCompared) {
  const auto body = [](ranks::Process& process, trestleComm_t comm) {
    std::vector<float> x(1000), y(1000);
    trestleStream_t other = nullptr;
    ASSERT_TRUE(succeeded(trestleStreamCreate(&other)));
    const auto barrier = [&] { return trestleBarrier(comm, other); };
    const auto reduce = [&] {
      return trestleAllReduce(x.data(), y.data(), x.size(), trestleFloat32, trestleSum, comm, nullptr);
    };
    trestleResult_t result = process.rank == 1 ? barrier() : reduce();
    const trestleResult_t second = process.rank == 1 ? reduce() : barrier();
    if (result == trestleSuccess) result = second;
    hear_both_calls(result, comm, {"rank 1 (", " as allreduce of 1000 float (sum)", " as barrier"});
    trestleStreamDestroy(other);
  };
  ranks::on_processes({.ranks = 3, .transport = "tcp"}, body, checked, 50);
}

// A call without data sends no message, but its neighbour's does.
TEST(ApiChecked, EmptyCallsAreCompared) {
  const auto body = [](ranks::Process& process, trestleComm_t comm) {
    float x[4] = {}, y[4] = {};
    const size_t count = process.rank == 0 ? 0 : 4;
    hear_both_calls(trestleAllReduce(x, y, count, trestleFloat32, trestleSum, comm, nullptr), comm,
                    {"operation 0", "allreduce of 0 float (sum)", "allreduce of 4 float (sum)"});
  };
  const auto grouped = [](ranks::Process& process, trestleComm_t comm) {
    float x[4] = {}, y[4] = {};
    const int other = 1 - process.rank;
    ASSERT_TRUE(succeeded(trestleGroupStart()));
    ASSERT_TRUE(succeeded(trestleSend(x, process.rank == 0 ? 0 : 4, trestleFloat32, other, comm, nullptr), comm));
    ASSERT_TRUE(succeeded(trestleRecv(y, 4, trestleFloat32, other, comm, nullptr), comm));
    hear_both_calls(trestleGroupEnd(), comm, {"sends message 0 as sendrecv of 0 float", "as sendrecv of 4 float"});
  };
  ranks::on_processes({.ranks = 2, .transport = "shm"}, body, checked, 50);
  ranks::on_processes({.ranks = 2, .transport = "shm"}, grouped, checked, 50);
}

TEST(ApiChecked, SplitsAndFinalizeHaveTheirPlaceInTheOrder) {
  const auto split = [](ranks::Process& process, trestleComm_t comm) {
    trestleComm_t part = nullptr;
    hear_both_calls(process.rank == 0 ? trestleCommSplit(comm, 0, 0, &part, nullptr) : trestleBarrier(comm, nullptr),
                    comm, {"operation 0", " as CommSplit", " as barrier"});
  };
  const auto finalize = [](ranks::Process& process, trestleComm_t comm) {
    hear_both_calls(process.rank == 0 ? trestleCommFinalize(comm) : trestleBarrier(comm, nullptr), comm,
                    {"operation 0", " as CommFinalize", " as barrier"});
  };
  ranks::on_processes({.ranks = 2, .transport = "shm"}, split, checked, 50);
  ranks::on_processes({.ranks = 2, .transport = "shm"}, finalize, checked, 50);
}

TEST(ApiChecked, RightCallsStayRight) {
  const auto body = [](ranks::Process& process, trestleComm_t comm) {
    std::vector<float> x(5000, 1.0f), y(5000);
    for (size_t i = 0; i < 300; ++i) {
      const size_t count = i % 7 == 0 ? 0 : i % 3 == 0 ? 2 : 10 * i + 1;
      ASSERT_TRUE(
          succeeded(trestleAllReduce(x.data(), y.data(), count, trestleFloat32, trestleSum, comm, nullptr), comm));
      const int next = (process.rank + 1) % process.ranks, before = (process.rank + process.ranks - 1) % process.ranks;
      ASSERT_TRUE(succeeded(trestleGroupStart()));
      ASSERT_TRUE(succeeded(trestleSend(x.data(), count, trestleFloat32, next, comm, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleRecv(y.data(), count, trestleFloat32, before, comm, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleGroupEnd()));
    }
    for (int i = 0; i < 3; ++i) {
      trestleComm_t part = nullptr;
      ASSERT_TRUE(succeeded(trestleCommSplit(comm, process.rank % 2, 0, &part, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleBarrier(part, nullptr), part));
      ASSERT_TRUE(succeeded(trestleBarrier(comm, nullptr), comm));
      ASSERT_TRUE(succeeded(trestleCommFinalize(part), part));
      ASSERT_TRUE(succeeded(trestleCommDestroy(part)));
    }
    ASSERT_TRUE(succeeded(trestleCommFinalize(comm), comm));
  };
  ranks::on_processes({.ranks = 4, .transport = "shm"}, body, checked, 100);
}

}  // namespace
}  // namespace disagreement_test
}  // namespace api
