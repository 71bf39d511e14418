// trestleEventNotify: its function is called exactly once, whatever happens to the event's work, and no thread has to
// wait.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace api_notify_test {
namespace {

using ranks::refused;
using ranks::Settings;
using ranks::succeeded;

constexpr size_t kLarge = 300'000;

// The arguments that a function was called with, and the number of calls.
struct Told {
  std::atomic<int> times{0};
  std::atomic<trestleResult_t> result{trestleNumResults};
  std::string sentence;  // of the first call

  static void tell(void* context, trestleResult_t result) {
    auto& told = *static_cast<Told*>(context);
    if (told.times.load() == 0) told.sentence = trestleGetLastError(nullptr);
    told.result.store(result);
    told.times.fetch_add(1);
  }
  void wait(int times_wanted = 1) {
    ranks::wait_until([&] { return times.load() >= times_wanted; });
    EXPECT_EQ(times.load(), times_wanted);
  }
};

struct Recorded {
  trestleStream_t stream = nullptr;
  trestleEvent_t event = nullptr;
  Recorded() {
    EXPECT_TRUE(succeeded(trestleStreamCreate(&stream)));
    EXPECT_TRUE(succeeded(trestleEventCreate(&event)));
  }
  ~Recorded() {
    EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
    (void)trestleStreamDestroy(stream);  // returns the failure of the case
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  void record() { EXPECT_TRUE(succeeded(trestleEventRecord(event, stream))); }
  void notify(Told& told) { EXPECT_TRUE(succeeded(trestleEventNotify(event, Told::tell, &told))); }
};

trestleResult_t reduce(std::vector<float>& data, trestleComm_t comm, trestleStream_t stream) {
  return trestleAllReduce(data.data(), data.data(), data.size(), trestleFloat32, trestleSum, comm, stream);
}

const std::vector<Settings>& everywhere() {
  static const std::vector<Settings> all = {{.ranks = 3, .transport = "loopback"},
                                            {.ranks = 3, .transport = "shm"},
                                            {.ranks = 3, .transport = "tcp"},
                                            {.ranks = 4, .dims = "2x2", .transport = "shm,tcp"}};
  return all;
}

// No thread waits, queries or issues anything meanwhile.
TEST(ApiNotify, TellsTheEndOfWorkThatNobodyWaitsFor) {
  for (const Settings& settings : everywhere()) {
    for (const size_t count : {size_t{2}, kLarge}) {
      for (const char* helper : {"1", "0"}) {
        ranks::on_threads(settings,
                          [&](int, trestleComm_t comm) {
                            Recorded at;
                            std::vector<float> data(count, 1);
                            float expected = 1;
                            for (int round = 0; round < 20; ++round) {
                              Told told;
                              EXPECT_TRUE(succeeded(reduce(data, comm, at.stream), comm));
                              at.record();
                              at.notify(told);
                              told.wait();
                              EXPECT_EQ(told.result.load(), trestleSuccess) << told.sentence;
                              expected *= static_cast<float>(settings.ranks);
                              EXPECT_TRUE(data.front() == expected && data.back() == expected) << "round " << round;
                            }
                          },
                          {{"TRESTLE_PROGRESS_THREAD", helper}});
      }
    }
  }
}

TEST(ApiNotify, WhatIsCompleteIsToldAtOnce) {
  ranks::isolated([] {
    Recorded at;
    Told never_recorded, recorded;
    at.notify(never_recorded);
    never_recorded.wait();
    at.record();
    at.notify(recorded);
    recorded.wait();
    EXPECT_EQ(never_recorded.result.load(), trestleSuccess);
    EXPECT_EQ(recorded.result.load(), trestleSuccess);
  });
}

// Rank 0 delays the call until the events are destroyed or recorded elsewhere.
TEST(ApiNotify, EachCallOfItIsToldThoughTheEventIsGone) {
  std::atomic<int> ready{0};
  ranks::on_threads({.ranks = 2, .transport = "tcp"}, [&](int rank, trestleComm_t comm) {
    std::vector<float> data(kLarge, 1);
    if (rank == 0) {
      ranks::wait_until([&] { return ready.load() != 0; });
      EXPECT_TRUE(succeeded(reduce(data, comm, nullptr), comm));
      EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
      return;
    }
    Told first, again, other;
    {
      trestleEvent_t event = nullptr, second = nullptr;
      EXPECT_TRUE(succeeded(trestleEventCreate(&event)));
      EXPECT_TRUE(succeeded(trestleEventCreate(&second)));
      Recorded elsewhere;
      EXPECT_TRUE(succeeded(reduce(data, comm, elsewhere.stream), comm));
      EXPECT_TRUE(succeeded(trestleEventRecord(event, elsewhere.stream)));
      EXPECT_TRUE(succeeded(trestleEventRecord(second, elsewhere.stream)));
      for (Told* told : {&first, &again}) EXPECT_TRUE(succeeded(trestleEventNotify(event, Told::tell, told)));
      EXPECT_TRUE(succeeded(trestleEventNotify(second, Told::tell, &other)));
      trestleStream_t idle = nullptr;
      EXPECT_TRUE(succeeded(trestleStreamCreate(&idle)));
      EXPECT_TRUE(succeeded(trestleEventRecord(second, idle)));  // nothing is pending there
      EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
      EXPECT_EQ(first.times.load() + again.times.load() + other.times.load(), 0);
      ready.store(1);
      first.wait();
      EXPECT_TRUE(succeeded(trestleEventDestroy(second)));
      EXPECT_TRUE(succeeded(trestleStreamDestroy(idle)));
    }
    again.wait();
    other.wait();
  });
}

// Rank 1 waits only for the first call. When that ends, no thread drives the second call, which the peer makes late.
TEST(ApiNotify, TellsWhatComesBehindWhatWasWaitedFor) {
  for (const char* helper : {"1", "0"}) {
    std::atomic<int> first_done{0};
    ranks::on_threads({.ranks = 2, .transport = "tcp"},
                      [&](int rank, trestleComm_t comm) {
                        std::vector<float> first(kLarge, 1), second(kLarge, 1);
                        Recorded waited_for, notified;
                        EXPECT_TRUE(succeeded(reduce(first, comm, waited_for.stream), comm));
                        waited_for.record();
                        if (rank == 0) {
                          EXPECT_TRUE(succeeded(trestleEventSynchronize(waited_for.event)));
                          ranks::wait_until([&] { return first_done.load() != 0; });
                          ranks::spin(20'000'000);
                        }
                        EXPECT_TRUE(succeeded(reduce(second, comm, notified.stream), comm));
                        notified.record();
                        Told told;
                        notified.notify(told);
                        if (rank == 1) {
                          EXPECT_TRUE(succeeded(trestleEventSynchronize(waited_for.event)));
                          first_done.store(1);
                        }
                        told.wait();
                        EXPECT_EQ(told.result.load(), trestleSuccess) << told.sentence;
                        EXPECT_EQ(second.back(), 2);
                      },
                      {{"TRESTLE_PROGRESS_THREAD", helper}});
  }
}

// The event's work may wait for another stream.
TEST(ApiNotify, FollowsEventsOverStreams) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int, trestleComm_t comm) {
    Recorded first, second;
    std::vector<float> data(kLarge, 1);
    EXPECT_TRUE(succeeded(reduce(data, comm, first.stream), comm));
    first.record();
    EXPECT_TRUE(succeeded(trestleStreamWaitEvent(second.stream, first.event)));
    second.record();
    Told told;
    second.notify(told);
    told.wait();
    EXPECT_EQ(data.back(), 2);
  });
}

