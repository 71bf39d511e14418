// The destinations of ranks' lines, and the source of their input.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>

#include "cli/run/printer.h"
#include "local/command.h"
#include "local/run/parts.h"
#include "local/temporary_folder.h"

namespace {

using trestle::Blame;
using trestle::blamed_in;
using trestle::Shared;
using Words = std::vector<std::string>;

std::multiset<std::string> sorted(const Command& command) {
  const auto lines = command.lines();
  return {lines.begin(), lines.end()};
}

// Makes this file descriptor `fd` of the command.
Command::Preparation onto(const std::string& path, int fd) {
  return [path, fd] { dup2(open(path.c_str(), O_RDWR | O_CREAT, 0600), fd); };
}

TEST(RunOutput, HasTheRankInFrontOfEveryLine) {
  for (const Words& options : {Words{}, Words{"--tag"}}) {
    Command command(parts::run(2, "streams", options));
    EXPECT_EQ(command.finish(), 0);
    EXPECT_EQ(sorted(command), (std::multiset<std::string>{"[0] out 0", "[0] no end", "[0] err 0", "[1] out 1",
                                                           "[1] no end", "[1] err 1"}));
  }
}

TEST(RunOutput, HasNothingInFrontWithNoPrefix) {
  Command command(parts::run(2, "streams", {"--no-prefix"}));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(sorted(command), (std::multiset<std::string>{"out 0", "no end", "err 0", "out 1", "no end", "err 1"}));
}

// Standard output and error are one pipe here. Some lines are longer than a pipe takes at once.
TEST(RunOutput, LinesAreNeverTorn) {
  for (const size_t length : {50u, 5000u, 200'000u}) {
    const int times = length > 100'000 ? 5 : 100;
    Command command(parts::run(4, "pieces", {"--no-prefix"}, {std::to_string(times), std::to_string(length)}));
    EXPECT_EQ(command.finish(), 0);
    std::map<std::string, int> lines;
    for (const std::string& line : command.lines()) ++lines[line];
    EXPECT_EQ(lines.size(), 4u);
    for (const char letter : {'a', 'b', 'c', 'd'}) EXPECT_EQ(lines[std::string(length, letter)], 2 * times);
  }
}

TEST(RunOutput, OfAKilledRankIsPassedOnBeforeItsEndIsSaid) {
  Command command(parts::run(1, "words"));
  EXPECT_EQ(command.finish(), 137);
  const auto lines = command.lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0], "[0] " + std::string(60'000, 'w'));
  EXPECT_EQ(lines[1], "[0] last word");
  EXPECT_TRUE(lines[2].starts_with("trestle: rank 0"));
}

TEST(RunOutput, GoesIntoAFilePerRankAndStream) {
  const TemporaryFolder folder;
  Command command(parts::run(11, "streams", {"--output-dir", folder.path("new/one")}));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(command.output(), "");
  EXPECT_EQ(folder.content("new/one/rank.00.out"), "out 0\nno end");
  EXPECT_EQ(folder.content("new/one/rank.10.out"), "out 10\nno end");
  EXPECT_EQ(folder.content("new/one/rank.10.err"), "err 10\n");
  Command again(parts::run(1, "streams", {"--tag", "--output-dir", folder.path()}));
  EXPECT_EQ(again.finish(), 0);
  EXPECT_EQ(folder.content("rank.0.out"), "[0] out 0\n[0] no end\n");
}

// The launcher's own lines go to the caller, not to the files.
TEST(RunOutput, FilesHoldTheRanksLinesAlone) {
  const TemporaryFolder folder;
  Command command(parts::run(1, "words", {"--output-dir", folder.path()}));
  EXPECT_EQ(command.finish(), 137);
  EXPECT_EQ(command.lines().size(), 2u) << command.output();
  EXPECT_TRUE(folder.content("rank.0.out").ends_with("w\nlast word\n"));
}

TEST(RunOutput, FilesThatCannotBeWrittenAreRefusedBeforeAnythingRuns) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkdir(folder.path("rank.1.err").c_str(), 0700), 0);
  Command taken(parts::run(2, "streams", {"--output-dir", folder.path()}));
  EXPECT_EQ(taken.finish(), 2);
  EXPECT_EQ(taken.output(),
            "trestle: --output-dir: " + folder.path("rank.1.err") + " cannot be written: Is a directory\n");
  EXPECT_EQ(folder.content("rank.0.out"), "");
  Command nowhere(parts::run(2, "streams", {"--output-dir", "/proc/nowhere"}));
  EXPECT_EQ(nowhere.finish(), 2);
  EXPECT_EQ(nowhere.output(), "trestle: --output-dir: /proc/nowhere cannot be written: No such file or directory\n");
}

