// Processes that ranks start, and ranks whose launcher is killed.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "local/command.h"
#include "local/run/parts.h"
#include "local/temporary_folder.h"

namespace {

// A pipe that every process of a job holds. It ends with the last process.
class LastProcess {
 public:
  LastProcess() { EXPECT_EQ(pipe(ends_), 0); }
  ~LastProcess() {
    close(ends_[0]);
    let_go();
  }
  void let_go() {  // to be called once the job has begun
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

std::vector<pid_t> children_in(const Command& command) {
  std::vector<pid_t> children;
  for (const std::string& child : parts::values(command, "[0] child ")) children.push_back(std::stoi(child));
  return children;
}

// After `trestle` is killed, this process adopts its ranks and the processes that they started.
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
  while (parts::state_of(pid) != 0) sched_yield();  // the rank ends, its child ignores the signal
  command.signal(SIGINT);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
  const std::string killed = "SIGKILL to rank 0 (processes that pid " + std::to_string(pid) + " started)";
  EXPECT_EQ(command.count(killed), 1) << command.output();
  last.wait();
}

TEST(RunFamilies, WhatARankThatEndedWellLeavesRunningIsLeftAlone) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  LastProcess last;
  Command command(parts::run(1, "family", {}, {"well"}));
  EXPECT_EQ(command.finish(), 0) << command.output();
  const auto children = children_in(command);
  ASSERT_EQ(children.size(), 1u);
  const pid_t child = children.front();
  EXPECT_FALSE(last.has_ended());
  kill(child, SIGKILL);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
}

// setsid() moves a process out of its rank's group, so the launcher's signals do not reach it.
TEST(RunFamilies, WhoHasLeftTheGroupDiesWithAJobThatFails) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const auto& [mode, code] : {std::pair("killed", 137), {"failed", 5}, {"wait", 124}}) {
    LastProcess last;
    Command command(parts::run(1, "family", {"--timeout", code == 124 ? "300ms" : "1h"}, {mode, "apart"}));
    EXPECT_EQ(command.finish(), code) << command.output();
    const bool all_ended = last.has_ended();
    EXPECT_TRUE(all_ended) << mode;
    if (all_ended) continue;
    for (const pid_t child : children_in(command)) kill(child, SIGKILL);
    wait_for_all_orphans();
  }
}

// Processes that successful ranks leave behind are killed only if another rank fails.
TEST(RunFamilies, NothingOutlivesAJobThatFails) {
  LastProcess last;
  std::vector<std::string> arguments = parts::run(1, "family", {"--timeout", "300ms"}, {"well"});
  for (const char* word : {":", "-n", "1"}) arguments.emplace_back(word);
  for (const std::string& word : parts::program("family", {"wait"})) arguments.push_back(word);
  Command command(arguments);
  EXPECT_EQ(command.finish(), 124) << command.output();
  last.wait();
}

TEST(RunFamilies, WhoHasLeftTheGroupOfARankThatEndedWellIsLeftAlone) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  LastProcess last;
  Command command(parts::run(1, "family", {}, {"well", "apart"}));
  EXPECT_EQ(command.finish(), 0) << command.output();
  EXPECT_FALSE(last.has_ended());
  for (const pid_t child : children_in(command)) kill(child, SIGKILL);
  wait_for_all_orphans();
}

// For example `exec trestle run` in a shell with a background job. That job belongs to no rank.
TEST(RunFamilies, ChildrenThatTheLauncherHadBeforeAreLeftAlone) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Command command(parts::run(1, "family", {}, {"failed"}), [&] {
    const pid_t child = fork();
    if (child == 0) {
      for (int stream = 0; stream < 3; ++stream) close(stream);
      while (true) pause();
    }
    if (write(ends[1], &child, sizeof child) != sizeof child) _exit(96);
  });
  EXPECT_EQ(command.finish(), 5) << command.output();
  pid_t child = 0;
  ASSERT_EQ(read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  EXPECT_EQ(kill(child, SIGKILL), 0);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it is killed here, not by the launcher";
  close(ends[0]);
  close(ends[1]);
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

// Kills the launcher at every moment of its start.
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

// If the second program cannot be started, the first one's ranks are ended.
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
