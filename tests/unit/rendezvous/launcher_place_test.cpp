// When ranks meet through the launcher, and the sentences if that fails. There is one exchange per process, so only one
// test of it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fork.h"
#include "unit/rendezvous/ranks.h"

namespace trestle {
namespace launcher_place_test {
namespace {

const bool kWatched = watch_forks();

BootstrapConfig below_hydra(int32_t rank, int64_t number) {
  BootstrapConfig config = loopback_config(2, rank, {});
  config.launcher.source = "Hydra";
  config.launcher.space.kind = LauncherSpace::Kind::kPmi;
  config.launcher.space.rank = number;
  config.launcher.space.pmi_fd = 1'000'000;  // not open in any process
  return config;
}

std::string refusal(const BootstrapConfig& config) {
  const Joined joined = Bootstrap::join(config);
  return joined.ok() ? "success" : joined.error().message;
}

TEST(LauncherPlace, RankZeroIsTheLaunchersRankZero) {
  const std::string said = refusal(below_hydra(0, 1));
  EXPECT_TRUE(contains(said, "the launcher counts as 0, and this one is 1")) << said;
}

TEST(LauncherPlace, AnExchangeIsNotRepeated) {
  const std::string first = refusal(below_hydra(1, 1));
  EXPECT_TRUE(contains(first, "PMI of the launcher (PMI_FD=1000000)")) << first;
  const std::string second = refusal(below_hydra(1, 1));
  EXPECT_TRUE(contains(second, "has failed before")) << second;
  EXPECT_TRUE(contains(second, "PMI_FD=1000000")) << second;
}

TEST(LauncherPlace, AForkedChildIsNotTheProcessThatTheLauncherKnows) {
  ASSERT_TRUE(kWatched);
  (void)refusal(below_hydra(1, 1));
  const pid_t child = fork();
  if (child == 0) _exit(contains(refusal(below_hydra(1, 1)), "was forked by one that has made the exchange") ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(LauncherPlace, OtherPlacesComeFirst) {
  BootstrapConfig config = below_hydra(1, 1);
  config.deadline_ns = monotonic_clock().now_ns() + kSecond / 10;
  config.launcher.master_address = "127.0.0.1";
  config.launcher.master_port = taken_port().address.port();
  EXPECT_TRUE(contains(refusal(config), "the rendezvous at 127.0.0.1:")) << "MASTER_ADDR";
  config.launcher.address_concluded = true;
  EXPECT_TRUE(contains(refusal(config), "PMI_FD")) << "an address that was only concluded";
  config.deadline_ns = monotonic_clock().now_ns() + kSecond / 10;
  config.communicator_id = "127.0.0.1:" + std::to_string(*config.launcher.master_port);
  EXPECT_TRUE(contains(refusal(config), "the rendezvous at 127.0.0.1:")) << "TRESTLE_COMM_ID";
}

TEST(LauncherPlace, OneRankNeedsNone) {
  BootstrapConfig config = below_hydra(0, 1);
  config.nranks = 1;
  EXPECT_EQ(refusal(config), "success");
}

}  // namespace
}  // namespace launcher_place_test
}  // namespace trestle