// Rank 1 has called, rank 0 has not. Rank `aborts` aborts.
void abort_while_notified(ranks::Process& process, int aborts) {
  trestleComm_t comm = nullptr;
  ASSERT_TRUE(succeeded(ranks::join(process, {.ranks = 2, .transport = "shm"}, &comm)));
  Recorded at;
  std::vector<float> data(kLarge, 1);
  Told told;
  if (process.rank == 1) {
    EXPECT_TRUE(succeeded(reduce(data, comm, at.stream), comm));
    at.record();
    at.notify(told);
    EXPECT_EQ(told.times.load(), 0);
  }
  ranks::meet(process.board, 2);
  if (process.rank == aborts) {
    EXPECT_TRUE(succeeded(trestleCommAbort(comm)));
  }
  if (process.rank == 1) {
    told.wait();
    EXPECT_EQ(told.result.load(), trestleAborted) << told.sentence;
    EXPECT_FALSE(told.sentence.empty());
  }
  ranks::meet(process.board, 2);
  if (process.rank != aborts) {
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm)));
  }
  EXPECT_LE(told.times.load(), 1);
}

TEST(ApiNotify, AnAbortIsToldOnce) {
  for (const int aborts : {0, 1}) {
    ranks::Job job{.ranks = 2};
    job.body = [aborts](ranks::Process& process) { abort_while_notified(process, aborts); };
    ranks::expect_ended_well(ranks::run(job));
  }
}

TEST(ApiNotify, AFailureIsToldWithItsSentence) {
  const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = "tcp", .timeout_ms = 500});
  ranks::on_threads(settings, [](int rank, trestleComm_t comm) {
    std::vector<float> data(kLarge, 1);
    if (rank == 0) {
      trestleResult_t async = trestleSuccess;
      ranks::wait_until(
          [&] { return trestleCommGetAsyncError(comm, &async) == trestleSuccess && async != trestleSuccess; });
      return;
    }
    Recorded at;
    Told told;
    EXPECT_TRUE(succeeded(reduce(data, comm, at.stream), comm));
    at.record();
    at.notify(told);
    told.wait();
    EXPECT_EQ(told.result.load(), trestleTimeout);
    EXPECT_TRUE(ranks::contains(told.sentence, "rank 0")) << told.sentence;
  });
}

// ---- functions that make forbidden calls

[[noreturn]] void throws(void*, trestleResult_t) {
  throw std::runtime_error("no room for gradients");
}

