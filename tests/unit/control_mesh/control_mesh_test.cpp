// The control mesh over socket pairs, polled by hand in virtual time: which rank hears which news.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <limits>

#include "base/clock.h"
#include "base/log.h"
#include "control_mesh/control_mesh.h"
#include "control_mesh/dissemination.h"
#include "support/log_lines.h"

namespace trestle {
namespace control_mesh_test {
namespace {

constexpr int64_t kHeartbeat = 5000 * kMs;

struct VirtualClock : Clock {
  int64_t now_ns() override { return now; }
  int64_t now = 1000 * kMs;
};

struct Heard : ControlListener {
  void on_error(const Error& error, int32_t) override { errors.push_back(error); }
  void on_abort(int32_t rank) override { aborts.push_back(rank); }
  void on_bye(int32_t rank, bool) override { byes.push_back(rank); }
  void on_letter(int32_t from, const std::string& text) override { letters.emplace_back(from, text); }
  std::vector<Error> errors;
  std::vector<int32_t> aborts;
  std::vector<int32_t> byes;
  std::vector<std::pair<int32_t, std::string>> letters;
};

bool host_is_gone(int, int64_t) {
  return false;
}

class Meshes {
 public:
  explicit Meshes(int32_t ranks, bool (*host_answers)(int, int64_t) = nullptr) : heard(static_cast<size_t>(ranks)) {
    std::vector<std::vector<ControlConnection>> out(static_cast<size_t>(ranks));
    std::vector<std::vector<ControlConnection>> in(static_cast<size_t>(ranks));
    wires_.resize(static_cast<size_t>(ranks));
    for (int k = 0; k < dissemination_steps(ranks); ++k) {
      for (int32_t r = 0; r < ranks; ++r) {
        const auto to = static_cast<int32_t>((r + (int64_t{1} << k)) % ranks);
        int pair[2];
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
        wires_[static_cast<size_t>(r)].push_back(UniqueFd(dup(pair[0])));
        wires_[static_cast<size_t>(to)].push_back(UniqueFd(dup(pair[1])));
        out[static_cast<size_t>(r)].push_back({to, UniqueFd(pair[0])});
        in[static_cast<size_t>(to)].push_back({r, UniqueFd(pair[1])});
      }
    }
    for (int32_t r = 0; r < ranks; ++r) {
      ControlSettings settings{r, ranks, kHeartbeat, &clock, host_answers};
      auto made =
          ControlMesh::create(settings, std::move(out[static_cast<size_t>(r)]), std::move(in[static_cast<size_t>(r)]));
      EXPECT_TRUE(made.ok());
      mesh.push_back(std::move(made).value());
      mesh.back()->start(&heard[static_cast<size_t>(r)]);
    }
  }

  // Polls until news has reached all ranks. `silent` is not polled.
  void poll_all(int32_t silent = -1) {
    for (int hop = 0; hop < 10; ++hop) {
      for (size_t r = 0; r < mesh.size(); ++r) {
        if (mesh[r] && static_cast<int32_t>(r) != silent) mesh[r]->poll(clock.now);
      }
    }
  }
  // Closes the rank's connections without a message, as the kernel does for a killed process.
  void kill(int32_t rank) {
    for (UniqueFd& wire : wires_[static_cast<size_t>(rank)]) shutdown(wire.get(), SHUT_RDWR);
  }

  VirtualClock clock;
  std::vector<Heard> heard;
  std::vector<std::unique_ptr<ControlMesh>> mesh;

