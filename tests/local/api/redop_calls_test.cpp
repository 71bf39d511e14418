// A reduction function that calls the library: every call except the named queries is refused. The function's return
// value has its usual meaning.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "local/api/every_call.h"
#include "support/ranks.h"

namespace api {
namespace redop_calls_test {
namespace {

using ranks::contains;
using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

constexpr size_t kCount = 50'000;

// The calls that the function of one rank makes, and their results.
struct Inside {
  every_call::Things things;
  bool gives_up = false;
  std::atomic<bool> called{false};
  std::map<std::string, std::pair<trestleResult_t, std::string>> results{};  // of the first run
  std::string failure{};  // the communicator's, as the function sees it
};

int fold_and_call(void* dst, const void* const* sources, int k, size_t count, trestleDataType_t, void* context) {
  Inside& inside = *static_cast<Inside*>(context);
  int last = 0;
  if (!inside.called.exchange(true)) {
    std::vector<every_call::NamedCall> all = every_call::calls_on(inside.things);
    for (auto& call : every_call::other_calls()) all.push_back(std::move(call));
    for (const auto& [name, call] : all) {
      const trestleResult_t result = call();
      inside.results[name] = {result, trestleGetLastError(nullptr)};
      last = result;
    }
    int version = 0;
    inside.results["GetVersion"] = {trestleGetVersion(&version), trestleGetErrorString(trestleTimeout)};
    inside.failure = trestleGetLastError(inside.things.comm);
  }
  for (size_t i = 0; i < count; ++i) {
    int64_t sum = 0;
    for (int s = 0; s < k; ++s) sum += static_cast<const int64_t*>(sources[s])[i];
    static_cast<int64_t*>(dst)[i] = sum;
  }
  return inside.gives_up ? last : 0;
}

void expect_refusals(const Inside& inside) {
  ASSERT_TRUE(inside.called);
  for (const auto& [name, said] : inside.results) {
    if (name == "GetVersion") continue;
    EXPECT_EQ(said.first, trestleInvalidUsage) << name << ": " << said.second;
    EXPECT_TRUE(contains(said.second, "reduction function")) << name << ": " << said.second;
  }
  EXPECT_EQ(inside.results.at("GetVersion").first, trestleSuccess);
  EXPECT_FALSE(inside.results.at("GetVersion").second.empty());
  EXPECT_GT(inside.results.size(), 60u);
}

Settings settings_of(const char* transport, bool processes) {
  return {.ranks = 3, .transport = transport, .timeout_ms = 30'000, .processes = processes};
}

TEST(ApiRedOpCalls, EveryCallFromInsideIsRefused) {
  for (const bool processes : {false, true}) {
    for (const char* transport : {"", "tcp"}) {
      ranks::on_ranks(settings_of(transport, processes), [](int rank, trestleComm_t comm) {
        Inside inside{.things = every_call::make_things(comm)};
        trestleRedOp_t op = trestleSum;
        ASSERT_TRUE(succeeded(trestleRedOpCreate(&op, fold_and_call, &inside, 1, comm)));
        for (int round = 0; round < 3; ++round) {
          std::vector<int64_t> data(kCount, rank + 1);
          ASSERT_TRUE(succeeded(trestleAllReduce(data.data(), data.data(), kCount, trestleInt64, op, comm, nullptr)));
          ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
          EXPECT_EQ(data, std::vector<int64_t>(kCount, 6));
        }
        expect_refusals(inside);
        EXPECT_TRUE(contains(inside.failure, "reduction function"))
            << "no failure of the communicator, so the last call's";
        EXPECT_TRUE(succeeded(trestleRedOpDestroy(op, comm)));
        every_call::free_things(inside.things);
      });
    }
  }
}

// Calls of the driving thread are refused, including calls in its group. Calls of other threads are not.
TEST(ApiRedOpCalls, TheGroupOfTheThreadAndOtherThreadsGoOn) {
  ranks::on_threads(
      settings_of("", false),
      [](int rank, trestleComm_t comm) {
        Inside inside{.things = every_call::make_things(comm)};
        trestleRedOp_t op = trestleSum;
        ASSERT_TRUE(succeeded(trestleRedOpCreate(&op, fold_and_call, &inside, 1, comm)));
        std::vector<int64_t> data(kCount, rank + 1);
        int64_t more = 1;
        trestleStream_t stream = nullptr;
        ASSERT_TRUE(succeeded(trestleStreamCreate(&stream)));
        ASSERT_TRUE(succeeded(trestleAllReduce(data.data(), data.data(), kCount, trestleInt64, op, comm, stream)));
        ASSERT_TRUE(succeeded(trestleGroupStart()));
        ASSERT_TRUE(succeeded(trestleAllReduce(&more, &more, 1, trestleInt64, trestleSum, comm, nullptr)));
        EXPECT_TRUE(succeeded(trestleStreamSynchronize(stream), comm));  // the function runs on a rank's thread
        std::thread other([] {
          trestleStream_t own = nullptr;
          EXPECT_TRUE(succeeded(trestleStreamCreate(&own)));
          EXPECT_TRUE(succeeded(trestleStreamDestroy(own)));
        });
        other.join();
        EXPECT_TRUE(succeeded(trestleGroupEnd(), comm));
        ASSERT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
        EXPECT_EQ(data, std::vector<int64_t>(kCount, 6));
        EXPECT_EQ(more, 3);
        expect_refusals(inside);
        EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
        every_call::free_things(inside.things);
      },
      {{"TRESTLE_PROGRESS_THREAD", "0"}});
}

TEST(ApiRedOpCalls, WhatTheFunctionReturnsDecides) {
  ranks::on_threads(settings_of("", false), [](int rank, trestleComm_t comm) {
    Inside inside{.things = every_call::make_things(comm), .gives_up = true};
    trestleRedOp_t op = trestleSum;
    ASSERT_TRUE(succeeded(trestleRedOpCreate(&op, fold_and_call, &inside, 1, comm)));
    std::vector<int64_t> data(kCount, rank + 1);
    trestleResult_t result = trestleAllReduce(data.data(), data.data(), kCount, trestleInt64, op, comm, nullptr);
    if (result == trestleSuccess) result = trestleCommSynchronize(comm);
    const std::string sentence = trestleGetLastError(comm);
    EXPECT_EQ(result, trestleReductionFailed) << sentence;
    EXPECT_TRUE(contains(sentence, "gave up (it returned " + std::to_string(trestleInvalidUsage) + ")")) << sentence;
  });
}

}  // namespace
}  // namespace redop_calls_test
}  // namespace api
