// Configuration of single calls: which calls it affects, and which configurations are refused.
#include <gtest/gtest.h>
#include <trestle/trestle.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace api_call_config_test {
namespace {

trestleCallConfig_t config_with(const char* algo, int chunks = TRESTLE_CONFIG_UNDEF_INT) {
  trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
  config.algo = algo;
  config.chunks = chunks;
  return config;
}

void expect_sum(trestleComm_t comm, size_t count) {
  std::vector<int32_t> data(count, 2);
  ASSERT_TRUE(
      ranks::succeeded(trestleAllReduce(data.data(), data.data(), count, trestleInt32, trestleSum, comm, nullptr)));
  ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
  EXPECT_EQ(data, std::vector<int32_t>(count, 8));
}

void every_form(trestleComm_t comm) {
  for (const size_t count : {size_t{2}, size_t{50'000}}) expect_sum(comm, count);
  std::vector<int32_t> data(1000, 1);
  trestleRequest_t request = nullptr;
  ASSERT_TRUE(ranks::succeeded(
      trestleAllReduceStart(data.data(), data.data(), 1000, trestleInt32, trestleSum, comm, nullptr, &request)));
  ASSERT_TRUE(ranks::succeeded(trestleAllReduceFinish(request, nullptr)));
  ASSERT_TRUE(ranks::succeeded(trestleRequestWait(request)));
  EXPECT_EQ(data, std::vector<int32_t>(1000, 4));
  ASSERT_TRUE(ranks::succeeded(trestleRequestFree(request)));
  ASSERT_TRUE(ranks::succeeded(trestleGroupStart()));
  ASSERT_TRUE(ranks::succeeded(trestleAllReduce(data.data(), data.data(), 9, trestleInt32, trestleMax, comm, nullptr)));
  ASSERT_TRUE(ranks::succeeded(trestleGroupEnd()));
  ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
}

TEST(ApiCallConfig, HoldsForEveryFormOfACallAndNests) {
  ranks::on_threads({.ranks = 4, .dims = "2x2"}, [](int, trestleComm_t comm) {
    trestleCallConfig_t outer = config_with("ring,ring", 3);
    outer.deterministic = 1;
    trestleCallConfig_t inner = TRESTLE_CALL_CONFIG_INITIALIZER;
    inner.sched = "themis";
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPush(&outer)));
    every_form(comm);
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPush(&inner)));
    every_form(comm);
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPop()));
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPop()));
    every_form(comm);
    EXPECT_TRUE(ranks::refused(trestleCallConfigPop(), trestleInvalidUsage, {"CallConfigPop"}));
  });
}

TEST(ApiCallConfig, WrongNamesAndNumbersAreRefused) {
  ranks::on_threads({.ranks = 4}, [](int, trestleComm_t comm) {
    EXPECT_TRUE(ranks::refused(trestleCallConfigPush(nullptr), trestleInvalidArgument, {"NULL"}));
    trestleCallConfig_t config = config_with(nullptr, -7);
    EXPECT_TRUE(ranks::refused(trestleCallConfigPush(&config), trestleInvalidArgument, {"chunks", "-7"}));
    config = config_with(nullptr);
    config.size = 2;
    EXPECT_TRUE(ranks::refused(trestleCallConfigPush(&config), trestleInvalidArgument, {"size"}));
    config = config_with(nullptr);
    config.magic = 2;
    EXPECT_TRUE(ranks::refused(trestleCallConfigPush(&config), trestleInvalidArgument, {"magic"}));
    trestleCallConfig_t schedule = config_with(nullptr);
    schedule.sched = "quick";
    for (const trestleCallConfig_t& wrong : {config_with("quick"), schedule}) {
      ASSERT_TRUE(ranks::succeeded(trestleCallConfigPush(&wrong)));
      int32_t value = 2;
      EXPECT_TRUE(ranks::refused(trestleAllReduce(&value, &value, 1, trestleInt32, trestleSum, comm, nullptr),
                                 trestleInvalidArgument, {"quick"}))
          << "also where the call is so small that it needs neither";
      ASSERT_TRUE(ranks::succeeded(trestleCallConfigPop()));
    }
    expect_sum(comm, 1);
  });
}

TEST(ApiCallConfig, RanksThatDifferAreBothNamed) {
  ranks::on_threads({.ranks = 2}, [](int rank, trestleComm_t comm) {
    const trestleCallConfig_t config = config_with("ring", rank + 1);
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPush(&config)));
    std::vector<float> data(1000, 1);
    trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, nullptr);
    EXPECT_TRUE(ranks::refused(trestleCommSynchronize(comm), trestleInvalidUsage, {"rank 0", "rank 1"}, comm));
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPop()));
  });
}

