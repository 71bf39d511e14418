// Numbers of captured calls: apart from all others, and told in words.
#include "base/operation_number.h"

#include <gtest/gtest.h>

#include <set>

namespace trestle {
namespace {

TEST(OperationNumbers, OfCapturedCallsMeetNoOthers) {
  std::set<uint64_t> numbers;
  for (const uint64_t capture : {uint64_t{0}, uint64_t{1}, kMostCaptures - 1}) {
    for (const uint64_t replay : {uint64_t{0}, uint64_t{1}, uint64_t{0xffffffff}}) {
      for (const uint64_t kind : {uint64_t{0}, kPointToPoint}) {
        const uint64_t number = replay_number(captured_number(capture) | kind, replay);
        EXPECT_TRUE(numbers.insert(number).second);
        EXPECT_EQ(capture_of(number), captured_number(capture) | kind);
        EXPECT_NE(number & kCaptured, 0u);
        EXPECT_EQ(number & kPointToPoint, kind);
      }
    }
  }
}

TEST(OperationNumbers, BeginAnewAfterTheLastReplay) {
  const uint64_t captured = captured_number(5);
  EXPECT_EQ(replay_number(captured, uint64_t{1} << 32), captured);
}

TEST(OperationNumbers, AreToldInWords) {
  EXPECT_EQ(numbered("operation", 7), "operation 7");
  EXPECT_EQ(numbered("message", 7 | kPointToPoint), "message 7");
  EXPECT_EQ(numbered("operation", replay_number(captured_number(3), 5)), "replay 5 of captured operation 3");
  EXPECT_EQ(numbered("message", replay_number(captured_number(3) | kPointToPoint, 5)),
            "replay 5 of captured message 3");
}

}  // namespace
}  // namespace trestle
