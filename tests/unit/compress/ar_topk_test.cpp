// Whose largest elements are sent. tests/conformance/compress has the steps of all workers.
#include "compress/ar_topk.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace trestle {
namespace {

TEST(ArTopk, TakesRootsInTurnUnderStar) {
  EXPECT_EQ(star_root(1, 3), 1u);
  EXPECT_EQ(star_root(2, 3), 2u);
  EXPECT_EQ(star_root(3, 3), 0u);
  EXPECT_EQ(star_root(7, 1), 0u);
}

TEST(ArTopk, TakesTheLargestNormUnderVar) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(var_root(std::vector<double>{1, 3, 3, 2}), 1u) << "ties go to the lower rank";
  EXPECT_EQ(var_root(std::vector<double>{0, 0}), 0u);
  EXPECT_EQ(var_root(std::vector<double>{1, nan, nan, 5}), 1u);
  EXPECT_EQ(var_root(std::vector<double>{nan, 5}), 0u);
}

}  // namespace
}  // namespace trestle