TEST(ApiNotify, AnExceptionFailsTheCommunicator) {
  for (const size_t count : {size_t{2}, kLarge}) {
    std::latch reduced(2);
    ranks::on_threads({.ranks = 2, .transport = "shm"}, [&](int rank, trestleComm_t comm) {
      Recorded at;
      std::vector<float> data(count, 1);
      EXPECT_TRUE(succeeded(reduce(data, comm, at.stream), comm));
      EXPECT_TRUE(succeeded(trestleStreamSynchronize(at.stream)));
      reduced.arrive_and_wait();  // the failure ends all pending operations
      at.record();
      if (rank == 1) {
        EXPECT_TRUE(succeeded(trestleEventNotify(at.event, throws, nullptr)));
      }
      trestleResult_t async = trestleSuccess;
      ranks::wait_until(
          [&] { return trestleCommGetAsyncError(comm, &async) == trestleSuccess && async != trestleSuccess; });
      EXPECT_EQ(async, trestleInvalidUsage);
      const std::string sentence = trestleGetLastError(comm);
      for (const char* fact : {"rank 1", "trestleEventNotify", "no room for gradients"})
        EXPECT_TRUE(ranks::contains(sentence, fact)) << sentence;
    });
  }
}

struct Caller {
  trestleComm_t comm;
  trestleEvent_t event;
  std::vector<trestleResult_t> results;
  std::string sentence;
  std::atomic<bool> done{false};
};

void calls(void* context, trestleResult_t) {
  Caller& caller = *static_cast<Caller*>(context);
  int32_t x = 1;
  trestleResult_t async;
  caller.results = {trestleAllReduce(&x, &x, 1, trestleInt32, trestleSum, caller.comm, nullptr),
                    trestleCommSynchronize(caller.comm),
                    trestleEventSynchronize(caller.event),
                    trestleEventQuery(caller.event),
                    trestleEventDestroy(caller.event),
                    trestleEventNotify(caller.event, Told::tell, nullptr),
                    trestleCommDestroy(caller.comm),
                    trestleCommAbort(caller.comm),
                    trestleCommGetAsyncError(caller.comm, &async),
                    trestleGroupStart()};
  caller.sentence = trestleGetLastError(nullptr);
  int version = 0;
  EXPECT_EQ(trestleGetVersion(&version), trestleSuccess);
  caller.done.store(true);
}

TEST(ApiNotify, CallsOfTheLibraryInsideAreRefused) {
  ranks::on_threads({.ranks = 2, .transport = "shm"}, [](int, trestleComm_t comm) {
    Recorded at;
    at.record();
    Caller caller{comm, at.event, {}, {}, {}};
    EXPECT_TRUE(succeeded(trestleEventNotify(at.event, calls, &caller)));
    ranks::wait_until([&] { return caller.done.load(); });
    for (size_t i = 0; i < caller.results.size(); ++i)
      EXPECT_EQ(caller.results[i], trestleInvalidUsage) << "call " << i;
    EXPECT_TRUE(ranks::contains(caller.sentence, "inside a function given to trestleEventNotify")) << caller.sentence;
    int32_t x = 1;
    EXPECT_TRUE(succeeded(trestleAllReduce(&x, &x, 1, trestleInt32, trestleSum, comm, nullptr), comm));
    EXPECT_TRUE(succeeded(trestleCommSynchronize(comm), comm));
    EXPECT_EQ(x, 2);
  });
}

TEST(ApiNotify, WrongArgumentsAreRefused) {
  ranks::isolated([] {
    Recorded at;
    Told told;
    EXPECT_TRUE(
        refused(trestleEventNotify(nullptr, Told::tell, &told), trestleInvalidArgument, {"EventNotify", "NULL"}));
    EXPECT_TRUE(refused(trestleEventNotify(at.event, nullptr, &told), trestleInvalidArgument, {"EventNotify", "NULL"}));
    trestleEvent_t gone = nullptr;
    EXPECT_TRUE(succeeded(trestleEventCreate(&gone)));
    EXPECT_TRUE(succeeded(trestleEventDestroy(gone)));
    EXPECT_TRUE(refused(trestleEventNotify(gone, Told::tell, &told), trestleInvalidUsage, {"destroyed"}));
    EXPECT_EQ(told.times.load(), 0);
  });
}

// ---- several threads wait for the same work

TEST(ApiWaits, ManyThreadsWaitForTheSameThing) {
  for (const Settings& settings : everywhere()) {
    ranks::on_threads(settings, [](int, trestleComm_t comm) {
      Recorded at;
      std::vector<float> data(kLarge, 1);
      EXPECT_TRUE(succeeded(reduce(data, comm, at.stream), comm));
      at.record();
      Told told;
      at.notify(told);
      std::vector<std::thread> threads;
      for (int i = 0; i < 9; ++i) {
        threads.emplace_back([&, i] {
          const trestleResult_t result = i % 3 == 0   ? trestleEventSynchronize(at.event)
                                         : i % 3 == 1 ? trestleStreamSynchronize(at.stream)
                                                      : trestleCommSynchronize(comm);
          EXPECT_TRUE(succeeded(result, comm)) << "thread " << i;
        });
      }
      for (std::thread& thread : threads) thread.join();
      told.wait();
    });
  }
}

}  // namespace
}  // namespace api_notify_test
}  // namespace api
