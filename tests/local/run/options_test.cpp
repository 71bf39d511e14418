// The command line of `trestle run`: programs, variables, refused input, help.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "local/command.h"
#include "local/run/parts.h"

namespace {

using Words = std::vector<std::string>;

Words joined(Words first, const Words& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

TEST(RunPrograms, AreNumberedThrough) {
  const Words names = {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_PORT", "TRESTLE_SECRET", "TRESTLE_JOB"};
  Words arguments = parts::run(1, "variables", {}, names);
  arguments = joined(joined(arguments, {":", "-n", "2", "--"}), parts::program("variables", names));
  Command command(joined(joined(arguments, {":", "-n1"}), parts::program("variables", {"WORLD_SIZE"})));
  EXPECT_EQ(command.finish(), 0) << command.output();
  for (const std::string rank : {"0", "1", "2"}) {
    EXPECT_EQ(command.count("[" + rank + "] RANK=" + rank + "\n"), 1) << command.output();
    EXPECT_EQ(command.count("[" + rank + "] LOCAL_RANK=" + rank + "\n"), 1);
    EXPECT_EQ(command.count("[" + rank + "] LOCAL_WORLD_SIZE=4\n"), 1);
  }
  EXPECT_EQ(command.count("] WORLD_SIZE=4\n"), 4);
  EXPECT_EQ(command.count("[3] "), 1);
  for (const std::string name : {"MASTER_PORT=", "TRESTLE_SECRET=", "TRESTLE_JOB="}) {
    const auto first = parts::values(command, "[0] " + name);
    ASSERT_EQ(first.size(), 1u);
    EXPECT_EQ(command.count("] " + name + first.front() + "\n"), 3) << "one job, one rendezvous\n" << command.output();
  }
}

TEST(RunPrograms, HaveVariablesOfTheirOwn) {
  setenv("TRESTLE_TEST_INHERITED", "yes", 1);
  const Words names = {"ONE", "TWO", "TRESTLE_TEST_INHERITED"};
  Words arguments =
      parts::run(1, "variables", {"--env", "ONE=a=b", "--env=TWO=", "--env", "TRESTLE_TEST_INHERITED"}, names);
  arguments = joined(arguments, {":", "-n", "1", "--env", "TRESTLE_TEST_INHERITED=no"});
  Command command(joined(arguments, parts::program("variables", names)));
  unsetenv("TRESTLE_TEST_INHERITED");
  EXPECT_EQ(command.finish(), 0) << command.output();
  for (const std::string line : {"[0] ONE=a=b\n", "[0] TWO=\n", "[0] TRESTLE_TEST_INHERITED=yes\n",
                                 "[1] ONE=(not set)\n", "[1] TRESTLE_TEST_INHERITED=no\n"}) {
    EXPECT_EQ(command.count(line), 1) << line << command.output();
  }
}

TEST(RunPrograms, GetTheirArgumentsAsTheyAre) {
  Command command(parts::run(1, "arguments", {}, {"-n", "5", "--json", "--", "two words", "a:b"}));
  EXPECT_EQ(command.finish(), 0);
  EXPECT_EQ(command.output(), "[0] <-n>\n[0] <5>\n[0] <--json>\n[0] <-->\n[0] <two words>\n[0] <a:b>\n");
}

TEST(RunPrograms, ShareASecretThatIsFreshUnlessItIsSet) {
  for (const std::string mine : {"", "mine"}) {
    setenv("TRESTLE_SECRET", mine.c_str(), 1);
    Command command(parts::run(1, "variables", {}, {"TRESTLE_SECRET", "MASTER_ADDR"}));
    unsetenv("TRESTLE_SECRET");
    EXPECT_EQ(command.finish(), 0);
    const auto secrets = parts::values(command, "[0] TRESTLE_SECRET=");
    ASSERT_EQ(secrets.size(), 1u) << command.output();
    EXPECT_EQ(secrets.front().size(), mine.empty() ? 64 : mine.size());
    EXPECT_EQ(command.count("[0] MASTER_ADDR=127.0.0.1\n"), 1);
  }
}

TEST(RunOptions, MayBeWrittenInAllTheUsualWays) {
  for (const Words& options : std::vector<Words>{
           {"-n", "1", "-v", "--"}, {"-n1", "-v"}, {"-vn", "1"}, {"-vn1", "--"}, {"--ranks=1", "--verbose"}}) {
    Command command(joined(joined({"run"}, options), parts::program("variables", {"RANK"})));
    EXPECT_EQ(command.finish(), 0) << command.output();
    EXPECT_EQ(command.count("[0] RANK=0\n"), 1) << command.output();
    EXPECT_EQ(command.count("trestle: rank 0 (pid "), 1) << command.output();
  }
}

TEST(RunOptions, ThatAreWrongAreRefusedByName) {
  unsetenv("TRESTLE_TEST_NOT_SET");
  const std::vector<std::pair<Words, std::string>> cases = {
      {{"-n", "0", "true"}, "--ranks: Value 0 not in range"},
      {{"-n", "-3", "true"}, "--ranks: Value -3 not in range"},
      {{"-n", "65537", "true"}, "--ranks: Value 65537 not in range"},
      {{"-n", "2x", "true"}, "--ranks: Value 2x not in range"},
      {{"-n", "1", "-n", "2", "true"}, "--ranks"},
      {{"-n"}, "--ranks"},
      {{"true"}, "--ranks is required"},
      {{"-n", "1", "true", ":", "other"}, "--ranks is required"},
      {{"-n", "2"}, "a program is missing"},
      {{"-n", "2", "--"}, "a program is missing"},
      {{"-n", "1", "true", ":", "-n", "1"}, "a program is missing"},
      {{"-n", "1", ":", "-n", "1", "true"}, "a program is missing"},
      {{"-n", "2", "--bind", "numa", "true"}, "--bind: 'numa' is not none, core or socket"},
      {{"-n", "2", "--grace", "soon", "true"}, "--grace: 'soon' is not a duration"},
      {{"-n", "2", "--grace", "-1", "true"}, "--grace: '-1' is not a duration"},
      {{"-n", "2", "--timeout", "nan", "true"}, "--timeout: 'nan' is not a duration"},
      {{"-n", "2", "--timeout", "0", "true"}, "--timeout: must be more than 0"},
      {{"-n", "2", "--tag", "--no-prefix", "true"}, "--tag excludes --no-prefix"},
      {{"-n", "2", "--env", "=3", "true"}, "--env: '=3' has no name"},
      {{"-n", "2", "--env", "TRESTLE_TEST_NOT_SET", "true"}, "--env: TRESTLE_TEST_NOT_SET is not set here"},
      {{"-n", "2", "--env", "RANK=1", "true"}, "--env: RANK is set for every rank"},
      {{"-n", "2", "--bindd", "core", "true"}, "--bindd"},
      {{"-n", "1", "true", ":", "-n", "1", "--timeout", "3", "true"}, "--timeout"},
  };
  for (const auto& [arguments, sentence] : cases) {
    Command command(joined({"run"}, arguments));
    EXPECT_EQ(command.finish(), 2) << sentence;
    EXPECT_EQ(command.count(sentence), 1) << sentence << "\n" << command.output();
  }
}

TEST(RunPrograms, ThatCannotBeStartedAreSaidOnce) {
  for (const auto& [program, why, code] : {std::tuple("/no/such/program", "No such file or directory", 127),
                                           {"no_such_program", "No such file or directory", 127},
                                           {"/", "Permission denied", 126},
                                           {"/etc/passwd", "Permission denied", 126}}) {
    Command command({"run", "-n", "8", program});
    EXPECT_EQ(command.finish(), code);
    EXPECT_EQ(command.output(), std::string("trestle: ") + program + " cannot be started: " + why + "\n");
  }
}

TEST(RunHelp, HasEveryOption) {
  Command command({"run", "--help"});
  EXPECT_EQ(command.finish(), 0);
  for (const char* option : {"  -n,--ranks N ", "  --env NAME=VALUE ", "  --bind WHERE ", "  --grace TIME ",
                             "  --timeout TIME ", "  --output-dir DIR ", "  --tag ", "  --no-prefix ",
                             "  -v,--verbose ", "Exit status: ", "Usage: trestle run -n N "}) {
    EXPECT_EQ(command.count(option), 1) << option;
  }
  for (const std::string& line : command.lines()) EXPECT_LE(line.size(), 100u) << line;
}

}  // namespace
