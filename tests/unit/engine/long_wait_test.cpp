// What stands still is in a wait; what moves is in none, however long it takes.
#include "base/wait_marks.h"

#include <gtest/gtest.h>

namespace trestle {
namespace long_wait_test {
namespace {

TEST(LongWait, WhatMovesBeginsAnew) {
  LongWait wait;
  for (int64_t now_s = 1; now_s < 100; now_s += 9)
    EXPECT_EQ(wait.look("at " + std::to_string(now_s), now_s * kSecond), 0);
  EXPECT_EQ(wait.look("at last", 100 * kSecond), 0);
  EXPECT_FALSE(wait.is_due(101 * kSecond - 1));
  EXPECT_TRUE(wait.is_due(101 * kSecond));
  EXPECT_EQ(wait.look("at last", 110 * kSecond), 10);
  EXPECT_EQ(wait.look("at last", 111 * kSecond), 0);
  EXPECT_EQ(wait.at(), "at last");
}

TEST(LongWait, NothingWaits) {
  LongWait wait;
  EXPECT_EQ(wait.look("", 0), 0);
  EXPECT_EQ(wait.look("", 100 * kSecond), 0);
}

}  // namespace
}  // namespace long_wait_test
}  // namespace trestle
