// What becomes of the processes that ranks start, and of ranks whose launcher is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "local/command.h"
#include "local/run_parts.h"
#include "local/temporary_folder.h"

namespace {

// A pipe that every process of a job holds: its end is that of the last one.
class LastProcess {
 public:
  LastProcess() { EXPECT_EQ(pipe(ends_), 0); }
  ~LastProcess() {
    close(ends_[0]);
    let_go();
  }
  void let_go() {  // once the job has begun
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  void wait() {
    let_go();
    char byte = 0;
    EXPECT_EQ(read(ends_[0], &byte, 1), 0);
  }
  bool has_ended() {
    let_go();
    char byte = 0;
    fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    return read(ends_[0], &byte, 1) == 0;
  }

 private:
  int ends_[2] = {-1, -1};
};

// With `trestle` killed its ranks come to this process, and with them what they have started.
void wait_for_all_orphans() {
  while (waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
  EXPECT_EQ(errno, ECHILD);
}

TEST(RunFamilies, AFailedRanksChildrenDieWithIt) {
  for (const auto& [mode, code] : {std::pair("killed", 137), {"failed", 5}}) {
    LastProcess last;
    Command command(parts::run(1, "family", {"--grace", "1h"}, {mode}));
    EXPECT_EQ(command.finish(), code) << command.output();
    last.wait();
  }
}

TEST(RunFamilies, ChildrenOfEndedRanksHaveTheirTimeToo) {
  LastProcess last;
  Command command(parts::run(1, "family", {"--grace", "1h"}, {"deaf"}));
  ASSERT_TRUE(command.wait_for("child"));
  const pid_t pid = parts::pid_of(command, 0);
  command.signal(SIGTERM);
  while (parts::state_of(pid) != 0) sched_yield();  // the rank; its child ignores the signal
  command.signal(SIGINT);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
  const std::string killed = "a second signal, SIGINT: SIGKILL to rank 0 (what pid " + std::to_string(pid);
  EXPECT_EQ(command.count(killed + " has started)"), 1) << command.output();
  last.wait();
}

TEST(RunFamilies, WhatARankThatEndedWellLeavesRunningIsLeftAlone) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  LastProcess last;
  Command command(parts::run(1, "family", {}, {"well"}));
  EXPECT_EQ(command.finish(), 0) << command.output();
  const auto children = parts::values(command, "[0] child ");
  ASSERT_EQ(children.size(), 1u);
  const pid_t child = std::stoi(children.front());
  EXPECT_FALSE(last.has_ended());
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(RunFamilies, NothingOutlivesAKilledLauncher) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  LastProcess last;
  Command command(parts::run(3, "family", {}, {"wait"}));
  ASSERT_TRUE(command.wait_for("child", 3));
  command.signal(SIGKILL);
  EXPECT_EQ(command.finish(), -SIGKILL);
  last.wait();
  wait_for_all_orphans();
}

// Killed at every moment of its start.
TEST(RunFamilies, NoRankSlipsAwayWhileTheJobBegins) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int round = 0; round < 40; ++round) {
    LastProcess last;
    Command command(parts::run(6, "family", {"-v"}, {"wait"}));
    command.wait_for("trestle: rank", round % 7);
    for (int turn = 0; turn < 50 * (round % 5); ++turn) sched_yield();
    command.signal(SIGKILL);
    EXPECT_EQ(command.finish(), -SIGKILL);
    last.wait();
    wait_for_all_orphans();
  }
}

// A second program that cannot be started ends the first one's ranks.
TEST(RunFamilies, NothingOutlivesAJobThatCannotBegin) {
  LastProcess last;
  std::vector<std::string> arguments = parts::run(2, "family", {}, {"deaf"});
  for (const char* word : {":", "-n", "2", "/no/such/program"}) arguments.emplace_back(word);
  Command command(arguments);
  EXPECT_EQ(command.finish(), 127);
  EXPECT_EQ(command.count("trestle: /no/such/program cannot be started: No such file or directory\n"), 1);
  last.wait();
}

}  // namespace
