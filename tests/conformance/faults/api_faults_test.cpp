// One request of the library for memory or for a descriptor fails while a job runs. A call that was refused for this
// reason can be repeated. A communicator that ends for this reason says so, with trestleSystemError on every rank.
// Nothing hangs, no process ends, and nothing is left behind.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "conformance/faults/api_fault_job.h"
#include "conformance/faults/fault_points.h"
#include "support/open_descriptors.h"
#include "support/ranks.h"

namespace api {
namespace {

using faults::Kind;

const bool kFull = std::getenv("TRESTLE_TEST_FULL") != nullptr;

// The first ones one by one, then ever fewer: what a job does first, it mostly does again.
long next_after(long nth) {
  return kFull ? nth + 1 : nth + 1 + nth / 8;
}

// What the sentences of these faults say, each in its own words.
bool names_the_resource(const std::string& sentence) {
  for (const char* words : {"memory", "descriptor", "open files"}) {
    if (ranks::contains(sentence, words)) return true;
  }
  return false;
}

// aborted: the other rank gave up. Its abort may have come before this rank could read its own sentence.
void expect_explained(const JobResult& end, int rank, bool aborted = false) {
  if (end.result == trestleSuccess || (aborted && ranks::contains(end.sentence, "aborted by"))) return;
  EXPECT_EQ(end.result, trestleSystemError) << "rank " << rank << ", " << end.call << ": " << end.sentence;
  EXPECT_TRUE(names_the_resource(end.sentence)) << "rank " << rank << ", " << end.call << ": " << end.sentence;
}

// A new communicator of the same process. Without a fault it must work.
trestleResult_t make_comms(const ranks::Settings& settings, std::array<trestleComm_t, kFaultRanks>& comms) {
  const trestleConfig_t config = ranks::config_of(settings);
  return faults::counted([&] { return trestleCommInitAllConfig(comms.data(), kFaultRanks, &config); });
}

// Both ranks' parts at the same time, with a fault. Returns whether anything failed.
bool run_with_fault(const std::array<trestleComm_t, kFaultRanks>& comms, Kind kind, long nth) {
  std::array<JobResult, kFaultRanks> ends;
  std::barrier<> together(kFaultRanks);
  std::vector<std::thread> threads;
  if (nth >= 0) faults::arm(kind, nth);
  for (int rank = 0; rank < kFaultRanks; ++rank) {
    threads.emplace_back([&, rank] {
      faults::exempt_this_thread();
      ends[rank] = run_fault_job(rank, comms[rank]);
      // A rank that gave up while its communicator works must not leave the other one waiting.
      trestleResult_t state = trestleSuccess;
      trestleCommGetAsyncError(comms[rank], &state);
      if (ends[rank].result != trestleSuccess && state == trestleSuccess) {
        EXPECT_EQ(trestleCommAbort(comms[rank]), trestleSuccess);
        together.arrive_and_wait();
      } else {
        together.arrive_and_wait();
        EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comms[rank])));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const bool failed = faults::disarm();
  bool aborted = false;  // by a rank that was refused a call twice or could not split
  for (const JobResult& end : ends) aborted |= end.result == trestleSystemError;
  for (int rank = 0; rank < kFaultRanks; ++rank) {
    expect_explained(ends[rank], rank, aborted);
  }
  return failed;
}

// Whether there were as many requests as that.
bool survives(const ranks::Settings& settings, Kind kind, long nth) {
  SCOPED_TRACE(testing::Message() << faults::name_of(kind) << " request " << nth << " over " << settings.transport);
  std::array<trestleComm_t, kFaultRanks> comms{};
  EXPECT_TRUE(ranks::succeeded(make_comms(settings, comms)));
  if (testing::Test::HasFailure()) return false;
  return run_with_fault(comms, kind, nth);
}

class ApiFaults : public testing::TestWithParam<std::tuple<const char*, Kind>> {
 protected:
  ranks::Settings settings() const {
    return ranks::patient({.ranks = kFaultRanks, .transport = std::get<0>(GetParam()), .timeout_ms = 20'000});
  }
  static Kind kind() { return std::get<1>(GetParam()); }
};

// Each job runs in a new process, so that requests that a process makes only once can fail, too.
TEST_P(ApiFaults, InAJobEndItEverywhereOrNowhere) {
  const ranks::Settings at = settings();
  const long most = kFull ? 100'000 : 2000;
  bool more = true;
  for (long nth = 0; nth < most && more && !HasFailure(); nth = next_after(nth)) {
    ranks::Job job;
    job.body = [&](ranks::Process& process) {
      faults::exempt_this_thread();
      if (survives(at, kind(), nth)) process.result = "more";
    };
    const std::vector<ranks::Outcome> outcomes = ranks::run(job);
    ranks::expect_ended_well(outcomes);
    more = outcomes[0].result == "more";
    EXPECT_TRUE(more || nth > 0) << "nothing has failed: are the functions still replaced?";
  }
}

// All jobs run in one process, so that later ones find what a fault leaves behind.
TEST_P(ApiFaults, LeaveNothingBehind) {
  const ranks::Settings at = settings();
  ranks::isolated(
      [&] {
        faults::exempt_this_thread();
        survives(at, kind(), -1);
        const std::multiset<std::string> before = trestle::open_descriptors();
        const long step = kFull ? 1 : 37;
        bool more = true;
        for (long nth = 0; more && nth < 100 * step && !testing::Test::HasFailure(); nth += step) {
          more = survives(at, kind(), nth);
          EXPECT_EQ(trestle::open_descriptors(), before) << "after " << faults::name_of(kind()) << " request " << nth;
        }
        survives(at, kind(), -1);
      },
      {}, 600);
}

// A communicator that cannot be made: the second attempt finds everything as it was.
TEST_P(ApiFaults, InTheMakingOfACommunicatorCanBeTriedAgain) {
  const ranks::Settings at = settings();
  ranks::isolated(
      [&] {
        faults::exempt_this_thread();
        survives(at, kind(), -1);
        const std::multiset<std::string> before = trestle::open_descriptors();
        bool more = true;
        for (long nth = 0; more && !testing::Test::HasFailure(); nth = next_after(nth)) {
          SCOPED_TRACE(testing::Message() << faults::name_of(kind()) << " request " << nth << " over " << at.transport);
          std::array<trestleComm_t, kFaultRanks> comms{};
          faults::arm(kind(), nth);
          const trestleResult_t first = make_comms(at, comms);
          more = faults::disarm();
          if (first != trestleSuccess) {
            expect_explained({first, "CommInitAll", trestleGetLastError(nullptr)}, 0);
            EXPECT_TRUE(ranks::succeeded(make_comms(at, comms)));
          }
          if (testing::Test::HasFailure()) return;
          run_with_fault(comms, kind(), -1);
        }
        EXPECT_EQ(trestle::open_descriptors(), before);
      },
      {}, 600);
}

// One all-gather on a stream of its own, which has no room for calls yet. Where no call has failed, the data is there.
void gather_on_new_stream(int rank, trestleComm_t comm, size_t count, bool grouped) {
  std::vector<float> out(kFaultRanks * count, -1.0f);
  const std::vector<float> in(count, static_cast<float>(rank));
  trestleStream_t stream = nullptr;
  ASSERT_TRUE(ranks::succeeded(trestleStreamCreate(&stream)));
  const trestleResult_t result = faults::counted([&] {
    if (grouped) trestleGroupStart();
    const trestleResult_t called = trestleAllGather(in.data(), out.data(), count, trestleFloat32, comm, stream);
    const trestleResult_t ended = grouped ? trestleGroupEnd() : trestleSuccess;
    return called != trestleSuccess ? called : ended;
  });
  // A rank that was refused the call leaves its communicator, so that the other one does not wait for it.
  if (result != trestleSuccess) trestleCommAbort(comm);
  const trestleResult_t waited = trestleStreamSynchronize(stream);
  if (result == trestleSuccess && waited == trestleSuccess) {
    for (size_t i = 0; i < out.size() && !testing::Test::HasFailure(); ++i)
      EXPECT_EQ(out[i], static_cast<float>(i / count)) << "element " << i;
    trestleCommFinalize(comm);
  }
  if (result == trestleSuccess) trestleCommAbort(comm);
  trestleStreamDestroy(stream);
}

TEST_P(ApiFaults, NoCallOnAStreamSucceedsWithoutItsData) {
  const ranks::Settings at = settings();
  ranks::isolated(
      [&] {
        faults::exempt_this_thread();
        for (const size_t count : {size_t{10}, size_t{20'000}}) {
          for (const bool grouped : {false, true}) {
            bool more = true;
            for (long nth = 0; more && !testing::Test::HasFailure(); ++nth) {
              SCOPED_TRACE(testing::Message() << count << " elements, request " << nth << (grouped ? ", grouped" : ""));
              std::array<trestleComm_t, kFaultRanks> comms{};
              EXPECT_TRUE(ranks::succeeded(make_comms(at, comms)));
              std::vector<std::thread> threads;
              faults::arm(kind(), nth);
              for (int rank = 0; rank < kFaultRanks; ++rank) {
                threads.emplace_back([&, rank] {
                  faults::exempt_this_thread();
                  gather_on_new_stream(rank, comms[static_cast<size_t>(rank)], count, grouped);
                });
              }
              for (std::thread& thread : threads) thread.join();
              more = faults::disarm();
            }
          }
        }
      },
      {}, 600);
}

// The failure of an idle stream is told once. A call that has no memory to tell it leaves it to the next one.
TEST_P(ApiFaults, NoStreamLosesItsFailure) {
  const ranks::Settings at = settings();
  const auto query = [](trestleStream_t stream) { return trestleStreamQuery(stream); };
  const auto wait = [](trestleStream_t stream) { return trestleStreamSynchronize(stream); };
  ranks::isolated([&] {
    faults::exempt_this_thread();
    for (trestleResult_t (*const ask)(trestleStream_t) : {+query, +wait}) {
      bool more = true;
      for (long nth = 0; more && !testing::Test::HasFailure(); ++nth) {
        SCOPED_TRACE(testing::Message() << "request " << nth);
        std::array<trestleComm_t, kFaultRanks> comms{};
        ASSERT_TRUE(ranks::succeeded(make_comms(at, comms)));
        trestleStream_t stream = nullptr;
        ASSERT_TRUE(ranks::succeeded(trestleStreamCreate(&stream)));
        ASSERT_TRUE(ranks::succeeded(trestleBarrier(comms[0], stream)));
        ASSERT_EQ(trestleCommAbort(comms[0]), trestleSuccess);  // its stream holds the failure now
        faults::arm(kind(), nth);
        const trestleResult_t first = faults::counted([&] { return ask(stream); });
        more = faults::disarm();
        EXPECT_NE(first, trestleSuccess);
        if (first == trestleSystemError) {
          EXPECT_EQ(ask(stream), trestleAborted);
        }
        EXPECT_EQ(ask(stream), trestleSuccess);
        trestleStreamDestroy(stream);
        trestleCommAbort(comms[1]);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, ApiFaults,
                         testing::Combine(testing::Values("loopback", "shm", "tcp"), testing::ValuesIn(faults::kKinds)),
                         [](const auto& info) {
                           std::string kind = faults::name_of(std::get<1>(info.param));
                           std::erase(kind, ' ');
                           return std::get<0>(info.param) + ("_" + kind);
                         });

}  // namespace
}  // namespace api
