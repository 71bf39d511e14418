// Configuration files of a process: which value wins, and the answer to a mistake in a file.
#include <gtest/gtest.h>

#include "local/temporary_folder.h"
#include "support/ranks.h"

namespace api {
namespace config_file_test {
namespace {

using ranks::refused;
using ranks::succeeded;

// Sets a policy that does not exist: the communicator's error then names the source that set it.
std::string policy(const std::string& name) {
  return "TRESTLE_SCHED=" + name + "\n";
}

void expect_refused(const ranks::Env& env, const std::vector<std::string>& facts) {
  ranks::isolated(
      [&] {
        trestleComm_t comms[2] = {};
        EXPECT_TRUE(refused(trestleCommInitAll(comms, 2, nullptr), trestleInvalidArgument, facts));
        EXPECT_EQ(comms[0], nullptr);
      },
      env);
}

TEST(ApiConfigFile, AnUnknownNameIsRefusedWithItsLineAndTheNearestOne) {
  const TemporaryFolder folder;
  const std::string path = folder.write("job.conf", "# of this job\nTRESTLE_CHUNCKS=4\n");
  expect_refused({{"TRESTLE_CONF_FILE", path}}, {path + ":2:", "TRESTLE_CHUNCKS", "TRESTLE_CHUNKS?"});
}

TEST(ApiConfigFile, OneThatIsNamedMustBeThere) {
  ranks::isolated(
      [] {
        trestleComm_t comms[2] = {};
        EXPECT_TRUE(refused(trestleCommInitAll(comms, 2, nullptr), trestleSystemError, {"/nonexistent/job.conf"}));
      },
      {{"TRESTLE_CONF_FILE", "/nonexistent/job.conf"}});
}

TEST(ApiConfigFile, TheOneInTheHomeDirectoryIsRead) {
  const TemporaryFolder home;
  const std::string path = home.write(".trestle.conf", "\n\n" + policy("of-home"));
  expect_refused({{"HOME", home.path()}}, {path + ":3:", "TRESTLE_SCHED", "of-home"});
}

TEST(ApiConfigFile, TheNamedOneStandsInsteadOfTheOneInTheHomeDirectory) {
  const TemporaryFolder home;
  home.write(".trestle.conf", policy("of-home"));
  const std::string path = home.write("job.conf", policy("of-job"));
  expect_refused({{"HOME", home.path()}, {"TRESTLE_CONF_FILE", path}}, {path + ":1:", "of-job"});
  const std::string empty = home.write("empty.conf", "");
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t) {}, {{"HOME", home.path()}, {"TRESTLE_CONF_FILE", empty}});
}

TEST(ApiConfigFile, TheEnvironmentStandsAboveThem) {
  const TemporaryFolder home;
  home.write(".trestle.conf", policy("of-home"));
  ranks::on_threads({.ranks = 2}, [](int, trestleComm_t) {}, {{"HOME", home.path()}, {"TRESTLE_SCHED", "baseline"}});
}

// The predicted time of an all-reduce of 16 MiB on four ranks.
double predicted(int chunks) {
  trestleConfig_t config = TRESTLE_CONFIG_INITIALIZER;
  config.chunks = chunks;
  trestleComm_t comms[4] = {};
  EXPECT_TRUE(succeeded(trestleCommInitAllConfig(comms, 4, &config)));
  double time_us = -1;
  EXPECT_TRUE(succeeded(trestlePredictTime(comms[0], trestleCollAllReduce, 4 << 20, trestleFloat32, &time_us)));
  for (trestleComm_t comm : comms) EXPECT_EQ(trestleCommDestroy(comm), trestleSuccess);
  return time_us;
}

// Correct values of a file have effect. The caller's struct overrides them.
TEST(ApiConfigFile, ValuesHold) {
  const TemporaryFolder home;
  home.write(".trestle.conf", "TRESTLE_DIMS=2x2\nTRESTLE_SCHED=baseline\nTRESTLE_CHUNKS=16\n");
  ranks::isolated(
      [] {
        const double of_file = predicted(TRESTLE_CONFIG_UNDEF_INT);
        EXPECT_EQ(of_file, predicted(16));
        EXPECT_NE(of_file, predicted(1));
      },
      {{"HOME", home.path()}});
}

}  // namespace
}  // namespace config_file_test
}  // namespace api
