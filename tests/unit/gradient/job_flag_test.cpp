// Whoever ends the executor learns whether a job has begun, and not only whether one is about to look.
#include "gradient/executor/job_flag.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace trestle {
namespace {

TEST(JobFlag, SaysThatAJobIsAtWork) {
  JobFlag flag;
  EXPECT_FALSE(flag.is_at_work());
  for (int job = 0; job < 2; ++job) {
    flag.enter();
    flag.begin();
    EXPECT_TRUE(flag.is_at_work());
    flag.leave();
    EXPECT_FALSE(flag.is_at_work());
  }
}

// The job has entered, and finds the failure, or does not.
TEST(JobFlag, WaitsUntilTheJobHasLookedForAFailure) {
  for (int round = 0; round < 20; ++round) {
    const bool sees_failure = round % 2 == 0;
    JobFlag flag;
    flag.enter();
    std::promise<void> asks;
    std::future<bool> at_work = std::async(std::launch::async, [&] {
      asks.set_value();
      return flag.is_at_work();
    });
    asks.get_future().wait();
    for (int i = 0; i < round; ++i) std::this_thread::yield();
    if (sees_failure) {
      flag.leave();
    } else {
      flag.begin();
    }
    EXPECT_EQ(at_work.get(), !sees_failure);
  }
}

}  // namespace
}  // namespace trestle
