// One request of the library for shared memory fails during compressed all-reduces, or a rank has no memory to select
// elements. Either the ranks' step fails on all of them, with the same code, and the next one goes on from their
// residuals; or the communicator ends on all ranks. Nothing hangs.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <string>
#include <thread>
#include <vector>

#include "conformance/compress/compress_oracle.h"
#include "conformance/faults/fault_points.h"
#include "support/allocations.h"

namespace compressed {
namespace {

using ranks::succeeded;

constexpr int kRanks = 2;
constexpr size_t kCount = 5000;  // long enough for the sample that finds thresholds
constexpr uint64_t kSteps = 9;   // with two reviews

bool goes_on(trestleComm_t comm) {
  trestleResult_t failure = trestleSuccess;
  return trestleCommGetAsyncError(comm, &failure) == trestleSuccess && failure == trestleSuccess;
}

// What two ranks, threads of one process, tell each other.
struct Meeting {
  std::barrier<> together{kRanks};
  std::array<trestleResult_t, kRanks> codes{};
  std::array<bool, kRanks> go_on{};
  std::array<trestleTopKStats_t, kRanks> stats{};
};

class Rank {
 public:
  Rank(Meeting& meeting, int rank, trestleComm_t comm) : meeting_(meeting), rank_(rank), comm_(comm) {}

  // A collective call but a step. It is not made again before the other rank's has returned: so no rank waits for a
  // message of one that had no memory for it. Where it has failed on all ranks and the communicator goes on, it is.
  template <class Call>
  void together(const char* name, Call&& call) {
    for (int attempt = 0; attempt < 2; ++attempt) {
      const trestleResult_t result = faults::counted(call);
      const std::string sentence = result == trestleSuccess ? "" : trestleGetLastError(comm_);
      EXPECT_TRUE(result == trestleSuccess || result == trestleSystemError)
          << name << ": " << result << ", " << sentence;
      const std::string why = trestleGetLastError(nullptr);
      meeting_.codes[rank_] = result;
      meeting_.together.arrive_and_wait();
      const bool alike = (meeting_.codes[0] == trestleSuccess) == (meeting_.codes[1] == trestleSuccess);
      // Refused on one rank alone, they would no longer be alike: its communicator ends.
      if (!alike && result != trestleSuccess) ranks::wait_until([this] { return !goes_on(comm_); });
      meeting_.go_on[rank_] = goes_on(comm_);
      meeting_.together.arrive_and_wait();
      const bool again = alike && result != trestleSuccess && meeting_.go_on[0] && meeting_.go_on[1];
      EXPECT_TRUE(!again || ranks::contains(why, name) || ranks::contains(why, "memory")) << why;
      if (!again) break;
    }
  }

  void create(const Case& one, const trestleTopKConfig_t& config) {
    together("TopKCreate", [&] { return trestleTopKCreate(&topk_, comm_, one.count, &config); });
  }
  void set_ratio(double ratio) {
    if (both_have_one()) together("TopKSetRatio", [&] { return trestleTopKSetRatio(topk_, ratio); });
  }
  void fit() {
    if (both_have_one()) together("TopKFit", [&] { return trestleTopKFit(topk_); });
  }
  // Whether both ranks have an exchange. Else the communicator has ended.
  bool both_have_one() {
    meeting_.go_on[rank_] = topk_ != nullptr;
    meeting_.together.arrive_and_wait();
    const bool both = meeting_.go_on[0] && meeting_.go_on[1];
    meeting_.together.arrive_and_wait();
    return both;
  }

