// How a job of `trestle run` ends: failures, time limits, signals.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
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

// The sentence with "{1}" replaced by "1 (pid N)" of rank 1, which must have printed its number.
std::string with_pids(const Command& command, std::string sentence) {
  for (size_t at = sentence.find('{'); at != std::string::npos; at = sentence.find('{')) {
    const int rank = sentence[at + 1] - '0';
    sentence.replace(at, 3, std::to_string(rank) + " (pid " + std::to_string(parts::pid_of(command, rank)) + ")");
  }
  return sentence;
}

void expect_line(const Command& command, const std::string& sentence) {
  const auto lines = command.lines();
  const std::string line = "trestle: " + with_pids(command, sentence);
  EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 1) << line << "\nin\n" << command.output();
}

void wait_until_stopped(const Command& command) {
  int status = 0;
  ASSERT_EQ(waitpid(command.pid(), &status, WUNTRACED), command.pid());
  ASSERT_TRUE(WIFSTOPPED(status));
}

struct Failing {
  std::vector<std::string> modes;  // of the ranks (parts.cpp)
  std::vector<std::string> options;
  int code;
  std::vector<std::string> sentences;
};

TEST(RunEnds, ARankThatFailsEndsTheOthers) {
  const std::vector<Failing> cases = {
      {{"wait", "after 7", "wait"},
       {"--grace", "100ms"},
       7,
       {"rank {1} ended with exit code 7", "SIGTERM to ranks {0}, {2}: no end within 100ms of the failure",
        "the job of 3 ranks has failed: rank {1} ended with exit code 7; exit status 7"}},
      {{"deaf", "after 9"},
       {"--grace", "100ms"},
       9,
       {"SIGTERM to rank {0}: no end within 100ms of the failure", "SIGKILL to rank {0}: no end within 100ms"}},
      {{"deaf", "after 9"}, {"--grace", "0"}, 9, {"SIGKILL to rank {0}: no end within 0"}},
      {{"well", "well"}, {}, 0, {}},
      {{"well"}, {"--timeout", "1h"}, 0, {}},
      {{"wait", "wait", "wait", "wait", "wait", "after 3"},
       {"--grace", "100ms"},
       3,
       {"SIGTERM to ranks 0-4: no end within 100ms of the failure"}},
  };
  for (const Failing& one : cases) {
    const TemporaryFolder folder;
    Command command(ends(folder, one.modes, one.options));
    EXPECT_EQ(command.finish(), one.code) << command.output();
    for (const std::string& sentence : one.sentences) expect_line(command, sentence);
    EXPECT_EQ(command.count("trestle") == 0, one.code == 0) << command.output();
  }
}

TEST(RunEnds, OthersHaveTimeForTheirSentences) {
  const TemporaryFolder folder;
  const std::string fifo = folder.path("fifo");
  for (const std::string name : {"", "1", "2", "3"}) ASSERT_EQ(mkfifo((fifo + name).c_str(), 0600), 0);
  Command command(parts::run(4, "notice", {"--grace", "1h"}, {fifo}));
  EXPECT_EQ(command.finish(), 128 + SIGKILL);
  for (const std::string rank : {"1", "2", "3"}) {
    EXPECT_EQ(command.count("[" + rank + "] the sentence of rank " + rank + "\n"), 1) << command.output();
  }
  EXPECT_EQ(command.count("the job of 4 ranks has failed: rank 0"), 1) << command.output();
}

TEST(RunEnds, AStoppedRankIsSaidToBe) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"freeze", "after 0T:3"}, {"--grace", "100ms"}));
  EXPECT_EQ(command.finish(), 3);
  std::string said = with_pids(command, "SIGTERM to rank {0}");
  said.insert(said.size() - 1, ", stopped");
  EXPECT_EQ(command.count(said), 1) << command.output();
}

TEST(RunEnds, AStoppedRankHearsSigtermToo) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"freeze"}, {"--grace", "1h"}));
  ASSERT_TRUE(command.wait_for("ready"));
  while (parts::state_of(parts::pid_of(command, 0)) != 'T') sched_yield();
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
}

// Ranks 1 and 3 still run at the limit.
TEST(RunEnds, AtItsTimeLimitTheJobIsEnded) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"well", "wait", "well", "wait"}, {"--timeout", "300ms"}));
  EXPECT_EQ(command.finish(), 124);
  EXPECT_EQ(command.count(": the job has not ended within 300ms\n"), 1) << command.output();
  EXPECT_EQ(command.count("the job of 4 ranks has not ended within 300ms; exit status 124\n"), 1) << command.output();
}

TEST(RunEnds, TheFirstSignalIsPassedOn) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const TemporaryFolder folder;
    Command command(ends(folder, {"handle", "handle"}, {"--grace", "1h"}));
    ASSERT_TRUE(command.wait_for("ready", 2));
    command.signal(number);
    EXPECT_EQ(command.finish(), 128 + number);
    const std::string name = std::string("SIG") + sigabbrev_np(number);
    for (const std::string rank : {"0", "1"}) EXPECT_EQ(command.count("[" + rank + "] heard " + name), 1);
    expect_line(command, name + " to ranks {0}, {1}: passed on; a second signal is SIGKILL");
    expect_line(command, "the job of 2 ranks was ended by " + name + "; exit status " + std::to_string(128 + number));
  }
}

