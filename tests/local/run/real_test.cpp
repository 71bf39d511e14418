// A real job of the library: its ranks report a dead rank before the launcher ends them.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>

#include "local/command.h"
#include "support/ranks.h"

namespace {

// A job that has begun endless all-reduces.
class PerfJob {
 public:
  PerfJob() : command_({"run", "-n", "3", "-v", "--", TRESTLE_PERF_BINARY, "-b", "8", "-e", "8", "-n", "2000000000"}) {}
  void begin() { ASSERT_TRUE(command_.wait_for("(elements)")) << command_.output(); }
  std::string pid(int rank) const {
    const std::string label = "trestle: rank " + std::to_string(rank) + " (pid ";
    const size_t at = command_.output().find(label) + label.size();
    return command_.output().substr(at, command_.output().find(')', at) - at);
  }
  Command& command() { return command_; }
  // Requires this text before the summary, in a line of this rank.
  void expect_said(int rank, const std::string& part) const {
    const auto lines = command_.lines();
    const std::string label = "[" + std::to_string(rank) + "] ";
    EXPECT_TRUE(std::any_of(
        lines.begin(), lines.end() - 1,
        [&](const std::string& line) { return line.starts_with(label) && line.find(part) != std::string::npos; }))
        << rank << " has not said: " << part << "\n"
        << command_.output();
  }

 private:
  Command command_;
};

TEST(RunReal, SurvivorsNameTheRankThatWasKilled) {
  PerfJob job;
  job.begin();
  kill(std::stoi(job.pid(1)), SIGKILL);
  EXPECT_EQ(job.command().finish(), 137);
  for (const int rank : {0, 2}) job.expect_said(rank, "rank 1");
  const std::string end = "rank 1 (pid " + job.pid(1) + ") was killed by signal 9 (Killed)";
  EXPECT_EQ(job.command().count("trestle: " + end + "\n"), 1) << job.command().output();
  EXPECT_EQ(job.command().lines().back(), "trestle: the job of 3 ranks has failed: " + end + "; exit status 137");
}

TEST(RunReal, AFrozenRankIsNamedAndEnded) {
  // The all-reduces until the rank is frozen must succeed by the same deadline.
  const std::string timeout = std::to_string(ranks::patient_ms(3, 2000)) + "ms";
  setenv("TRESTLE_TIMEOUT", timeout.c_str(), 1);
  PerfJob job;
  unsetenv("TRESTLE_TIMEOUT");
  job.begin();
  kill(std::stoi(job.pid(1)), SIGSTOP);
  EXPECT_GT(job.command().finish(), 0) << job.command().output();
  for (const int rank : {0, 2}) job.expect_said(rank, "rank 1");
  EXPECT_EQ(job.command().count("SIGTERM to rank 1 (pid " + job.pid(1) + ", stopped)"), 1) << job.command().output();
  const std::string blamed = "has failed: rank 1 (pid " + job.pid(1) + ") is blamed by the other ranks; first, rank ";
  EXPECT_TRUE(ranks::contains(job.command().lines().back(), blamed)) << job.command().output();
}

}  // namespace