 private:
  std::vector<std::vector<UniqueFd>> wires_;  // duplicates of the handles at each rank's ends
};

class MeshTest : public testing::TestWithParam<int32_t> {};

TEST_P(MeshTest, BarriersAndGathersMayOverlap) {
  const int32_t ranks = GetParam();
  Meshes meshes(ranks);
  for (int32_t r = 0; r < ranks; ++r) {
    auto& mesh = *meshes.mesh[static_cast<size_t>(r)];
    mesh.start_barrier(1);
    mesh.start_all_gather(1, std::to_string(r));
    if (r != ranks - 1) mesh.start_barrier(2);
  }
  meshes.poll_all();
  for (int32_t r = 0; r < ranks; ++r) {
    auto& mesh = *meshes.mesh[static_cast<size_t>(r)];
    const auto first = mesh.barrier_done(1);
    ASSERT_TRUE(first.ok());
    EXPECT_TRUE(first.value());
    EXPECT_EQ(mesh.all_gather_result(1).value().size(), static_cast<size_t>(ranks));
    if (r == ranks - 1) continue;
    EXPECT_FALSE(mesh.barrier_done(2).value());
    EXPECT_GE(mesh.awaited(2, true), 0);
    EXPECT_EQ(mesh.awaited(1, true), -1);
    EXPECT_EQ(mesh.awaited(3, true), -1);
  }
  meshes.mesh.back()->start_barrier(2);
  meshes.poll_all();
  for (auto& mesh : meshes.mesh) EXPECT_TRUE(mesh->barrier_done(2).value());
  for (const Heard& heard : meshes.heard) EXPECT_TRUE(heard.errors.empty());
}

TEST_P(MeshTest, ADeadRankIsNamedToAll) {
  const int32_t ranks = GetParam();
  if (ranks == 1) return;
  Meshes meshes(ranks);
  meshes.mesh[0]->start_barrier(9);
  meshes.kill(1);
  meshes.poll_all(1);
  for (int32_t r = 0; r < ranks; ++r) {
    if (r == 1) continue;
    ASSERT_EQ(meshes.heard[static_cast<size_t>(r)].errors.size(), 1u) << r;
    const Error& error = meshes.heard[static_cast<size_t>(r)].errors[0];
    EXPECT_EQ(error.code, Code::kRemoteError);
    EXPECT_TRUE(error.message.starts_with("rank 1 died")) << error.message;
    EXPECT_FALSE(meshes.mesh[static_cast<size_t>(r)]->status().ok());
  }
  EXPECT_FALSE(meshes.mesh[0]->barrier_done(9).ok());
}

TEST_P(MeshTest, OneErrorReachesAllOnce) {
  const int32_t ranks = GetParam();
  Meshes meshes(ranks);
  meshes.mesh[0]->flood_error({Code::kTimeout, "rank 0 waited for rank 2"}, 0);
  meshes.poll_all();
  meshes.mesh.back()->flood_error({Code::kInternalError, "too late"}, 0);
  meshes.poll_all();
  for (int32_t r = 1; r < ranks; ++r) {
    ASSERT_EQ(meshes.heard[static_cast<size_t>(r)].errors.size(), 1u) << r;
    EXPECT_EQ(meshes.heard[static_cast<size_t>(r)].errors[0].code, Code::kTimeout);
    EXPECT_EQ(meshes.heard[static_cast<size_t>(r)].errors[0].message, "rank 0 waited for rank 2");
  }
  EXPECT_TRUE(meshes.heard[0].errors.empty());  // the rank that reports an error need not hear it
}

TEST_P(MeshTest, AbortReachesAll) {
  const int32_t ranks = GetParam();
  Meshes meshes(ranks);
  meshes.mesh[0]->flood_abort();
  meshes.mesh[0]->close(0);
  meshes.mesh[0].reset();
  meshes.poll_all();
  for (int32_t r = 1; r < ranks; ++r) {
    EXPECT_EQ(meshes.heard[static_cast<size_t>(r)].aborts, std::vector<int32_t>{0});
    EXPECT_TRUE(meshes.heard[static_cast<size_t>(r)].errors.empty());
    EXPECT_EQ(meshes.mesh[static_cast<size_t>(r)]->status().error().code, Code::kAborted);
  }
}

// While a split makes the communicator, its ranks still have their numbers in the parent.
TEST(ControlMeshTest, AFailureIsReportedInTheReceiversRankNumbers) {
  for (const bool abort : {false, true}) {
    Meshes meshes(3);
    meshes.mesh[0]->set_names({"rank 0 (host a, pid 7)", "rank 1 (host a, pid 8)", "rank 2 (host b, pid 7)"});
    meshes.mesh[1]->set_names({"rank 5 (host a, pid 7)", "rank 3 (host a, pid 8)", "rank 0 (host b, pid 7)"});
    if (abort) meshes.mesh[0]->flood_abort();
    if (!abort) meshes.mesh[0]->flood_error({Code::kRemoteError, "rank 2 (host b, pid 7) died (why)"}, 0);
    meshes.poll_all();
    const char* const told =
        abort ? "rank 5 (host a, pid 7) aborted the communicator" : "rank 0 (host b, pid 7) died (why)";
    EXPECT_EQ(meshes.mesh[1]->status().error().message, told);
  }
}

TEST(ControlMeshTest, AFailureKnownUnderOldNamesIsReportedUnderNewOnes) {
  Meshes meshes(2);
  meshes.mesh[1]->set_names({"rank 5 (host a, pid 7)", "rank 3 (host a, pid 8)"});
  meshes.kill(0);
  meshes.mesh[1]->poll(meshes.clock.now);
  meshes.mesh[1]->set_names({"rank 0 (host a, pid 7)", "rank 1 (host a, pid 8)"});
  EXPECT_TRUE(meshes.mesh[1]->status().error().message.starts_with("rank 0 (host a, pid 7) died"));
}

TEST_P(MeshTest, GoodbyeIsNoError) {
  const int32_t ranks = GetParam();
  Meshes meshes(ranks);
  for (int32_t leaver = 0; leaver < ranks; ++leaver) {
    meshes.mesh[static_cast<size_t>(leaver)]->close(0);
    meshes.mesh[static_cast<size_t>(leaver)].reset();
    meshes.poll_all();
  }
  for (int32_t r = 0; r < ranks; ++r) {
    EXPECT_TRUE(meshes.heard[static_cast<size_t>(r)].errors.empty());
    const auto& byes = meshes.heard[static_cast<size_t>(r)].byes;
    for (size_t i = 0; i < byes.size(); ++i) EXPECT_LT(byes[i], r);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, MeshTest, testing::Values(1, 2, 3, 5, 8, 16, 33));

TEST(MeshFailureTest, WaitingForOneThatLeftIsAnErrorForAll) {
  Meshes meshes(4);
  for (size_t r : {0u, 1u, 2u}) meshes.mesh[r]->start_barrier(1);
  meshes.mesh[3]->close(0);
  meshes.poll_all(3);
  for (size_t r : {0u, 1u, 2u}) (void)meshes.mesh[r]->barrier_done(1);
  meshes.poll_all(3);
  for (size_t r : {0u, 1u, 2u}) {
    const auto done = meshes.mesh[r]->barrier_done(1);
    ASSERT_FALSE(done.ok());
    EXPECT_TRUE(done.error().message.starts_with("rank 3 left")) << done.error().message;
  }
}

TEST(HeartbeatTest, ALostHostIsNoticed) {
  Meshes meshes(5, host_is_gone);
  meshes.poll_all();
  meshes.poll_all();
  for (int beat = 0; beat < 4; ++beat) {  // rank 2 is not polled, as if its host were gone
    meshes.clock.now += kHeartbeat / 3 + 1;
    meshes.poll_all(2);
  }
  for (size_t r : {0u, 1u, 3u, 4u}) {
    ASSERT_EQ(meshes.heard[r].errors.size(), 1u) << r;
    EXPECT_TRUE(meshes.heard[r].errors[0].message.starts_with("rank 2 is lost")) << meshes.heard[r].errors[0].message;
  }
}

TEST(HeartbeatTest, AStoppedProcessOnALivingHostIsNotLost) {
  Meshes meshes(3);  // socket pairs, so the host answers
  meshes.poll_all();
  for (int beat = 0; beat < 12; ++beat) {
    meshes.clock.now += kHeartbeat / 3 + 1;
    meshes.poll_all(2);
  }
  for (const Heard& heard : meshes.heard) EXPECT_TRUE(heard.errors.empty());
}

// Logged once for any number of connections and communicators, and however often the process becomes silent again.
TEST(HeartbeatTest, ASilentProcessIsLoggedOnce) {
  const LogLines log(LogLevel::kWarn);
  for (int communicator = 0; communicator < 3; ++communicator) {
    Meshes meshes(3);
    for (auto& mesh : meshes.mesh) mesh->set_names({"rank 0 (vm, pid 1)", "rank 1 (vm, pid 2)", "rank 2 (vm, pid 3)"});
    meshes.poll_all();
    for (int silence = 0; silence < 3; ++silence) {
      for (int beat = 0; beat < 5; ++beat) {
        meshes.clock.now += kHeartbeat / 3 + 1;
        meshes.poll_all(2);
      }
      meshes.poll_all();
    }
  }
  const std::vector<std::string> lines = log.with({});
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("rank 2 (vm, pid 3) has been silent"), std::string::npos) << lines[0];
}

TEST(HeartbeatTest, BeatingRanksStayForever) {
  Meshes meshes(5, host_is_gone);
  for (int beat = 0; beat < 30; ++beat) {
    int64_t due = std::numeric_limits<int64_t>::max();
    for (auto& mesh : meshes.mesh) due = std::min(due, mesh->next_due_ns());
    ASSERT_LE(due, meshes.clock.now + kHeartbeat / 3);
    meshes.clock.now = std::max(due, meshes.clock.now);
    meshes.poll_all();
  }
  for (const Heard& heard : meshes.heard) EXPECT_TRUE(heard.errors.empty());
}

// This process was stopped itself, so messages that it missed meanwhile prove nothing.
TEST(HeartbeatTest, OwnAbsenceIsNotBlamedOnOthers) {
  Meshes meshes(3, host_is_gone);
  meshes.poll_all();
  meshes.clock.now += 10 * kHeartbeat;
  meshes.mesh[0]->poll(meshes.clock.now);
  meshes.poll_all();
  for (const Heard& heard : meshes.heard) EXPECT_TRUE(heard.errors.empty());
}

TEST(MeshFailureTest, NonsenseEndsTheCommunicator) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair), 0);
  int other[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, other), 0);
  std::vector<ControlConnection> out;
  std::vector<ControlConnection> in;
  out.push_back({1, UniqueFd(pair[0])});
  in.push_back({1, UniqueFd(other[0])});
  const UniqueFd liar(pair[1]);
  const UniqueFd second(other[1]);
  VirtualClock clock;
  Heard heard;
  auto mesh = ControlMesh::create({0, 2, 0, &clock, nullptr}, std::move(out), std::move(in));
  ASSERT_TRUE(mesh.ok());
  mesh.value()->set_names({"rank 0 (a)", "rank 1 (b)"});
  mesh.value()->start(&heard);
  ASSERT_EQ(write(liar.get(), "nonsense nonsense nonsense", 26), 26);
  mesh.value()->poll(clock.now);
  ASSERT_EQ(heard.errors.size(), 1u);
  EXPECT_TRUE(heard.errors[0].message.starts_with("rank 1 (b) sent malformed data"));
}