// One signal sent twice at once counts once.
TEST(RunEnds, AfterTheGraceOrASecondSignalItBecomesSigkill) {
  for (const bool second : {false, true}) {
    const TemporaryFolder folder;
    Command command(ends(folder, {"deaf", "deaf"}, {"--grace", second ? "1h" : "100ms"}));
    ASSERT_TRUE(command.wait_for("ready", 2));
    command.signal(SIGINT);
    ASSERT_TRUE(command.wait_for("a second signal is SIGKILL"));
    if (second) command.signal(SIGTERM);
    EXPECT_EQ(command.finish(), 128 + SIGINT);
    expect_line(command, std::string("SIGKILL to ranks {0}, {1}: ") +
                             (second ? "a second signal, SIGTERM" : "no end within 100ms"));
  }
}

TEST(RunEnds, ASignalDuringTheGraceOfAFailureDoesNotHideIt) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "after 7"}, {"--grace", "1h"}));
  ASSERT_TRUE(command.wait_for("ready"));
  ASSERT_TRUE(command.wait_for("ended with exit code 7"));
  command.signal(SIGINT);
  EXPECT_EQ(command.finish(), 7);
  EXPECT_EQ(command.count("[0] heard SIGINT"), 1) << command.output();
}

TEST(RunEnds, OtherSignalsArePassedOnAndEndNothing) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "handle"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  for (const int number : {SIGUSR1, SIGUSR2}) {
    command.signal(number);
    EXPECT_TRUE(command.wait_for(std::string("heard SIG") + sigabbrev_np(number), 2));
  }
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
}

TEST(RunEnds, TheJobStopsAndContinuesWithItsLauncher) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "handle"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGTSTP);
  wait_until_stopped(command);
  for (const int rank : {0, 1}) {
    while (parts::state_of(parts::pid_of(command, rank)) != 'T') sched_yield();
  }
  command.signal(SIGCONT);
  EXPECT_TRUE(command.wait_for("heard SIGCONT", 2));
  command.signal(SIGTERM);
  EXPECT_EQ(command.finish(), 128 + SIGTERM);
}

TEST(RunEnds, WhatHappensWhileTheLauncherIsFrozenIsSaidLater) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"handle", "wait"}, {"--grace", "100ms"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGSTOP);
  wait_until_stopped(command);
  kill(parts::pid_of(command, 1), SIGKILL);
  while (parts::state_of(parts::pid_of(command, 1)) != 'Z') sched_yield();
  command.signal(SIGCONT);
  EXPECT_EQ(command.finish(), 137);
  expect_line(command, "rank {1} was killed by signal 9 (Killed)");
}

// If several ranks are seen to have ended at the same time, the killed one is to blame.
TEST(RunEnds, AmongSeveralTheKilledRankCameFirst) {
  const TemporaryFolder folder;
  Command command(ends(folder, {"after 1Z:4", "wait"}));
  ASSERT_TRUE(command.wait_for("ready", 2));
  command.signal(SIGSTOP);
  wait_until_stopped(command);
  kill(parts::pid_of(command, 1), SIGKILL);
  while (parts::state_of(parts::pid_of(command, 0)) != 'Z') sched_yield();
  command.signal(SIGCONT);
  EXPECT_EQ(command.finish(), 137);
  expect_line(command, "the job of 2 ranks has failed: rank {1} was killed by signal 9 (Killed); exit status 137");
}

// All ranks have ended, but their last lines are not read. They are more than a pipe holds.
TEST(RunEnds, ASignalThatEndsTheWaitForTheReaderIsTheExitStatus) {
  int input[2], output[2];
  ASSERT_EQ(pipe(input), 0);
  ASSERT_EQ(pipe(output), 0);
  Command command({"run", "-n", "1", "--", "sh", "-c", "echo pid $$ >&2; read line; exec head -c 100000 /dev/zero"},
                  [&] {
                    dup2(input[0], STDIN_FILENO);
                    dup2(output[1], STDOUT_FILENO);
                  });
  ASSERT_TRUE(command.wait_for("pid"));
  ASSERT_TRUE(command.wait_for("\n"));
  const pid_t rank = parts::pid_of(command, 0);
  ASSERT_EQ(write(input[1], "\n", 1), 1);
  while (parts::state_of(rank) != 0) sched_yield();  // the command has waited for it
  command.signal(SIGINT);
  EXPECT_EQ(command.finish(), 128 + SIGINT);
  EXPECT_EQ(command.count("trestle: standard output is not read: the last output of the ranks is lost\n"), 1);
  for (const int fd : {input[0], input[1], output[0], output[1]}) close(fd);
}

}  // namespace
