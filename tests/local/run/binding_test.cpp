// The processors that `trestle run` binds ranks to.
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>

#include "local/command.h"
#include "local/run/parts.h"
#include "local/temporary_folder.h"
#include "machine/cores.h"

namespace {

using trestle::Core;
using Processors = std::vector<int>;

// The ranks' affinity masks, by rank.
std::vector<Processors> masks(const Command& command, int ranks) {
  std::vector<Processors> found(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string label = "[" + std::to_string(rank) + "] processors ";
    for (const std::string& line : command.lines()) {
      if (!line.starts_with(label)) continue;
      std::istringstream words(line.substr(label.size()));
      for (int processor = 0; words >> processor;) found[static_cast<size_t>(rank)].push_back(processor);
    }
  }
  return found;
}

std::vector<Core> cores() {
  const auto cores = trestle::usable_cores();
  EXPECT_TRUE(cores.ok()) << cores.error().message;
  return cores.ok() ? cores.value() : std::vector<Core>{};
}

// Moves this process to its own network, in which no other job has claimed cores. False: not allowed.
bool isolate() {
  if (unshare(CLONE_NEWNET) != 0) return false;
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP;
  const bool up = ioctl(socket, SIOCSIFFLAGS, &request) == 0;
  close(socket);
  return up;
}

void isolate_or_exit() {
  if (!isolate()) _exit(77);
}

// Each rank has a core of its own, in any order.
void expect_core_each(const Command& command, int ranks) {
  const std::vector<Core> all = cores();
  std::set<Processors> seen;
  for (const Processors& mask : masks(command, ranks)) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Core& core) { return core.processors == mask; }))
        << command.output();
    seen.insert(mask);
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(ranks)) << command.output();
}

TEST(RunBinding, GivesEachRankACore) {
  const int most = std::min<int>(static_cast<int>(cores().size()), 8);
  for (const int ranks : {1, most}) {
    Command command(parts::run(ranks, "processors", {"--bind", "core"}));
    EXPECT_EQ(command.finish(), 0) << command.output();
    expect_core_each(command, ranks);
  }
}

TEST(RunBinding, IsToCoresByDefaultWhereThereAreEnough) {
  const int most = std::min<int>(static_cast<int>(cores().size()), 8);
  Command command(parts::run(most, "processors", {"-v"}), isolate_or_exit);
  const int code = command.finish();
  if (code == 77) GTEST_SKIP() << "no network namespace can be made here";
  EXPECT_EQ(code, 0) << command.output();
  expect_core_each(command, most);
  EXPECT_EQ(command.count("is bound to processor"), most) << command.output();
}

TEST(RunBinding, OfMoreRanksThanCoresIsSaidAndNotDone) {
  const int ranks = static_cast<int>(cores().size()) + 1;
  const std::string note =
      "ranks: " + std::to_string(ranks) + ", usable cores: " + std::to_string(ranks - 1) + "; not bound";
  const Processors all = trestle::usable_processors();
  const std::vector<std::string> asked = {"--bind", "core"};
  for (const auto& [options, said] : {std::pair(asked, 1), {std::vector<std::string>{}, 0}}) {
    Command command(parts::run(ranks, "processors", options));
    EXPECT_EQ(command.finish(), 0) << command.output();
    EXPECT_EQ(command.count("trestle: --bind core: " + note), said) << command.output();
    for (const Processors& mask : masks(command, ranks)) EXPECT_EQ(mask, all);
  }
}

TEST(RunBinding, NoneLeavesRanksWhereTheLauncherIs) {
  Command command(parts::run(1, "processors", {"--bind", "none", "-v"}));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(masks(command, 1).front(), trestle::usable_processors());
  EXPECT_EQ(command.count("is not bound"), 1) << command.output();
}

TEST(RunBinding, SocketIsAllItsUsableCores) {
  Command command(parts::run(1, "processors", {"--bind", "socket"}));
  EXPECT_EQ(command.finish(), 0);
  const std::vector<Core> all = cores();
  Processors expected;
  for (const Core& core : all) {
    if (core.socket == all.front().socket)
      expected.insert(expected.end(), core.processors.begin(), core.processors.end());
  }
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(masks(command, 1).front(), expected) << command.output();
}

TEST(RunBinding, StaysInTheLaunchersOwnMask) {
  const Core core = cores().back();
  const auto narrow = [&] {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int processor : core.processors) CPU_SET(static_cast<size_t>(processor), &set);
    sched_setaffinity(0, sizeof set, &set);
  };
  for (const std::string bind : {"core", "socket", "none"}) {
    Command command(parts::run(1, "processors", {"--bind", bind}), narrow);
    EXPECT_EQ(command.finish(), 0);
    EXPECT_EQ(masks(command, 1).front(), core.processors) << command.output();
  }
  Command crowded(parts::run(2, "processors", {"--bind", "core"}), narrow);
  EXPECT_EQ(crowded.finish(), 0);
  EXPECT_EQ(crowded.count("--bind core: ranks: 2, usable cores: 1; not bound"), 1) << crowded.output();
}

// Two jobs at once: the second is bound to other cores, or not at all if there are none.
TEST(RunBinding, LeavesTheCoresOfOtherJobsAlone) {
  const TemporaryFolder folder;
  Command first(parts::run(1, "ends", {"--bind", "core", "-v"}, {folder.path(), "wait"}));
  ASSERT_TRUE(first.wait_for("ready"));
  const auto all = static_cast<int>(cores().size());
  Command crowded(parts::run(all, "processors", {"-v"}));
  EXPECT_EQ(crowded.finish(), 0);
  EXPECT_EQ(crowded.count("taken by other jobs: 1; not bound"), 1) << crowded.output();
  Command asked(parts::run(all, "processors", {"--bind", "core"}));
  EXPECT_EQ(asked.finish(), 0);
  EXPECT_EQ(asked.count("taken by other jobs: "), 1) << asked.output();
  expect_core_each(asked, all);
  first.signal(SIGTERM);
  first.finish();
}

}  // namespace
