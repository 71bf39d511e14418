// The blocks that alltoallv_perf sends to each rank: by distance, mixed, and from a file.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

#include "perf/driver/traffic.h"

namespace trestle::perf {
namespace {

std::string file_with(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + name;
  std::ofstream(path) << text;
  return path;
}

TEST(PerfTraffic, GrowsWithTheDistance) {
  const Traffic traffic = read_traffic("", "", "");
  EXPECT_EQ(traffic.problem, "");
  // 4 ranks, 96 elements of 1 byte each on average, so 384 in total: 1/6, 2/6 and 3/6 of these.
  EXPECT_EQ(block_elements(traffic, 1, 1, 4, 96, 1), 0u);
  EXPECT_EQ(block_elements(traffic, 1, 2, 4, 96, 1), 64u);
  EXPECT_EQ(block_elements(traffic, 1, 3, 4, 96, 1), 128u);
  EXPECT_EQ(block_elements(traffic, 1, 0, 4, 96, 1), 192u);
  EXPECT_EQ(most_elements(traffic, 4, 96, 1), 384u);
  EXPECT_EQ(block_elements(traffic, 0, 0, 1, 96, 1), 96u);
}

TEST(PerfTraffic, SpreadMixes) {
  const Traffic even = read_traffic("0", "", "");
  for (int to = 0; to < 4; ++to) EXPECT_EQ(block_elements(even, 0, to, 4, 96, 1), 96u);
  const Traffic half = read_traffic("0.5", "", "");
  EXPECT_EQ(block_elements(half, 0, 0, 4, 96, 1), 48u);
  EXPECT_EQ(block_elements(half, 0, 3, 4, 96, 1), 144u);
}

TEST(PerfTraffic, ReadsAMatrix) {
  const Traffic traffic = read_traffic("", file_with("traffic_good", "0 16\n 8\t4\n"), "2");
  EXPECT_EQ(traffic.problem, "");
  EXPECT_EQ(traffic.ranks, 2);
  EXPECT_EQ(block_elements(traffic, 0, 1, 2, 0, 4), 8u);
  EXPECT_EQ(block_elements(traffic, 1, 1, 2, 0, 4), 2u);
  EXPECT_EQ(most_elements(traffic, 2, 0, 1), 40u);  // received by rank 1
  const std::vector<std::string> lines = traffic_summary(traffic, 2, 0, 1);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "traffic of rank 0: sends 32 bytes, receives 16");
}

TEST(PerfTraffic, RefusesWithASentence) {
  EXPECT_NE(read_traffic("1.5", "", "").problem.find("0 to 1"), std::string::npos);
  EXPECT_NE(read_traffic("much", "", "").problem.find("0 to 1"), std::string::npos);
  EXPECT_NE(read_traffic("", "", "0").problem.find("above 0"), std::string::npos);
  EXPECT_NE(read_traffic("", "/nonexistent/m", "").problem.find("cannot be read"), std::string::npos);
  EXPECT_NE(read_traffic("", file_with("traffic_odd", "1 2 3"), "").problem.find("3 elements"), std::string::npos);
  EXPECT_NE(read_traffic("", file_with("traffic_empty", ""), "").problem.find("0 elements"), std::string::npos);
  EXPECT_NE(read_traffic("", file_with("traffic_word", "1 -2 3 4"), "").problem.find("'-2'"), std::string::npos);
}

}  // namespace
}  // namespace trestle::perf
