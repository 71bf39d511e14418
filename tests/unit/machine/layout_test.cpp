// Which processors form cores, packages and nodes: of invented machines, and of this one by both sources.
#include "machine/layout.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "machine/cores.h"
#include "support/machine_files.h"

namespace trestle {
namespace {

using Processors = std::vector<LayoutProcessor>;

MachineLayout layout_of(const MachineFiles& machine) {
  const auto layout = read_layout(machine.files());
  EXPECT_TRUE(layout.ok()) << layout.error().message;
  return layout.ok() ? layout.value() : MachineLayout{};
}

TEST(Layout, OfTwoPackagesWithFourNodes) {
  const MachineFiles machine;
  write_two_packages(machine);
  const MachineLayout layout = layout_of(machine);
  EXPECT_EQ(layout.source, "the kernel's files") << "hwloc cannot know an invented machine";
  ASSERT_EQ(layout.processors.size(), 32u);
  EXPECT_EQ(layout.processors[0], (LayoutProcessor{0, 0, 0, 0}));
  EXPECT_EQ(layout.processors[1], (LayoutProcessor{16, 0, 0, 0})) << "threads of a core are neighbours";
  EXPECT_EQ(layout.processors[8], (LayoutProcessor{4, 0, 4, 1}));
  EXPECT_EQ(layout.processors[31], (LayoutProcessor{31, 1, 15, 3}));
  const uint64_t gib = uint64_t{1} << 30;
  EXPECT_EQ(layout.nodes, (std::vector<LayoutNode>{{0, gib}, {1, 2 * gib}, {2, 3 * gib}, {3, 4 * gib}}));
}

TEST(Layout, OfflineProcessorsAreLeftOut) {
  const MachineFiles machine;
  machine.online("0,2-3");
  for (const int number : {0, 2, 3}) machine.processor(number, 0, std::to_string(number));
  machine.nodes("0");
  machine.node(0, "0,2-3", 1024);
  EXPECT_EQ(layout_of(machine).processors, (Processors{{0, 0, 0, 0}, {2, 0, 2, 0}, {3, 0, 3, 0}}));
}

TEST(Layout, AMachineWithoutNumaIsOneNode) {
  const MachineFiles machine;
  machine.online("0-1");
  for (const int number : {0, 1}) machine.processor(number, 0, std::to_string(number));
  EXPECT_EQ(layout_of(machine).nodes, (std::vector<LayoutNode>{{0, 0}})) << "nobody tells how much memory";
  machine.write("proc/meminfo", "MemTotal:        2048 kB\nMemFree: 7 kB");
  const MachineLayout layout = layout_of(machine);
  EXPECT_EQ(layout.nodes, (std::vector<LayoutNode>{{0, 2048 * 1024}}));
  EXPECT_EQ(layout.processors, (Processors{{0, 0, 0, 0}, {1, 0, 1, 0}}));
}

TEST(Layout, NodesMayHaveOnlyMemory) {
  const MachineFiles machine;
  machine.online("0");
  machine.processor(0, 0, "0");
  machine.nodes("0,2");
  machine.node(0, "0", 1);
  machine.node(2, "", 4);
  const MachineLayout layout = layout_of(machine);
  EXPECT_EQ(layout.nodes, (std::vector<LayoutNode>{{0, 1024}, {2, 4096}}));
  EXPECT_EQ(layout.processors, (Processors{{0, 0, 0, 0}}));
}

TEST(Layout, WhatTheFilesDoNotSayIsUnknown) {
  const MachineFiles machine;
  machine.online("0-1");
  machine.processor(1, -1, "1");
  EXPECT_EQ(layout_of(machine).processors, (Processors{{0, -1, -1, 0}, {1, 0, 1, 0}}))
      << "a virtual machine without sockets says -1";
  machine.write("sys/devices/system/cpu/online", "some");
  const auto nonsense = read_layout(machine.files());
  ASSERT_FALSE(nonsense.ok());
  EXPECT_NE(nonsense.error().message.find("cpu/online: 'some'"), std::string::npos) << nonsense.error().message;
  const auto missing = read_layout({"/nonexistent", "/nonexistent"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message, "/nonexistent/devices/system/cpu/online cannot be read");
}

// ---- cores

TEST(CoresOfLayouts, HaveTheUsableThreads) {
  MachineLayout layout;
  layout.processors = {{2, 0, 2}, {3, 0, 2}, {0, 1, 0}, {4, 1, 0}, {1, 1, 1}, {5, 1, 1}};
  const auto all = cores_of(layout, {0, 1, 2, 3, 4, 5});
  ASSERT_TRUE(all.ok()) << all.error().message;
  EXPECT_EQ(all.value(), (std::vector<Core>{{0, {2, 3}}, {1, {0, 4}}, {1, {1, 5}}}));
  const auto some = cores_of(layout, {3, 4});
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some.value(), (std::vector<Core>{{0, {3}}, {1, {4}}})) << "processors that may not be used are left out";
}

TEST(CoresOfLayouts, ThreadsNeedNotBeNeighbours) {
  MachineLayout layout;
  layout.processors = {{5, 0, 0}, {1, 0, 1}, {0, 0, 0}};
  const auto cores = cores_of(layout, {0, 1, 5});
  ASSERT_TRUE(cores.ok());
  EXPECT_EQ(cores.value(), (std::vector<Core>{{0, {0, 5}}, {0, {1}}}));
}

TEST(CoresOfLayouts, ThatAreNotKnownAreSaid) {
  MachineLayout layout;
  layout.source = "the kernel's files";
  layout.processors = {{0, -1, -1}};
  const auto unknown = cores_of(layout, {0});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().message, "the kernel's files: it is not known which core processor 0 belongs to");
  EXPECT_FALSE(cores_of(layout, {7}).ok());
}

// ---- this machine

// However this test was built, both sources describe this machine alike.
TEST(Layout, OfThisMachineIsTheSameByEveryWay) {
  const auto hwloc = layout_from_hwloc();
  if (!hwloc.ok()) GTEST_SKIP() << hwloc.error().message;
  const auto files = layout_from_files();
  ASSERT_TRUE(files.ok()) << files.error().message;
  const auto by_number = [](Processors processors) {
    std::ranges::sort(processors, {}, &LayoutProcessor::number);
    return processors;
  };
  EXPECT_EQ(by_number(hwloc.value().processors), by_number(files.value().processors));
  ASSERT_EQ(hwloc.value().nodes.size(), files.value().nodes.size());
  for (size_t i = 0; i < files.value().nodes.size(); ++i)
    EXPECT_EQ(hwloc.value().nodes[i].number, files.value().nodes[i].number);
}

TEST(Cores, OfThisMachineHaveEveryUsableProcessorOnce) {
  const auto cores = usable_cores();
  if (!cores.ok()) GTEST_SKIP() << cores.error().message;
  std::vector<int> processors;
  for (const Core& core : cores.value())
    processors.insert(processors.end(), core.processors.begin(), core.processors.end());
  std::ranges::sort(processors);
  EXPECT_EQ(processors, usable_processors());
}

}  // namespace
}  // namespace trestle
