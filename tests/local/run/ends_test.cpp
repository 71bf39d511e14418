// How a job of `trestle run` ends: failures, time limits, signals.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>

#include "local/command.h"
#include "local/run/parts.h"
#include "local/temporary_folder.h"

namespace {

// Runs ranks that end as these modes say (parts.cpp).
std::vector<std::string> ends(const TemporaryFolder& folder, const std::vector<std::string>& modes,
                              const std::vector<std::string>& options = {}) {
  std::vector<std::string> more = {folder.path()};
  more.insert(more.end(), modes.begin(), modes.end());
  return parts::run(static_cast<int>(modes.size()), "ends", options, more);
}

std::string named(const Command& command, int rank) {
  return "rank " + std::to_string(rank) + " (pid " + std::to_string(parts::pid_of(command, rank)) + ")";
}

std::string listed(const Command& command, const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += (text.empty() ? "" : ", ") + named(command, rank).substr(5);
  return "ranks " + text;
}

void expect_line(const Command& command, const std::string& line) {
  const auto lines = command.lines();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), "trestle: " + line), 1) << line << "\nin\n" << command.output();
}

void expect_last_line(const Command& command, const std::string& line) {
  ASSERT_FALSE(command.lines().empty());
  EXPECT_EQ(command.lines().back(), "trestle: " + line) << "in\n" << command.output();
}

TEST(RunEnds, OthersHaveTimeForTheirSentences) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  for (const std::string name : {"", "1", "2", "3"}) ASSERT_EQ(mkfifo((fifo + name).c_str(), 0600), 0);
  Command command(parts::run(4, "notice", {"-v", "--grace", "1h"}, {fifo}));
  EXPECT_EQ(command.finish(), 128 + SIGKILL);
  const auto pids = parts::values(command, "trestle: rank 0 (pid ");
  ASSERT_FALSE(pids.empty()) << command.output();
  const std::string end = "rank 0 (pid " + pids.front() + " was killed by signal 9 (Killed)";
  expect_line(command, end);
  for (const std::string rank : {"1", "2", "3"}) {
    EXPECT_EQ(command.count("[" + rank + "] the sentence of rank " + rank + "\n"), 1) << command.output();
  }
  expect_last_line(command, "the job of 4 ranks has failed: " + end + "; 3 failed after it; exit status 137");
}

TEST(RunEnds, ThoseThatStillRunGetSigterm) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"wait", "after 7", "wait"}, {"--grace", "100ms"}));
  EXPECT_EQ(command.finish(), 7);
  const std::string end = named(command, 1) + " ended with exit code 7";
  expect_line(command, end);
  expect_line(command, "no end within 100ms of the failure: SIGTERM to " + listed(command, {0, 2}));
  expect_last_line(command, "the job of 3 ranks has failed: " + end + "; 2 were ended; exit status 7");
  EXPECT_EQ(command.count("killed by signal"), 0) << "their end was asked for\n" << command.output();
}

TEST(RunEnds, ThoseThatIgnoreSigtermAreKilled) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"deaf", "after 9", "deaf"}, {"--grace", "100ms"}));
  EXPECT_EQ(command.finish(), 9);
  expect_line(command, "no end within 100ms of the failure: SIGTERM to " + listed(command, {0, 2}));
  expect_line(command, "no end within 100ms of SIGTERM: SIGKILL to " + listed(command, {0, 2}));
}

TEST(RunEnds, NoGraceIsNoTime) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"deaf", "after 9", "deaf"}, {"--grace", "0"}));
  EXPECT_EQ(command.finish(), 9);
  expect_line(command, "--grace 0 leaves no time after the failure: SIGTERM to " + listed(command, {0, 2}));
  expect_line(command, "--grace 0 leaves no time after SIGTERM: SIGKILL to " + listed(command, {0, 2}));
}

TEST(RunEnds, AStoppedRankIsSaidToBe) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"freeze", "after 0T:3"}, {"--grace", "100ms"}));
  EXPECT_EQ(command.finish(), 3);
  std::string stopped = named(command, 0);
  stopped.insert(stopped.size() - 1, ", stopped");
  expect_line(command, "no end within 100ms of the failure: SIGTERM to " + stopped);
}

TEST(RunEnds, AStoppedRankHearsSigtermToo) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"freeze"}, {"--grace", "1h"}));
  ASSERT_TRUE(command.wait_for("ready"));
  while (parts::state_of(parts::pid_of(command, 0)) != 'T') sched_yield();
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
}

