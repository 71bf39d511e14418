// The machine's NUMA nodes, read from invented files, and lists of processors.
#include "base/cpu/numa.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/host.h"
#include "support/node_files.h"

namespace trestle {
namespace {

using Processors = std::vector<int>;
using Nodes = std::vector<NumaNode>;

constexpr uint64_t kAll = ~uint64_t{0};

Result<Nodes> nodes(const NodeFiles& files, uint64_t mask = kAll) {
  return numa_nodes(files.path(), {mask});
}

TEST(ProcessorLists, AreReadAndWritten) {
  for (const auto& [text, processors] : {std::pair<std::string, Processors>("0-3,8", {0, 1, 2, 3, 8}),
                                         {"5", {5}},
                                         {"", {}},
                                         {"1,3,5-6", {1, 3, 5, 6}},
                                         {"65535", {65535}}}) {
    const auto read = parse_processors(text);
    ASSERT_TRUE(read.ok()) << text << ": " << read.error().message;
    EXPECT_EQ(read.value(), processors) << text;
    EXPECT_EQ(processors_text(processors), text);
  }
  const auto twice = parse_processors("2,0-2");
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(twice.value(), (Processors{0, 1, 2}));
}

TEST(ProcessorLists, ThatAreNonsenseAreRefused) {
  for (const char* text : {"-", "1-", "-1", "3-1", "0,,1", "0-1,", "0 1", "x", "0-4000000000", "0-1-2", "65536"})
    EXPECT_FALSE(parse_processors(text).ok()) << text;
}

TEST(NumaNodes, OfOneAndOfTwo) {
  const auto one = nodes(NodeFiles({"0-3"}));
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_EQ(one.value(), (Nodes{{0, {0, 1, 2, 3}}}));
  const auto two = nodes(NodeFiles({"0-1,4-5", "2-3,6-7"}));
  ASSERT_TRUE(two.ok()) << two.error().message;
  EXPECT_EQ(two.value(), (Nodes{{0, {0, 1, 4, 5}}, {1, {2, 3, 6, 7}}}));
}

TEST(NumaNodes, HaveOnlyTheProcessorsOfTheMask) {
  const NodeFiles files({"0-3", "4-7"});
  const auto second = nodes(files, 0xf0);
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second.value(), (Nodes{{1, {4, 5, 6, 7}}}));
  const auto some = nodes(files, 0b1001'0010);
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some.value(), (Nodes{{0, {1}}, {1, {4, 7}}}));
  const auto none = numa_nodes(files.path(), {});
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none.value().empty());
}

TEST(NumaNodes, MayHaveMemoryOnlyAndMayBeOffline) {
  const auto memory = nodes(NodeFiles({"0-1", "", "2"}));
  ASSERT_TRUE(memory.ok()) << memory.error().message;
  EXPECT_EQ(memory.value(), (Nodes{{0, {0, 1}}, {2, {2}}}));
  NodeFiles files({"0-1", "2-3", "4"});
  files.write("online", "0,2\n");
  const auto online = nodes(files);
  ASSERT_TRUE(online.ok()) << online.error().message;
  EXPECT_EQ(online.value(), (Nodes{{0, {0, 1}}, {2, {4}}}));
}

TEST(NumaNodes, ThatAreMissingOrNonsenseAreSaid) {
  const NodeFiles files({"0-1", "2-3"});
  const auto missing = numa_nodes(files.path() + "/nowhere", {kAll});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.error().message.find("nowhere/online"), std::string::npos) << missing.error().message;
  files.write("node1/cpulist", "2-\n");
  const auto nonsense = nodes(files);
  ASSERT_FALSE(nonsense.ok());
  EXPECT_NE(nonsense.error().message.find("node1/cpulist: '2-'"), std::string::npos) << nonsense.error().message;
  files.write("online", "0-2\n");
  EXPECT_FALSE(nodes(files).ok());
}

TEST(NumaNodes, OfThisMachineHaveTheUsableProcessors) {
  const std::vector<uint64_t> mask = usable_cpu_mask();
  const auto all = numa_nodes("/sys/devices/system/node", mask);
  if (!all.ok()) GTEST_SKIP() << all.error().message;
  int processors = 0;
  for (const NumaNode& node : all.value()) processors += static_cast<int>(node.processors.size());
  for (const uint64_t word : mask) processors -= std::popcount(word);
  EXPECT_LE(processors, 0);
}

}  // namespace
}  // namespace trestle
