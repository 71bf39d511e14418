// Several helper threads in a process with several ranks and communicators (TRESTLE_PROGRESS_THREADS).
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace progress_threads_test {
namespace {

using ranks::Settings;
using ranks::succeeded;

constexpr size_t kLarge = 300'000;
constexpr int kRounds = 10;

const std::vector<Settings>& everywhere() {
  static const std::vector<Settings> all = {{.ranks = 3, .transport = "loopback"},
                                            {.ranks = 3, .transport = "shm"},
                                            {.ranks = 3, .transport = "tcp"},
                                            {.ranks = 4, .dims = "2x2", .transport = "shm,tcp"}};
  return all;
}

// A communicator with a stream and data of its own.
struct Part {
  trestleComm_t comm = nullptr;
  trestleStream_t stream = nullptr;
  std::vector<float> data;

  Part(trestleComm_t of, size_t count) : data(count, 1) {
    EXPECT_TRUE(succeeded(trestleCommSplit(of, 0, 0, &comm, nullptr), of));
    EXPECT_TRUE(succeeded(trestleStreamCreate(&stream)));
  }
  ~Part() {
    EXPECT_TRUE(succeeded(trestleStreamDestroy(stream)));
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  void reduce() {
    EXPECT_TRUE(succeeded(
        trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, stream), comm));
  }
  // Reads it without driving anything.
  uint64_t completed() const {
    trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
    EXPECT_TRUE(succeeded(trestleCommGetStats(comm, &stats), comm));
    return stats.total.completed;
  }
};

void on_each(const char* helpers, const std::function<void(const Settings&, std::vector<Part*>)>& body) {
  for (const Settings& settings : everywhere()) {
    ranks::on_threads(settings,
                      [&](int, trestleComm_t comm) {
                        Part small(comm, 2), large(comm, kLarge), larger(comm, 2 * kLarge);
                        body(settings, {&small, &large, &larger});
                      },
                      {{"TRESTLE_PROGRESS_THREADS", helpers}});
  }
}

// No thread waits or tests before all is complete.
TEST(ApiProgressThreads, EndWhatNobodyWaitsFor) {
  for (const char* helpers : {"1", "2", "64"}) {
    on_each(helpers, [](const Settings& settings, const std::vector<Part*>& parts) {
      for (uint64_t round = 1; round <= kRounds; ++round) {
        for (Part* part : parts) part->reduce();
        for (Part* part : parts) ranks::wait_until([&] { return part->completed() == round; });
      }
      float expected = 1;
      for (int round = 0; round < kRounds; ++round) expected *= static_cast<float>(settings.ranks);
      for (Part* part : parts) {
        EXPECT_TRUE(succeeded(trestleStreamSynchronize(part->stream), part->comm));
        EXPECT_EQ(part->data.front(), expected);
        EXPECT_EQ(part->data.back(), expected);
      }
    });
  }
}

std::atomic<int> inside{0};
void tell(void* times, trestleResult_t result) {
  EXPECT_EQ(inside.fetch_add(1), 0) << "two notifications at once";
  EXPECT_EQ(result, trestleSuccess);
  inside.fetch_sub(1);
  static_cast<std::atomic<int>*>(times)->fetch_add(1);
}

TEST(ApiProgressThreads, TellOneNotificationAtATime) {
  on_each("2", [](const Settings&, const std::vector<Part*>& parts) {
    trestleEvent_t event = nullptr;
    EXPECT_TRUE(succeeded(trestleEventCreate(&event)));
    std::atomic<int> times{0};
    for (int round = 0; round < kRounds; ++round) {
      for (Part* part : parts) {
        part->reduce();
        EXPECT_TRUE(succeeded(trestleEventRecord(event, part->stream)));
        EXPECT_TRUE(succeeded(trestleEventNotify(event, tell, &times)));
      }
    }
    const int all = kRounds * static_cast<int>(parts.size());
    ranks::wait_until([&] { return times.load() >= all; });
    EXPECT_EQ(times.load(), all);
    EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
  });
}

}  // namespace
}  // namespace progress_threads_test
}  // namespace api