TEST(ControlMeshLetters, ReachEveryRankBothWays) {
  for (const int32_t ranks : {2, 3, 5, 8, 13}) {
    Meshes all(ranks);
    for (int32_t from = 0; from < ranks; ++from) {
      for (int32_t to = 0; to < ranks; ++to) {
        if (from == to) continue;
        SCOPED_TRACE(testing::Message() << from << " to " << to << " of " << ranks);
        all.mesh[static_cast<size_t>(from)]->send_letter(to, "hello");
        all.poll_all();
        for (int32_t r = 0; r < ranks; ++r) {
          auto& letters = all.heard[static_cast<size_t>(r)].letters;
          EXPECT_EQ(letters.size(), r == to ? 2u : 0u);
          for (const auto& letter : letters) EXPECT_EQ(letter, (std::pair<int32_t, std::string>(from, "hello")));
          letters.clear();
        }
      }
    }
  }
}

// A stopped rank delays only one of the two copies.
TEST(ControlMeshLetters, GoAroundARankThatStandsStill) {
  for (const int32_t ranks : {3, 6, 8}) {
    for (int32_t still = 0; still < ranks; ++still) {
      for (int32_t from = 0; from < ranks; ++from) {
        for (int32_t to = 0; to < ranks; ++to) {
          if (from == to || from == still || to == still) continue;
          SCOPED_TRACE(testing::Message() << from << " to " << to << " of " << ranks << " around " << still);
          Meshes all(ranks);
          all.mesh[static_cast<size_t>(from)]->send_letter(to, "x");
          all.poll_all(still);
          EXPECT_GE(all.heard[static_cast<size_t>(to)].letters.size(), 1u);
        }
      }
    }
  }
}

}  // namespace
}  // namespace control_mesh_test
}  // namespace trestle
