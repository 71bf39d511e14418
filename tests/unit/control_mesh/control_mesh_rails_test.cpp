// A control mesh whose rails fail: connections move to another rail, and only dead or lost ranks are reported.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "base/log.h"
#include "support/log_lines.h"
#include "support/open_descriptors.h"
#include "transport/auth/handshake_exchange.h"
#include "unit/control_mesh/fake_rails.h"

namespace trestle {
namespace {

bool host_is_gone(int, int64_t) {
  return false;
}

class RailMeshTest : public testing::TestWithParam<int32_t> {};

TEST_P(RailMeshTest, MovesWhenARailIsCut) {
  RailMeshes meshes(GetParam());
  meshes.start_gather(1);
  meshes.net.cut(0);
  meshes.start_gather(2);
  meshes.finish_gather(1);
  meshes.finish_gather(2);
  meshes.net.mend(0);
  meshes.net.cut(1);
  meshes.start_gather(3);
  meshes.finish_gather(3);
  meshes.expect_no_error();
}

TEST_P(RailMeshTest, LosesNothingHoweverOftenRailsAreCut) {
  std::minstd_rand random(static_cast<uint32_t>(GetParam()));
  RailMeshes meshes(GetParam());
  size_t rail = 0;
  uint64_t letters = 0;
  for (uint64_t seq = 1; seq <= 40; ++seq) {
    SCOPED_TRACE(testing::Message() << "round " << seq);
    meshes.start_gather(seq);
    meshes.mesh[0]->send_letter(1, std::to_string(seq));
    ++letters;
    for (uint32_t turns = random() % 4; turns > 0; --turns) meshes.poll_all();
    meshes.net.cut(rail);
    for (uint32_t turns = random() % 4; turns > 0; --turns) meshes.poll_all();
    meshes.net.mend(rail);
    rail = random() % RailNet::kRails;
    meshes.finish_gather(seq);
  }
  // Each letter goes both ways around the ring.
  meshes.until([&] { return meshes.heard[1].letters.size() >= 2 * letters; });
  EXPECT_EQ(meshes.heard[1].letters.size(), 2 * letters);
  meshes.expect_no_error();
}

TEST_P(RailMeshTest, WaitsUntilARailIsBack) {
  RailMeshes meshes(GetParam());
  meshes.net.cut(0);
  meshes.net.cut(1);
  meshes.start_gather(1);
  meshes.pass(1000 * kTestMs);
  meshes.expect_no_error();
  meshes.net.mend(1);
  meshes.finish_gather(1);
  meshes.expect_no_error();
}

TEST_P(RailMeshTest, AProcessThatIsGoneIsNotedAtOnce) {
  RailMeshes meshes(GetParam());
  meshes.poll_all();
  meshes.kill(1);
  meshes.until([&] { return meshes.all_heard_an_error(); });
  for (size_t r = 0; r < meshes.heard.size(); ++r) {
    if (r == 1) continue;
    const std::string& error = meshes.heard[r].errors.at(0);
    EXPECT_TRUE(error.starts_with("rank 1 died: its connection ended without a goodbye")) << error;
    for (const char* part : {"eth0: ", "eth1: ", "Connection refused", " s ago"})
      EXPECT_NE(error.find(part), std::string::npos) << error;
    EXPECT_EQ(meshes.heard[r].errors.size(), 1u);
  }
}

// That a rank is dead is known without another look at a rail that has been silent before.
TEST(RailMesh, ADeathIsNotedWithoutTheSilentRail) {
  RailMeshes meshes(2);
  meshes.net.silence(1);
  meshes.net.cut(0);
  meshes.pass(1000 * kTestMs);
  EXPECT_GT(meshes.net.dials(1), 0);
  meshes.net.mend(0);
  meshes.start_gather(1);
  meshes.finish_gather(1);
  const int before = meshes.net.dials(1);
  meshes.kill(1);
  meshes.net.cut(0);
  meshes.net.mend(0);
  meshes.until([&] { return meshes.all_heard_an_error(); });
  EXPECT_TRUE(meshes.heard[0].errors.at(0).starts_with("rank 1 died: ")) << meshes.heard[0].errors.at(0);
  EXPECT_EQ(meshes.net.dials(1), before);
}

TEST_P(RailMeshTest, AFailureReachesAllOverWhatIsLeft) {
  RailMeshes meshes(GetParam());
  meshes.net.cut(0);
  meshes.mesh[0]->flood_error({Code::kTimeout, "rank 0 waited for rank 2"}, 0);
  meshes.still.insert(0);  // it needs no error itself
  meshes.until([&] {
    meshes.mesh[0]->poll(meshes.clock.now_ns());
    return meshes.all_heard_an_error();
  });
  for (size_t r = 1; r < meshes.heard.size(); ++r)
    EXPECT_EQ(meshes.heard[r].errors, std::vector<std::string>{"rank 0 waited for rank 2"});
}

INSTANTIATE_TEST_SUITE_P(Ranks, RailMeshTest, testing::Values(2, 3, 5, 8));

TEST(RailMesh, SaysWhichConnectionMovedAndWhy) {
  const LogLines lines(LogLevel::kWarn);
  {
    RailMeshes meshes(2);
    meshes.net.cut(0);
    meshes.start_gather(1);
    meshes.finish_gather(1);
  }
  const std::string connection = "control: connection with rank ";
  EXPECT_EQ(lines.with({connection}).size(), 4u);  // two links, and each has two ends
  EXPECT_EQ(lines.with({connection, " moved from eth0 to eth1: its connection was closed"}).size(), 4u) << lines.text();
}

TEST(RailMesh, AStoppedProcessIsNotLost) {
  RailMeshes::Options options;
  options.heartbeat_ns = 1000 * kTestMs;
  RailMeshes meshes(2, options);
  meshes.poll_all();
  meshes.still.insert(1);
  meshes.net.cut(0);
  meshes.start_gather(1);
  for (int turn = 0; turn < 200; ++turn) {
    meshes.pass(300 * kTestMs);
    meshes.expect_no_error();
  }
  meshes.still.clear();
  meshes.finish_gather(1);
  meshes.expect_no_error();
}

TEST(RailMesh, ALostHostIsNamedWithItsRails) {
  RailMeshes::Options options;
  options.heartbeat_ns = 5000 * kTestMs;
  options.silence_ns = 1000 * kTestMs;
  options.host_answers = host_is_gone;
  RailMeshes meshes(3, options);
  for (int turn = 0; turn < 10; ++turn) meshes.pass(100 * kTestMs);  // the ranks have heard each other
  meshes.net.lose_host(2);
  meshes.still.insert(2);
  for (int turn = 0; turn < 100 && !meshes.all_heard_an_error(); ++turn) meshes.pass(100 * kTestMs);
  for (const size_t r : {0u, 1u}) {
    ASSERT_EQ(meshes.heard[r].errors.size(), 1u);
    const std::string& error = meshes.heard[r].errors[0];
    EXPECT_TRUE(error.starts_with("rank 2 is lost: none of its rails has answered for 5s (TRESTLE_HEARTBEAT): "))
        << error;
    EXPECT_NE(error.find("eth0: "), std::string::npos) << error;
    EXPECT_NE(error.find("eth1: no answer to a connection, "), std::string::npos) << error;
  }
}

// Nothing is acknowledged over the first rail, and no socket says so. The ranks may still be making the communicator,
// and may not have heard each other yet.
TEST(RailMesh, ASilentRailIsLeft) {
  for (const auto& [starts, heard] : {std::pair(true, true), {false, true}, {true, false}, {false, false}}) {
    SCOPED_TRACE(testing::Message() << "starts " << starts << ", heard " << heard);
    const LogLines lines(LogLevel::kWarn);
    RailMeshes::Options options;
    options.silence_ns = 1000 * kTestMs;
    options.starts = starts;
    // Of the first connections, which are socket pairs; those of the second rail answer.
    options.host_answers = [](int fd, int64_t) {
      int domain = AF_UNIX;
      socklen_t length = sizeof domain;
      return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_INET;
    };
    RailMeshes meshes(2, options);
    for (int turn = 0; heard && turn < 10; ++turn) meshes.pass(100 * kTestMs);
    meshes.still.insert(1);
    meshes.pass(1500 * kTestMs);
    meshes.still.clear();
    meshes.start_gather(1);
    meshes.finish_gather(1);
    meshes.expect_no_error();
    for (const auto& mesh : meshes.mesh) EXPECT_TRUE(mesh->status().ok());
    EXPECT_FALSE(lines.with({"moved from eth0 to eth1: its host did not answer for 1s"}).empty()) << lines.text();
  }
}

// A second network whose firewall refuses connections says nothing about the peer's process.
TEST(RailMesh, AFirewallIsNoDeath) {
  RailMeshes meshes(3);
  meshes.net.refuse(1);
  meshes.net.cut(0);
  meshes.start_gather(1);
  meshes.pass(5000 * kTestMs);
  meshes.expect_no_error();
  meshes.net.mend(0);
  meshes.finish_gather(1);
  meshes.expect_no_error();
}

// A rank leaves while its connections move: nobody takes it for dead.
TEST(RailMesh, AGoodbyeTakesTheOtherRail) {
  for (int round = 0; round < 10; ++round) {
    RailMeshes meshes(2);
    meshes.poll_all();
    meshes.net.cut(0);
    if (round % 2 == 0) meshes.poll_all();
    std::unique_ptr<ControlMesh> leaver = std::move(meshes.mesh[0]);
    std::atomic<bool> left = false;
    std::thread leaves([&] {
      leaver->close(20'000);
      left = true;
    });
    meshes.until([&] { return left && (!meshes.heard[1].byes.empty() || !meshes.heard[1].errors.empty()); });
    leaves.join();
    meshes.expect_no_error();
    EXPECT_EQ(meshes.heard[1].byes, std::vector<int32_t>{0});
    meshes.net.kill(0);
    for (int turn = 0; turn < 20; ++turn) meshes.poll_all();
    meshes.expect_no_error();
  }
}

// What a rank has sent over one link comes, even if its goodbye comes earlier over another one.
TEST(RailMesh, AGoodbyeByAnotherLinkDropsNothing) {
  RailMeshes meshes(2);
  meshes.poll_all();
  for (const size_t rail : {0u, 1u}) meshes.net.block(rail);
  meshes.end_out_link(1);
  for (int turn = 0; turn < 5; ++turn) meshes.poll_all();
  for (const auto& mesh : meshes.mesh) mesh->start_barrier(1);
  meshes.until([&] { return meshes.mesh[1]->barrier_done(1).value(); });
  std::unique_ptr<ControlMesh> leaver = std::move(meshes.mesh[1]);
  std::atomic<bool> left = false;
  std::thread leaves([&] {
    leaver->close(20'000);
    left = true;
  });
  meshes.until([&] { return !meshes.heard[0].byes.empty(); });
  const Result<bool> before = meshes.mesh[0]->barrier_done(1);
  EXPECT_TRUE(before.ok() && !before.value());
  for (const size_t rail : {0u, 1u}) meshes.net.mend(rail);
  bool done = false;
  meshes.until([&] {
    const Result<bool> now = meshes.mesh[0]->barrier_done(1);
    EXPECT_TRUE(now.ok());
    done = now.ok() && now.value();
    return done || !now.ok();
  });
  meshes.until([&] { return left.load(); });
  leaves.join();
  EXPECT_TRUE(done);
  meshes.expect_no_error();
}

// A rank that aborts destroys the mesh at once, without waiting for goodbyes.
TEST(RailMesh, AnAbortTakesTheOtherRail) {
  RailMeshes meshes(2);
  meshes.poll_all();
  meshes.net.cut(0);
  meshes.still.insert(1);
  meshes.poll_all();
  meshes.mesh[0]->flood_abort();
  meshes.still.clear();
  std::unique_ptr<ControlMesh> aborts = std::move(meshes.mesh[0]);
  std::thread closes([&] {
    aborts->close(0);
    meshes.net.kill(0);
  });
  meshes.until([&] { return !meshes.heard[1].aborts.empty() || !meshes.heard[1].errors.empty(); });
  closes.join();
  EXPECT_EQ(meshes.heard[1].aborts, std::vector<int32_t>{0});
  meshes.expect_no_error();
}

TEST(RailMesh, RanksWithOneRailInCommonAreAsBefore) {
  RailMeshes::Options options;
  options.leading = 1;
  RailMeshes meshes(3, options);
  meshes.poll_all();
  meshes.kill(2);
  meshes.until([&] { return meshes.all_heard_an_error(); });
  EXPECT_EQ(meshes.heard[0].errors.at(0),
            "rank 2 died: its connection ended without a goodbye (its connection was closed)");
}

// The listeners stay open for the life of the mesh, so anybody may come at any time.
TEST(RailMesh, StrangersGetNothingAndKeepNobodyOut) {
  RailMeshes meshes(2);
  std::vector<UniqueFd> strangers;
  for (int i = 0; i < 100; ++i) {
    const SocketAddress& to = meshes.net.address(i % 2, static_cast<size_t>(i / 2 % 2));
    strangers.push_back(connect_before({&to, 1}, {}).value());
    const auto garbage = std::as_bytes(std::span("garbage", 7));
    if (i % 3 == 0) (void)send_bytes(strangers.back().get(), garbage);
    meshes.poll_all();
  }
  const auto wrong = [&](Credentials credentials, Purpose purpose) {
    const SocketAddress& to = meshes.net.address(0, 1);
    UniqueFd fd = connect_before({&to, 1}, {}).value();
    HandshakeExchange exchange(Role::kInitiator, purpose, credentials, 0);
    bool refused = false;
    meshes.until([&] {
      const Result<bool> done = exchange.step(fd.get());
      EXPECT_FALSE(done.ok() && done.value());
      return refused = !done.ok();
    });
  };
  wrong({{std::byte{1}}, {}, 1}, Purpose::kControlMove);
  wrong({FakeRails::secret(), {}, 1}, Purpose::kControl);
  wrong({FakeRails::secret(), {std::byte{1}}, 1}, Purpose::kControlMove);
  meshes.net.cut(0);
  meshes.start_gather(1);
  meshes.finish_gather(1);
  meshes.expect_no_error();
}

TEST(RailMesh, LeavesNoDescriptor) {
  const std::multiset<std::string> before = open_descriptors();
  for (const bool away : {false, true}) {
    RailMeshes meshes(3);
    meshes.poll_all();
    meshes.net.cut(0);
    if (away) meshes.net.cut(1);
    for (int turn = 0; turn < 5; ++turn) meshes.poll_all();
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace trestle