  // The code of a step, or of one that was not made because there is no communicator any more. All ranks call it as
  // often.
  trestleResult_t step(const Floats& gradient, Floats& residual, Floats& result) {
    trestleResult_t code = trestleSystemError;
    if (topk_ != nullptr) {
      code =
          faults::counted([&] { return trestleAllReduceTopK(gradient.data(), residual.data(), result.data(), topk_); });
      const std::string sentence = code == trestleSuccess ? "" : trestleGetLastError(comm_);
      EXPECT_TRUE(code == trestleSuccess || code == trestleSystemError) << code << ": " << sentence;
      EXPECT_TRUE(code == trestleSuccess || ranks::contains(sentence, "memory")) << sentence;
      meeting_.stats[rank_] = stats_of(topk_);
    }
    meeting_.codes[rank_] = code;
    meeting_.go_on[rank_] = topk_ != nullptr && goes_on(comm_);
    meeting_.together.arrive_and_wait();
    return code;
  }

  // While the communicator goes on, all ranks are at the same place.
  void expect_in_step() {
    const bool all_go_on = meeting_.go_on[0] && meeting_.go_on[1];
    if (all_go_on) {
      EXPECT_EQ(meeting_.codes[0], meeting_.codes[1]);
      EXPECT_EQ(meeting_.stats[0].steps, meeting_.stats[1].steps);
      EXPECT_EQ(meeting_.stats[0].elements, meeting_.stats[1].elements);
      EXPECT_EQ(meeting_.stats[0].collective, meeting_.stats[1].collective);
      EXPECT_EQ(meeting_.stats[0].ratio, meeting_.stats[1].ratio);
      EXPECT_EQ(meeting_.stats[0].changes, meeting_.stats[1].changes);
      EXPECT_EQ(meeting_.stats[0].measures, meeting_.stats[1].measures);
    }
    meeting_.together.arrive_and_wait();
  }

  void end() {
    if (topk_ != nullptr) {
      EXPECT_TRUE(succeeded(trestleTopKDestroy(topk_)));
    }
    meeting_.together.arrive_and_wait();
    EXPECT_TRUE(succeeded(trestleCommDestroy(comm_)));
  }
  trestleTopK_t topk() const { return topk_; }

 private:
  Meeting& meeting_;
  const int rank_;
  const trestleComm_t comm_;
  trestleTopK_t topk_ = nullptr;
};

// The ranks of a communicator that goes on have what the oracle has.
void run_case(Meeting& meeting, int rank, trestleComm_t comm, const Case& one) {
  faults::exempt_this_thread();
  Rank self(meeting, rank, comm);
  const trestleTopKConfig_t config = one.config();
  self.create(one, config);
  Oracle oracle(one);
  Floats residual(one.count), result(one.count);
  for (uint64_t step = 1; step <= kSteps; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step << ", rank " << rank);
    std::vector<Floats> gradients;
    for (int r = 0; r < kRanks; ++r) gradients.push_back(gradient_of(r, step, one.count));
    const trestleResult_t code = self.step(gradients[static_cast<size_t>(rank)], residual, result);
    const bool both = meeting.codes[0] == meeting.codes[1];
    const bool goes_on = meeting.go_on[0] && meeting.go_on[1];
    self.expect_in_step();
    if (!both || self.topk() == nullptr) continue;  // the communicator has ended
    if (code == trestleSuccess) {
      oracle.step(gradients);
      EXPECT_EQ(difference(result, oracle.result()), "");
    } else {
      oracle.fail(gradients);
    }
    if (goes_on) {
      EXPECT_EQ(difference(residual, oracle.residual(rank)), "");
    }
  }
  self.end();
}

// Returns whether anything failed.
template <class Body>
bool with_fault(const ranks::Settings& settings, long nth, Body&& body) {
  SCOPED_TRACE(testing::Message() << "request " << nth);
  const trestleConfig_t config = ranks::config_of(settings);
  std::array<trestleComm_t, kRanks> comms{};
  EXPECT_TRUE(succeeded(trestleCommInitAllConfig(comms.data(), kRanks, &config)));
  if (testing::Test::HasFailure()) return false;
  Meeting meeting;
  std::vector<std::thread> threads;
  faults::arm(faults::Kind::kSharedMemory, nth);
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] { body(meeting, rank, comms[static_cast<size_t>(rank)]); });
  for (std::thread& thread : threads) thread.join();
  return faults::disarm();
}