// The predicted time of an all-reduce of 16 MiB.
double predicted(trestleComm_t comm) {
  double time_us = -1;
  EXPECT_TRUE(ranks::succeeded(trestlePredictTime(comm, trestleCollAllReduce, 4 << 20, trestleFloat32, &time_us)));
  return time_us;
}

// Four ranks in one process, and rank 0's predicted times of several calls.
class Four {
 public:
  explicit Four(int chunks = TRESTLE_CONFIG_UNDEF_INT) {
    trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
    config.dims = "2x2";
    config.transport = "shm,tcp";
    config.sched = "baseline";
    config.chunks = chunks;
    EXPECT_TRUE(ranks::succeeded(trestleCommInitAllConfig(comms_, 4, &config)));
  }
  ~Four() {
    for (trestleComm_t comm : comms_) EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm)));
  }
  Four(const Four&) = delete;
  Four& operator=(const Four&) = delete;
  double predict() const { return predicted(comms_[0]); }
  double predict(const trestleCallConfig_t* config) const {
    EXPECT_TRUE(ranks::succeeded(trestleCallConfigPush(config)));
    const double time_us = predict();
    EXPECT_TRUE(ranks::succeeded(trestleCallConfigPop()));
    return time_us;
  }

 private:
  trestleComm_t comms_[4] = {};
};

// A call with a number of chunks equals the call of a communicator that always uses this number.
TEST(ApiCallConfig, ChunksAreTheCallsOwn) {
  ranks::isolated([] {
    const Four open;
    const double free_choice = open.predict();
    double times[2] = {};
    for (const int i : {0, 1}) {
      const int chunks = i == 0 ? 1 : 16;
      const trestleCallConfig_t config = config_with(nullptr, chunks);
      times[i] = open.predict(&config);
      EXPECT_EQ(times[i], Four(chunks).predict()) << chunks << " chunks";
    }
    EXPECT_NE(times[0], times[1]);
    EXPECT_EQ(open.predict(), free_choice) << "nothing is pushed any more";
    const trestleCallConfig_t any = config_with(nullptr, 0);
    EXPECT_EQ(Four(16).predict(&any), free_choice);
  });
}

// The library must not read beyond the caller's struct: the bytes there would make it refuse chunks and deterministic.
TEST(ApiCallConfig, OldAndNewSizesWork) {
  ranks::isolated([] {
    const Four four;
    const trestleCallConfig_t none = TRESTLE_CALL_CONFIG_INITIALIZER;
    const trestleCallConfig_t all = config_with("ring,ring", 1);
    const trestleCallConfig_t names_only = config_with("ring,ring");
    EXPECT_NE(four.predict(&all), four.predict(&names_only));
    EXPECT_NE(four.predict(&all), four.predict(&none));
    const auto cut_off_at = [&](size_t size) {
      trestleCallConfig_t config = all;
      std::memset(reinterpret_cast<char*>(&config) + size, 0x5a, sizeof config - size);
      config.size = size;
      return four.predict(&config);
    };
    EXPECT_EQ(cut_off_at(offsetof(trestleCallConfig_t, algo)), four.predict(&none));
    EXPECT_EQ(cut_off_at(offsetof(trestleCallConfig_t, chunks)), four.predict(&names_only));
    EXPECT_EQ(cut_off_at(offsetof(trestleCallConfig_t, timeoutMs)), four.predict(&all));
    EXPECT_EQ(cut_off_at(offsetof(trestleCallConfig_t, deterministic)), four.predict(&all));
    struct {
      trestleCallConfig_t config;
      int64_t more = 0x5a5a5a5a;
    } larger{all};
    larger.config.size = sizeof larger;
    EXPECT_EQ(four.predict(&larger.config), four.predict(&all));
  });
}

TEST(ApiCallConfig, TheDeadlineIsTheCallsOwn) {
  ranks::isolated([] {
    trestleComm_t all[2] = {};
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAll(all, 2, nullptr)));
    trestleCallConfig_t config = TRESTLE_CALL_CONFIG_INITIALIZER;
    config.timeoutMs = 50;
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPush(&config)));
    int32_t value = 0;
    ASSERT_TRUE(ranks::succeeded(trestleRecv(&value, 1, trestleInt32, 1, all[0], nullptr)));
    ASSERT_TRUE(ranks::succeeded(trestleCallConfigPop()));
    EXPECT_TRUE(ranks::refused(trestleCommSynchronize(all[0]), trestleTimeout, {"rank 1"}, all[0]));
    for (trestleComm_t comm : all) EXPECT_EQ(trestleCommAbort(comm), trestleSuccess);
  });
}

}  // namespace
}  // namespace api_call_config_test
}  // namespace api