// Ranks 1 and 3 still run at the limit. The launcher knows their process ids even if they have not reported them.
TEST(RunEnds, AtItsTimeLimitTheJobIsEnded) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"well", "wait", "well", "wait"}, {"--timeout", "300ms", "-v"}));
  EXPECT_EQ(command.finish(), 124);
  const std::string start = "trestle: the job has not ended within 300ms: SIGTERM to ranks ";
  ASSERT_EQ(command.count(start), 1) << command.output();
  const std::string said = command.output().substr(command.output().find(start) + start.size());
  for (const std::string rank : {"1", "3"}) {
    const auto pids = parts::values(command, "trestle: rank " + rank + " (pid ");
    ASSERT_FALSE(pids.empty()) << command.output();
    EXPECT_NE(said.substr(0, said.find('\n')).find(rank + " (pid " + pids.front()), std::string::npos) << said;
  }
  EXPECT_EQ(command.count("trestle: the job of 4 ranks has not ended within 300ms; "), 1) << command.output();
  EXPECT_TRUE(command.output().ends_with("; exit status 124\n")) << command.output();
  Command in_time(ends(folder, {"well"}, {"--timeout", "1h"}));
  EXPECT_EQ(in_time.finish(), 0);
}

TEST(RunEnds, AJobThatEndsWellIsNotTalkedAbout) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"well", "well"}));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(command.lines().size(), 4u) << command.output();
}

TEST(RunEnds, TheFirstSignalIsPassedOn) {
  for (const auto& [number, name] : {std::pair(SIGINT, "SIGINT"), {SIGTERM, "SIGTERM"}}) {
    const TemporaryFolder folder;
    Command command(ends(folder, {"handle", "handle"}, {"--grace", "1h"}));
    ASSERT_TRUE(command.wait_for("ready", 2));
    command.signal(number);
    EXPECT_EQ(command.finish(), 128 + number);
    for (const std::string rank : {"0", "1"}) {
      EXPECT_EQ(command.count("[" + rank + "] heard " + (number < 10 ? "0" : "") + std::to_string(number)), 1);
    }
    expect_line(command, name + (" is passed on to " + listed(command, {0, 1})) + "; again: SIGKILL");
    expect_last_line(command, "the job of 2 ranks was ended by " + std::string(name) + "; 2 were ended; exit status " +
                                  std::to_string(128 + number));
  }
}

TEST(RunEnds, AfterTheGraceASignalBecomesSigkill) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"deaf", "deaf"}, {"--grace", "100ms"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
  expect_line(command, "no end within 100ms of SIGTERM: SIGKILL to " + listed(command, {0, 1}));
}

// One signal sent twice at once by one process would count once.
TEST(RunEnds, TheSecondSignalKills) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"deaf", "deaf"}, {"--grace", "1h"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGINT);
  ASSERT_TRUE(command.wait_for("SIGINT is passed on"));
  command.signal(SIGTERM);  // a different signal
  EXPECT_EQ(command.finish(), 128 + SIGINT);
  expect_line(command, "a second signal, SIGTERM: SIGKILL to " + listed(command, {0, 1}));
}

TEST(RunEnds, ASignalDuringTheGraceOfAFailureDoesNotHideIt) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "after 7"}, {"--grace", "1h"}));
  ASSERT_TRUE(command.wait_for("ready"));
  ASSERT_TRUE(command.wait_for("ended with exit code 7"));
  command.signal(SIGINT);
  EXPECT_EQ(command.finish(), 7);
  EXPECT_EQ(command.count("[0] heard 02"), 1) << command.output();
}

TEST(RunEnds, OtherSignalsArePassedOnAndEndNothing) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "handle"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  for (const int number : {SIGUSR1, SIGUSR2}) {
    command.signal(number);
    EXPECT_TRUE(command.wait_for("heard " + std::to_string(number), 2));
  }
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
}

TEST(RunEnds, TheJobStopsAndContinuesWithItsLauncher) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "handle"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGTSTP);
  int status = 0;
  ASSERT_EQ(waitpid(command.pid(), &status, WUNTRACED), command.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
  for (const int rank : {0, 1}) {
    while (parts::state_of(parts::pid_of(command, rank)) != 'T') sched_yield();
  }
  command.signal(SIGCONT);
  EXPECT_TRUE(command.wait_for("heard " + std::to_string(SIGCONT), 2));
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
}

TEST(RunEnds, WhatHappensWhileTheLauncherIsFrozenIsSaidLater) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "wait"}, {"--grace", "100ms"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(command.pid(), &status, WUNTRACED), command.pid());
  kill(parts::pid_of(command, 1), SIGKILL);
  while (parts::state_of(parts::pid_of(command, 1)) != 'Z') sched_yield();
  command.signal(SIGCONT);
  EXPECT_EQ(command.finish(), 137);
  expect_line(command, named(command, 1) + " was killed by signal 9 (Killed)");
}

// If several ranks are seen to have ended at the same time, the killed one is to blame.
TEST(RunEnds, AmongSeveralTheKilledRankCameFirst) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"after 1Z:4", "wait"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(command.pid(), &status, WUNTRACED), command.pid());
  kill(parts::pid_of(command, 1), SIGKILL);
  while (parts::state_of(parts::pid_of(command, 0)) != 'Z') sched_yield();
  command.signal(SIGCONT);
  EXPECT_EQ(command.finish(), 137);
  expect_last_line(command, "the job of 2 ranks has failed: " + named(command, 1) +
                                " was killed by signal 9 (Killed); 1 failed after it; exit status 137");
}

}  // namespace