template <class Body>
void with_every_fault(Body&& body) {
  const ranks::Settings settings = ranks::patient({.ranks = kRanks, .transport = "shm", .timeout_ms = 20'000});
  ranks::isolated(
      [&] {
        faults::exempt_this_thread();
        long nth = 0;
        while (with_fault(settings, nth, body) && !testing::Test::HasFailure()) ++nth;
        EXPECT_GT(nth, 0) << "nothing has failed: are the functions still replaced?";
      },
      {}, 600);
}

TEST(CompressedFaults, KeepTheRanksInStep) {
  for (const int method : {trestleTopKStar, trestleTopKVar, trestleTopKExact, trestleTopKMultiSampling}) {
    SCOPED_TRACE(testing::Message() << "method " << method);
    const Case one{kRanks, kCount, 0.1, method};
    with_every_fault([&](Meeting& meeting, int rank, trestleComm_t comm) { run_case(meeting, rank, comm, one); });
  }
}

void run_settings(Meeting& meeting, int rank, trestleComm_t comm) {
  faults::exempt_this_thread();
  Rank self(meeting, rank, comm);
  const Case one{kRanks, kCount, 0.1, trestleTopKStar};
  self.create(one, one.config());
  self.set_ratio(0.2);
  Floats residual(kCount), result(kCount);
  (void)self.step(gradient_of(rank, 1, kCount), residual, result);
  self.expect_in_step();
  self.end();
}

void run_fit(Meeting& meeting, int rank, trestleComm_t comm) {
  faults::exempt_this_thread();
  Rank self(meeting, rank, comm);
  const Case one{kRanks, kCount, 0.1, trestleTopKStar, trestleTopKRing};
  self.create(one, one.config());
  self.fit();
  self.end();
}

// The first message of a call, too: the other rank waits for it.
TEST(CompressedFaults, EndEachCollectiveCallOnAllRanks) {
  with_every_fault(run_settings);
  with_every_fault(run_fit);
}

// The communicator goes on, and the next step sends what this one did not.
TEST(CompressedFaults, ARankWithoutMemoryToSelectTellsTheOthers) {
  constexpr size_t kMany = 1 << 20;
  constexpr unsigned long kLarge = 64 << 10;  // bytes; all small allocations are given
  const ranks::Settings settings = ranks::patient({.ranks = kRanks, .transport = "shm", .timeout_ms = 20'000});
  ranks::on_threads(settings, [](int rank, trestleComm_t comm) {
    const Case one{kRanks, kMany, 0.1, trestleTopKExact};
    const trestleTopKConfig_t config = one.config();
    trestleTopK_t topk = nullptr;
    ASSERT_TRUE(succeeded(trestleTopKCreate(&topk, comm, kMany, &config)));
    Oracle oracle(one);
    Floats residual(kMany), result(kMany);
    for (uint64_t step = 1; step <= 3; ++step) {
      std::vector<Floats> gradients;
      for (int r = 0; r < kRanks; ++r) gradients.push_back(gradient_of(r, step, kMany));
      const bool lacks = step == 2;
      if (lacks && rank == 1) allocations::refusal() = {0, true, false, kLarge};
      const Floats& own = gradients[static_cast<size_t>(rank)];
      const trestleResult_t code = trestleAllReduceTopK(own.data(), residual.data(), result.data(), topk);
      allocations::refusal() = {};
      if (lacks) {
        EXPECT_TRUE(ranks::refused(code, trestleSystemError, {"rank 1 has no memory to select elements"}, comm));
        oracle.fail(gradients);
      } else {
        ASSERT_TRUE(succeeded(code, comm));
        oracle.step(gradients);
        EXPECT_EQ(difference(result, oracle.result()), "");
      }
      EXPECT_EQ(difference(residual, oracle.residual(rank)), "");
    }
    EXPECT_TRUE(succeeded(trestleTopKDestroy(topk)));
  });
}

}  // namespace
}  // namespace compressed
