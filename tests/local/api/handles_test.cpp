// Handles: any number of them may exist or have existed, and a destroyed one is not soon reused.
#include <gtest/gtest.h>

#include <vector>

#include "support/ranks.h"

namespace api {
namespace handles_test {
namespace {

using ranks::refused;
using ranks::succeeded;

std::vector<trestleEvent_t> events(size_t count) {
  std::vector<trestleEvent_t> all(count);
  for (trestleEvent_t& event : all) EXPECT_EQ(trestleEventCreate(&event), trestleSuccess);
  return all;
}

// An implementation that moves all destroyed handles at each destruction takes minutes, and the watchdog ends it.
TEST(ApiHandles, AreDestroyedByTheHundredThousand) {
  ranks::isolated([] {
    for (trestleEvent_t event : events(800'000)) EXPECT_EQ(trestleEventDestroy(event), trestleSuccess);
  });
}

TEST(ApiHandles, TheOneThatIsDeadLongestIsMadeAgain) {
  ranks::isolated([] {
    const auto first = events(3);
    for (trestleEvent_t event : {first[1], first[0]}) EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
    EXPECT_TRUE(refused(trestleEventQuery(first[0]), trestleInvalidUsage, {"destroyed"}));
    EXPECT_EQ(events(1), std::vector{first[1]});
    EXPECT_TRUE(refused(trestleEventQuery(first[0]), trestleInvalidUsage, {"destroyed"}));
    EXPECT_TRUE(succeeded(trestleEventDestroy(first[2])));
    EXPECT_EQ(events(2), (std::vector{first[0], first[2]}));
    for (trestleEvent_t event : first) EXPECT_TRUE(succeeded(trestleEventDestroy(event)));
  });
}

}  // namespace
}  // namespace handles_test
}  // namespace api