TEST(RunOutput, AFullDiskIsSaid) {
  Command command(parts::run(2, "streams"), onto("/dev/full", STDOUT_FILENO));
  EXPECT_EQ(command.finish(), 1);
  EXPECT_EQ(command.count("cannot be written (No space left on device): output of the ranks is lost"), 1)
      << command.output();
}

TEST(RunOutput, RanksGoOnWhenNobodyReadsAnyMore) {
  Command command(parts::run(2, "pieces", {}, {"1000", "100"}));
  command.wait_for("[0]");
  command.stop_reading();
  EXPECT_EQ(command.wait(), 0);
}

// The reader's pipe is full and stays full.
TEST(RunOutput, ASlowReaderHoldsUpNoSignal) {
  Command command(parts::run(2, "flood", {"--grace", "1h"}));
  const int most = fcntl(command.output_fd(), F_GETPIPE_SZ);
  int kept = 0;
  while (kept < most / 2) {
    sched_yield();
    ASSERT_EQ(ioctl(command.output_fd(), FIONREAD, &kept), 0);
  }
  // The first signal ends the ranks, a later one the wait for the reader.
  pid_t ended = 0;
  while (ended == 0) {
    command.signal(SIGTERM);
    sched_yield();
    siginfo_t info{};
    ASSERT_EQ(waitid(P_PID, static_cast<id_t>(command.pid()), &info, WEXITED | WNOHANG | WNOWAIT), 0);
    ended = info.si_pid;
  }
  EXPECT_EQ(command.wait(), 128 + SIGTERM);
}

// No process reads the endless output of the ranks.
void expect_end_at_time_limit(int out) {
  const int flags = fcntl(out, F_GETFL);
  Command command(parts::run(2, "flood", {"--timeout", "300ms", "--grace", "100ms"}), [out] {
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
  });
  EXPECT_EQ(command.wait(), 124);
  EXPECT_EQ(fcntl(out, F_GETFL), flags) << "what others write with as well is changed";
}

TEST(RunOutput, AReaderThatDoesNotReadHoldsUpNoTimeLimit) {
  int terminal[2];
  int pipe_ends[2];
  int sockets[2];
  ASSERT_EQ(openpty(&terminal[0], &terminal[1], nullptr, nullptr, nullptr), 0);
  ASSERT_EQ(pipe(pipe_ends), 0);
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  for (const int* const ends : {terminal, pipe_ends, sockets}) {
    expect_end_at_time_limit(ends[1]);
    close(ends[0]);
    close(ends[1]);
  }
}

// The rank ends in time, but its last lines are not read. They are more than a pipe holds.
TEST(RunOutput, WhatIsNotReadWithinTheTimeLimitIsLostAndSaidToBe) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  for (int limit_ms = 300;; limit_ms *= 2) {
    const std::string limit = std::to_string(limit_ms) + "ms";
    Command command(parts::run(1, "pieces", {"--timeout", limit, "--grace", "100ms"}, {"2", "50000"}),
                    [&] { dup2(ends[1], STDOUT_FILENO); });
    EXPECT_EQ(command.finish(), 124);
    if (command.count("has not ended within") > 0) continue;  // the machine is slow
    EXPECT_EQ(command.count("trestle: standard output is not read: the last output of the ranks is lost\n"), 1)
        << command.output();
    break;
  }
  close(ends[0]);
  close(ends[1]);
}

TEST(RunInput, GoesToRank0Alone) {
  const TemporaryFolder folder;
  std::ofstream(folder.path("input")) << "one\ntwo\n";
  Command command(parts::run(3, "input"), onto(folder.path("input"), STDIN_FILENO));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(sorted(command), (std::multiset<std::string>{"[0] got one", "[0] two", "[0] end of input",
                                                         "[1] end of input", "[2] end of input"}));
}

TEST(RunInput, MayBeMissing) {
  Command command(parts::run(2, "input"), [] { close(STDIN_FILENO); });
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(command.count("end of input"), 2) << command.output();
}

// The command leads the terminal's session, as when a shell starts it.
TEST(RunInput, OfATerminalIsPassedOn) {
  int terminal = -1;
  int end = -1;
  ASSERT_EQ(openpty(&terminal, &end, nullptr, nullptr, nullptr), 0);
  Command command(parts::run(2, "input"), [&] {
    setsid();
    ioctl(end, TIOCSCTTY, 0);
    dup2(end, STDIN_FILENO);
    close(end);
    close(terminal);
  });
  close(end);
  for (const std::string word : {"one", "two"}) {
    ASSERT_GT(write(terminal, (word + "\n").data(), word.size() + 1), 0);
    EXPECT_TRUE(command.wait_for("[0] got " + word));
  }
  ASSERT_EQ(write(terminal, "\x04", 1), 1);
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(command.count("[0] end of input"), 1) << command.output();
  close(terminal);
}

