// A process exits while a communicator is being made. The others hear that it has left, not that it has died.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "local/api/ending.h"
#include "support/ranks.h"

namespace api {
namespace exit_making_test {
namespace {

using ranks::contains;

constexpr int kRanks = 4;
constexpr int kVictim = 1;

std::atomic<bool> at_message{false};
std::atomic<bool> exit_has_begun{false};

void stay_until_the_exit() {
  at_message = true;
  ranks::wait_until([] { return exit_has_begun.load(); });
}

// One thread is about to send its n-th message while another one exits.
[[noreturn]] void exit_at_message(int n, ranks::Process& process, const ranks::Settings& settings) {
  ending::call_at_message(n, stay_until_the_exit);
  std::thread([&] {
    trestleComm_t comm = nullptr;
    (void)ranks::join(process, settings, &comm);
    for (;;) pause();
  }).detach();
  ranks::wait_until([] { return at_message.load(); });
  (void)std::atexit([] { exit_has_begun = true; });
  std::cout.flush();
  std::exit(0);
}

std::string survive(ranks::Process& process, const ranks::Settings& settings) {
  trestleComm_t comm = nullptr;
  trestleResult_t result = ranks::join(process, settings, &comm);
  float x = 1;
  while (result == trestleSuccess) {
    result = trestleAllReduce(&x, &x, 1, trestleFloat32, trestleSum, comm, nullptr);
    if (result == trestleSuccess) result = trestleCommSynchronize(comm);
  }
  EXPECT_EQ(result, trestleRemoteError);
  const std::string sentence = trestleGetLastError(comm);
  ranks::meet(process.board, kRanks - 1);  // no rank may hear of an end before it has failed itself
  if (comm != nullptr) trestleCommAbort(comm);
  return sentence;
}

class ApiExitMaking : public testing::TestWithParam<int> {};

TEST_P(ApiExitMaking, IsNoDeath) {
  const ranks::Settings settings{.ranks = kRanks, .transport = "tcp", .timeout_ms = 20'000};
  ranks::Job job;
  job.ranks = kRanks;
  job.body = [&](ranks::Process& process) {
    if (process.rank == kVictim) exit_at_message(GetParam(), process, settings);
    process.result = survive(process, settings);
  };
  const auto outcomes = ranks::run(job);
  ranks::expect_ended_well(outcomes);
  for (int r = 0; r < kRanks; ++r) {
    const std::string& sentence = outcomes[static_cast<size_t>(r)].result;
    if (r == kVictim) continue;
    std::cout << "rank " << r << ": " << sentence << "\n";
    EXPECT_TRUE(sentence.starts_with("rank 1 ")) << sentence;
    EXPECT_FALSE(contains(sentence, "died")) << sentence;
    EXPECT_TRUE(contains(sentence, "exited")) << sentence;
  }
}

// With its third message it has reached the rendezvous. Before that the others do not know of it.
INSTANTIATE_TEST_SUITE_P(Messages, ApiExitMaking, testing::Values(3, 4, 5, 6, 8, 10, 12, 14, 16, 18));

}  // namespace
}  // namespace exit_making_test
}  // namespace api
