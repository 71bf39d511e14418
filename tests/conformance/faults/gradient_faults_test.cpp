// One request of the library for memory of the heap fails while two ranks plan and run a training step. A collective
// call of the scheduler then fails on both ranks or on none, and no rank waits for the other one until a deadline.
#include <gtest/gtest.h>
#include <trestle/gradient.h>

#include <array>
#include <barrier>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "conformance/faults/fault_points.h"
#include "support/ranks.h"

namespace api {
namespace {

constexpr int kRanks = 2;
constexpr size_t kTensors = 3;
constexpr size_t kCount = 1000;

const bool kFull = std::getenv("TRESTLE_TEST_FULL") != nullptr;

// What both ranks' threads have in common.
struct Shared {
  std::barrier<> together{kRanks};
  std::array<int, kRanks> said{};
};

class Rank {
 public:
  Rank(Shared& shared, int rank, trestleComm_t comm, const char* policy)
      : shared_(shared), rank_(rank), comm_(comm), policy_(policy) {}

  void run() {
    trestleGradConfig_t config = TRESTLE_GRAD_CONFIG_INITIALIZER;
    config.allow = trestleGradAllowCompression;
    if (!alone([&] { return trestleGradCreate(&grad_, &comm_, 1, &config); })) return;
    for (size_t i = 0; i < kTensors; ++i) {
      int number = 0;
      const auto add = [&] {
        return trestleGradRegister(grad_, "w", kCount, trestleFloat32, gradients_[i].data(), nullptr, &number);
      };
      if (!alone(add)) return;
    }
    const bool works = alone([this] { return trestleGradProfileBegin(grad_); }) && step() &&
                       together("GradProfileEnd", [this] { return trestleGradProfileEnd(grad_); }) &&
                       together("GradPlan", [this] { return trestleGradPlan(grad_, policy_); }) && step() && step() &&
                       together("GradDrain", [this] { return trestleGradDrain(grad_, nullptr); });
    (void)works;
  }

  void end() {
    if (grad_ != nullptr) {
      const trestleResult_t result = faults::counted([this] { return trestleGradDestroy(grad_); });
      EXPECT_TRUE(result == trestleSuccess || result == trestleSystemError) << trestleGetLastError(nullptr);
    }
    shared_.together.arrive_and_wait();
    EXPECT_TRUE(ranks::succeeded(trestleCommDestroy(comm_)));
  }

 private:
  using Call = std::function<trestleResult_t()>;

  bool failed() const {
    trestleResult_t state = trestleSuccess;
    return trestleCommGetAsyncError(comm_, &state) != trestleSuccess || state != trestleSuccess;
  }
  // No rank has waited in vain.
  void explain(const char* name, trestleResult_t result) const {
    EXPECT_TRUE(result == trestleSuccess || result == trestleSystemError)
        << "rank " << rank_ << ", " << name << ": " << trestleGetErrorString(result) << ", "
        << trestleGetLastError(nullptr);
  }
  // How many ranks say yes.
  int count(bool yes) {
    shared_.said[static_cast<size_t>(rank_)] = yes;
    shared_.together.arrive_and_wait();
    const int sum = shared_.said[0] + shared_.said[1];
    shared_.together.arrive_and_wait();
    return sum;
  }
  // Whether the call was a success on both ranks. Where it has failed on one alone, its communicator ends.
  bool agree(const char* name, trestleResult_t result) {
    explain(name, result);
    const bool worked = result == trestleSuccess;
    const int successes = count(worked);
    if (successes == 1 && !worked) ranks::wait_until([this] { return failed(); });
    return successes == kRanks;
  }
  // A call of this rank alone: once more if it was refused, unless the communicator has failed.
  bool alone(const Call& call) {
    trestleResult_t result = faults::counted(call);
    if (result != trestleSuccess && !failed()) result = faults::counted(call);
    return agree("a call of one rank", result);
  }
  // A collective call. Where it was refused and the communicator still works, it can be made again.
  bool together(const char* name, const Call& call) {
    if (agree(name, faults::counted(call))) return true;
    if (count(!failed()) != kRanks) return false;
    return agree(name, faults::counted(call));
  }
  bool step() {
    for (size_t i = kTensors; i-- > 0;) {
      if (!alone([&] { return trestleGradReady(grad_, static_cast<int>(i), nullptr); })) return false;
    }
    return alone([this] { return trestleGradStepEnd(grad_); }) &&
           agree("GradSynchronize", faults::counted([this] { return trestleGradSynchronize(grad_); }));
  }

  Shared& shared_;
  const int rank_;
  trestleComm_t comm_;
  const char* const policy_;
  trestleGrad_t grad_ = nullptr;
  std::array<std::vector<float>, kTensors> gradients_{std::vector<float>(kCount), std::vector<float>(kCount),
                                                      std::vector<float>(kCount)};
};

// Whether there were as many requests as that.
bool survives(const ranks::Settings& settings, const char* policy, long nth) {
  SCOPED_TRACE(testing::Message() << policy << ", request " << nth << " over " << settings.transport);
  std::array<trestleComm_t, kRanks> comms{};
  const trestleConfig_t config = ranks::config_of(settings);
  EXPECT_TRUE(ranks::succeeded(trestleCommInitAllConfig(comms.data(), kRanks, &config)));
  if (testing::Test::HasFailure()) return false;
  Shared shared;
  std::vector<std::thread> threads;
  faults::arm(faults::Kind::kHeap, nth);
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      faults::exempt_this_thread();
      Rank one(shared, rank, comms[static_cast<size_t>(rank)], policy);
      one.run();
      one.end();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return faults::disarm();
}

struct Case {
  const char* transport;
  const char* policy;
};

class GradientFaults : public testing::TestWithParam<Case> {};

TEST_P(GradientFaults, FailACallOnAllRanksOrOnNone) {
  const ranks::Settings settings =
      ranks::patient({.ranks = kRanks, .transport = GetParam().transport, .timeout_ms = 20'000});
  bool more = true;
  for (long nth = 0; more && !HasFailure(); nth += kFull ? 1 : 1 + nth / 8) {
    ranks::Job job;
    job.body = [&](ranks::Process& process) {
      faults::exempt_this_thread();
      if (survives(settings, GetParam().policy, nth)) process.result = "more";
    };
    const std::vector<ranks::Outcome> outcomes = ranks::run(job);
    ranks::expect_ended_well(outcomes);
    more = outcomes[0].result == "more";
    EXPECT_TRUE(more || nth > 0) << "nothing has failed: are the functions still replaced?";
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, GradientFaults,
                         testing::Values(Case{"shm", "wfbp"}, Case{"tcp", "wfbp"}, Case{"shm", "topk:0.25"}),
                         [](const auto& info) {
                           const std::string policy = info.param.policy;
                           return std::string(info.param.transport) + "_" + policy.substr(0, policy.find(':'));
                         });

}  // namespace
}  // namespace api