// Ctrl-C on a terminal reaches only the command, which passes it on.
TEST(RunInput, TheTerminalsInterruptEndsTheJob) {
  int terminal = -1;
  int end = -1;
  ASSERT_EQ(openpty(&terminal, &end, nullptr, nullptr, nullptr), 0);
  const TemporaryFolder folder;
  Command command(parts::run(2, "ends", {"--grace", "1h"}, {folder.path(), "handle"}), [&] {
    setsid();
    ioctl(end, TIOCSCTTY, 0);
    dup2(end, STDIN_FILENO);
  });
  ASSERT_TRUE(command.wait_for("ready", 2));
  ASSERT_EQ(write(terminal, "\x03", 1), 1);
  EXPECT_EQ(command.finish(), 130);
  EXPECT_EQ(command.count("heard SIGINT"), 2) << command.output();
  close(end);
  close(terminal);
}

TEST(RunOutput, TheLogOfAFailedRankNamesTheRankThatItBlames) {
  const std::string prefix = "2026-11-28T10:02:03.004Z node3:533:580 [0] TRESTLE WARN ";
  const std::string failed = prefix + "communicator failed on rank 0 (host a, pid 11): ";
  EXPECT_EQ(blamed_in(failed + "rank 2 (host a, pid 13) is frozen; rank 0 awaits rank 1 (host a, pid 12)"), 13);
  EXPECT_EQ(blamed_in(failed + "rank 2 did not answer; rank 1 (host a, pid 12) says so"), -3);
  EXPECT_EQ(blamed_in(failed + "no memory on rank 2 (host a, pid 13)"), 0);
  EXPECT_EQ(blamed_in(prefix + "rank 0: no communicator of 4 ranks was made: rank 3 did not come to 127.0.0.1"), -4);
  EXPECT_EQ(blamed_in(prefix + "rank 0 (host a, pid 11) has waited 10 s: rank 2 (host a, pid 13) is late"), 0);
  EXPECT_EQ(blamed_in("rank 2 (host a, pid 13) failed"), 0);
  EXPECT_EQ(blamed_in(failed + "rank 0 (host a, pid 11) has aborted"), 0) << "it is no other rank";
  EXPECT_EQ(blamed_in(prefix + "rank 3: no communicator of 4 ranks was made: rank 3 gave up"), 0);
}

// Rank 1 runs until the printer has the line that blames its child.
TEST(RunOutput, TheChildOfARankIsBlamedAsThatRank) {
  const TemporaryFolder folder;
  const std::string script = R"(cd "$0"
    until_there() { until [ -e "$1" ]; do sleep 0.01; done; }
    case $RANK in
    0) until_there child
       echo "x TRESTLE WARN communicator failed on rank 0 (host a, pid 1): rank 7 (host a, pid $(cat child)) failed" >&2
       exit 3 ;;
    1) sleep 1000 & echo $! >new; mv new child; until_there read; kill $! ;;
    esac)";
  Command command({"run", "-n", "2", "--grace", "1h", "--", "sh", "-c", script, folder.path()});
  ASSERT_TRUE(command.wait_for("failed\n")) << command.output();
  close(creat((folder.path() + "/read").c_str(), 0600));
  EXPECT_EQ(command.finish(), 3) << command.output();
  EXPECT_EQ(command.count("the job of 2 ranks has failed: rank 1 (pid "), 1) << command.output();
  EXPECT_EQ(command.count(" is blamed by the other ranks; first, rank 0 (pid "), 1) << command.output();
}

TEST(RunOutput, BlameEndsWithTheFailureItBelongsTo) {
  std::array<Shared, 2> words{};
  const Blame blame(words);
  constexpr int64_t kLongAfter = Blame::kBlameNs + 1;
  EXPECT_EQ(blame.of_failure(1), 0);
  blame.hear(13, 1000);
  blame.hear(14, 1001);
  EXPECT_EQ(blame.of_failure(999), 13) << "the printer may hear it after the end of the rank";
  EXPECT_EQ(blame.of_failure(1002), 13);
  EXPECT_EQ(blame.of_failure(1000 + kLongAfter), 0);
  blame.hear(15, 1000 + kLongAfter);
  EXPECT_EQ(blame.of_failure(1001 + kLongAfter), 15);
}

}  // namespace
