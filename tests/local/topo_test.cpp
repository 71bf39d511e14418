// `trestle topo` on every rank of a job.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "local/command.h"

namespace {

std::vector<std::string> topo_of(int ranks, const std::vector<std::string>& options = {}) {
  std::vector<std::string> arguments = {"run", "-n", std::to_string(ranks), "--", TRESTLE_COMMAND, "topo"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return arguments;
}

TEST(TopoTest, RankZeroPrintsTheRanksOfTheJob) {
  Command command(topo_of(3));
  EXPECT_EQ(command.finish(), 0) << command.output();
  EXPECT_EQ(command.count("[0] host "), 1) << command.output();
  EXPECT_EQ(command.count("[0] 3 ranks on 1 host\n"), 1) << command.output();
  EXPECT_EQ(command.count("3 ranks; why: ranks per host x hosts = 3x1"), 1) << command.output();
  for (const char* rank : {"rank 0 ", "rank 1 ", "rank 2 "}) EXPECT_EQ(command.count(std::string("[0] ") + rank), 1);
  EXPECT_EQ(command.count("[1] ") + command.count("[2] "), 0) << command.output();
}

TEST(TopoTest, RanksOfInventedHostsHaveALineEach) {
  Command command(
      {"run", "-n", "2", "--", "sh", "-c", std::string("TRESTLE_HOSTID=host$RANK exec ") + TRESTLE_COMMAND + " topo"});
  EXPECT_EQ(command.finish(), 0) << command.output();
  EXPECT_EQ(command.count("2 ranks on 2 hosts; the drawing is of rank 0's\n"), 1) << command.output();
  EXPECT_EQ(command.count("ranks per host x hosts = 1x2"), 1) << command.output();
  EXPECT_EQ(command.count("rails of dimension 1 here: "), 1) << command.output();
}

TEST(TopoTest, DimensionsThatDoNotFitTheJobAreSaidUnlessTheyAreAskedFor) {
  Command asked(topo_of(2, {"--dims", "4x2"}));
  EXPECT_EQ(asked.finish(), 0) << asked.output();
  EXPECT_EQ(asked.count("8 ranks; why: "), 1) << asked.output();
  Command configured(topo_of(2), [] { setenv("TRESTLE_DIMS", "4x2", 1); });
  EXPECT_EQ(configured.finish(), 2) << configured.output();
  EXPECT_EQ(configured.count("[0] trestle: "), 1) << configured.output();
}

// A library of this name counts where the command finds it. This machine may have GPUs of its own.
TEST(TopoTest, GpusAreThoseThatTheManagementLibraryKnows) {
  Command command({"topo"}, [] { setenv("LD_LIBRARY_PATH", TRESTLE_FAKE_NVML_FOLDER, 1); });
  EXPECT_EQ(command.finish(), 0) << command.output();
  EXPECT_EQ(command.count("  GPU 0000:f0:00.0  NVIDIA Fake"), 1) << command.output();
  EXPECT_EQ(command.count("GPU-4567abcd"), 1) << command.output();
  EXPECT_EQ(command.count("  0000:f0:00.0 - 0000:f1:00.0  4 NVLinks, 100 GB/s\n"), 1) << command.output();
}

}  // namespace
