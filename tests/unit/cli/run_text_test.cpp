// Texts that `trestle run` parses from its command line, and its sentences about ranks.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/run/rank_end.h"
#include "cli/run/run_arguments.h"

namespace trestle {
namespace {

using Words = std::vector<std::string>;

bool has_value(const std::string& option) {
  return option == "-n" || option == "--env" || option == "--ranks";
}

std::vector<ProgramArguments> split(const Words& arguments) {
  return split_programs(arguments, has_value);
}

TEST(RunArguments, EndWithTheProgram) {
  const std::vector<std::pair<Words, ProgramArguments>> cases = {
      {{"-n", "2", "true"}, {{"-n", "2"}, {"true"}}},
      {{"-n", "2", "--", "true", "--", "-n"}, {{"-n", "2"}, {"true", "--", "-n"}}},
      {{"-n2", "-v", "prog", "-n", "3"}, {{"-n2", "-v"}, {"prog", "-n", "3"}}},
      {{"-vn", "2", "prog"}, {{"-vn", "2"}, {"prog"}}},
      {{"--env=A=1", "prog"}, {{"--env=A=1"}, {"prog"}}},
      {{"--env", "A=1", "--env", "B", "prog"}, {{"--env", "A=1", "--env", "B"}, {"prog"}}},
      {{"-n", "-2", "prog"}, {{"-n", "-2"}, {"prog"}}},
      {{"--", "-prog"}, {{}, {"-prog"}}},
      {{"-"}, {{}, {"-"}}},
      {{"-n"}, {{"-n"}, {}}},
      {{}, {{}, {}}},
  };
  for (const auto& [arguments, expected] : cases) {
    const auto programs = split(arguments);
    ASSERT_EQ(programs.size(), 1u);
    EXPECT_EQ(programs[0].options, expected.options);
    EXPECT_EQ(programs[0].command, expected.command);
  }
}

TEST(RunArguments, SeparateProgramsByColons) {
  EXPECT_EQ(split({"-n", "1", "a", "x", ":", "-n", "2", "--", "b"}),
            (std::vector<ProgramArguments>{{{"-n", "1"}, {"a", "x"}}, {{"-n", "2"}, {"b"}}}));
  EXPECT_EQ(split({"-n", "1", "a", ":"}), (std::vector<ProgramArguments>{{{"-n", "1"}, {"a"}}, {{}, {}}}));
  EXPECT_EQ(split({":", "a"}), (std::vector<ProgramArguments>{{{}, {}}, {{}, {"a"}}}));
  EXPECT_EQ(split({"-n", "1", "a:b"})[0].command, Words{"a:b"});
}

TEST(RankSentences, SayHowARankHasEnded) {
  EXPECT_EQ(name_text({3, 4711}), "rank 3 (pid 4711)");
  EXPECT_EQ(end_text({SIGKILL, 0, false}), "was killed by signal 9 (Killed)");
  EXPECT_EQ(end_text({SIGSEGV, 0, true}), "was killed by signal 11 (Segmentation fault, core dumped)");
  EXPECT_EQ(end_text({0, 7, false}), "ended with exit code 7");
  EXPECT_EQ((RankEnd{SIGKILL, 0, false}).status(), 137);
  EXPECT_EQ((RankEnd{0, 7, false}).status(), 7);
  EXPECT_EQ(signal_text(SIGTERM), "SIGTERM");
  EXPECT_EQ(signal_text(1000), "signal 1000");
}

TEST(RankSentences, NameRanks) {
  EXPECT_EQ(names_text({{1, 4711}}), "rank 1 (pid 4711)");
  EXPECT_EQ(names_text({{1, 4711}, {2, 4712, true}}), "ranks 1 (pid 4711), 2 (processes that pid 4712 started)");
  EXPECT_EQ(names_text({{0}, {1}, {2}, {4}, {6}, {7}}), "ranks 0-2, 4, 6-7");
}

TEST(RankSentences, SayThatARankIsStopped) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    raise(SIGSTOP);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, WUNTRACED), child);
  ASSERT_TRUE(WIFSTOPPED(status));
  EXPECT_EQ(names_text({{5, child}}), "rank 5 (pid " + std::to_string(child) + ", stopped)");
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace trestle
