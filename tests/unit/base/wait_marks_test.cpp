// When a wait is said: each mark once, and of marks that passed together the last.
#include "base/wait_marks.h"

#include <gtest/gtest.h>

namespace trestle {
namespace {

TEST(WaitMarks, PassOnceEach) {
  WaitMarks marks(5 * kSecond);
  EXPECT_EQ(marks.next_ns(), 15 * kSecond);
  EXPECT_EQ(marks.passed(15 * kSecond - 1), 0);
  EXPECT_EQ(marks.passed(15 * kSecond), 10);
  EXPECT_EQ(marks.passed(20 * kSecond), 0);
  EXPECT_EQ(marks.passed(66 * kSecond), 60);
  EXPECT_EQ(marks.passed(1000 * kSecond), 0);
  EXPECT_GT(marks.next_ns(), 1000 * kSecond);
}

}  // namespace
}  // namespace trestle
