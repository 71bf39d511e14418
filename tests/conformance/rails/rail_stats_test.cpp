// Statistics of rails over the public API: who has them, exact numbers of messages, and what is refused. Tests in a lab
// have several rails (tests/lab/rails_job_test.sh), and so have tests on simulated ones (tests/unit/transport).
#include <gtest/gtest.h>
#include <trestle/trestle.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "support/ranks.h"

namespace api {
namespace {

constexpr size_t kBytes = 300'000;

std::vector<trestleRailStats_t> rails_of(trestleComm_t comm) {
  trestleCommRailStats_t stats = TRESTLE_RAIL_STATS_INITIALIZER;
  EXPECT_TRUE(ranks::succeeded(trestleCommGetRailStats(comm, &stats), comm));
  std::vector<trestleRailStats_t> rows(static_cast<size_t>(stats.count));
  stats.rows = rows.data();
  stats.capacity = stats.count;
  EXPECT_TRUE(ranks::succeeded(trestleCommGetRailStats(comm, &stats), comm));
  EXPECT_NE(stats.nowNs, 0u);
  return rows;
}

// Rank 0 sends, the others receive.
void send_to_all(int rank, int all, trestleComm_t comm) {
  std::vector<char> data(kBytes);
  ASSERT_TRUE(ranks::succeeded(trestleGroupStart()));
  for (int peer = 1; rank == 0 && peer < all; ++peer)
    ASSERT_TRUE(ranks::succeeded(trestleSend(data.data(), kBytes, trestleInt8, peer, comm, nullptr)));
  if (rank != 0) {
    ASSERT_TRUE(ranks::succeeded(trestleRecv(data.data(), kBytes, trestleInt8, 0, comm, nullptr)));
  }
  ASSERT_TRUE(ranks::succeeded(trestleGroupEnd()));
  ASSERT_TRUE(ranks::succeeded(trestleCommSynchronize(comm), comm));
}

void expect_one_way(const trestleRailStats_t& rail, int rank, int peer) {
  EXPECT_EQ(rail.peer, peer);
  EXPECT_EQ(rail.rails, 1);
  EXPECT_EQ(rail.state, trestleRailUp);
  EXPECT_EQ(rail.bytesSent, rank == 0 ? kBytes : 0u);
  EXPECT_EQ(rail.bytesReceived, rank == 0 ? 0u : kBytes);
  EXPECT_EQ(rail.sharePermille, rank == 0 ? 1000 : 0);
  EXPECT_EQ(rail.bytesAcknowledged + rail.bytesQueued + rail.goodput + rail.framesAgain + rail.losses, 0u);
  EXPECT_EQ(rail.connections, 1u);
  EXPECT_STRNE(rail.name, "");
  EXPECT_STREQ(rail.why, "");
  ASSERT_EQ(rail.changes, 2);
  EXPECT_EQ(rail.change[0].state, trestleRailConnecting);
  EXPECT_EQ(rail.change[1].state, trestleRailUp);
  EXPECT_LE(rail.change[0].atNs, rail.change[1].atNs);
  EXPECT_EQ(rail.change[1].atNs, rail.stateNs);
}

TEST(ApiRails, TellWhatWasSentAndReceived) {
  if (!ranks::proofs()) GTEST_SKIP() << "no rails without proofs";
  ranks::on_processes({.ranks = 3, .transport = "tcp"}, [](ranks::Process& process, trestleComm_t comm) {
    EXPECT_TRUE(rails_of(comm).empty()) << "of peers that it has had nothing to do with";
    send_to_all(process.rank, process.ranks, comm);
    const std::vector<trestleRailStats_t> rails = rails_of(comm);
    ASSERT_EQ(rails.size(), process.rank == 0 ? 2u : 1u);
    for (size_t i = 0; i < rails.size(); ++i)
      expect_one_way(rails[i], process.rank, process.rank == 0 ? static_cast<int>(i) + 1 : 0);
    ranks::meet(process.board, process.ranks);  // nobody leaves before
  });
}

TEST(ApiRails, FillInAsManyAndAsMuchAsTheCallerHasRoomFor) {
  if (!ranks::proofs()) GTEST_SKIP() << "no rails without proofs";
  ranks::on_processes({.ranks = 3, .transport = "tcp"}, [](ranks::Process& process, trestleComm_t comm) {
    send_to_all(process.rank, process.ranks, comm);
    struct Newer {
      trestleRailStats_t known;
      uint64_t later;
    } rows[2];
    std::memset(rows, 0x55, sizeof rows);
    struct NewerHead {
      trestleCommRailStats_t known = TRESTLE_RAIL_STATS_INITIALIZER;
      uint64_t later = 17;
    } head;
    head.known.size = sizeof head;
    head.known.rowSize = sizeof rows[0];
    head.known.rows = &rows[0].known;
    for (const int capacity : {0, 1, 2}) {
      head.known.capacity = capacity;
      ASSERT_TRUE(ranks::succeeded(trestleCommGetRailStats(comm, &head.known)));
      EXPECT_EQ(head.known.count, process.rank == 0 ? 2 : 1);
      EXPECT_EQ(head.known.capacity, capacity);
      for (int i = 0; i < 2; ++i) {
        const bool written = i < capacity && i < head.known.count;
        EXPECT_EQ(rows[i].known.peer, !written ? 0x55555555 : process.rank == 0 ? i + 1 : 0) << capacity;
        EXPECT_EQ(rows[i].later, 0x5555555555555555u) << "behind what the library knows";
      }
    }
    EXPECT_EQ(head.later, 17u);
    ranks::meet(process.board, process.ranks);
  });
}

TEST(ApiRails, OfPeersInTheSameMemoryThereAreNone) {
  ranks::on_threads({.ranks = 4, .dims = "2x2"}, [](int rank, trestleComm_t comm) {
    send_to_all(rank, 4, comm);
    EXPECT_TRUE(rails_of(comm).empty());
  });
  if (!ranks::proofs()) return;
  ranks::on_processes({.ranks = 2, .transport = "shm"}, [](ranks::Process& process, trestleComm_t comm) {
    send_to_all(process.rank, process.ranks, comm);
    EXPECT_TRUE(rails_of(comm).empty());
  });
}

TEST(ApiRails, OfOneRankThereAreNone) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) { EXPECT_TRUE(rails_of(comm).empty()); });
}

TEST(ApiRails, AFailedCommunicatorStillTellsThem) {
  if (!ranks::proofs()) GTEST_SKIP() << "no rails without proofs";
  const ranks::Settings settings = ranks::patient({.ranks = 2, .transport = "tcp", .timeout_ms = 200});
  ranks::on_processes(settings, [](ranks::Process& process, trestleComm_t comm) {
    send_to_all(process.rank, process.ranks, comm);
    std::vector<char> data(kBytes);
    const trestleResult_t result =
        trestleRecv(data.data(), kBytes, trestleInt8, 1 - process.rank, comm, nullptr);  // nobody sends
    if (result == trestleSuccess) {
      EXPECT_NE(trestleCommSynchronize(comm), trestleSuccess);
    }
    const std::vector<trestleRailStats_t> rails = rails_of(comm);
    ASSERT_EQ(rails.size(), 1u);
    EXPECT_EQ(rails[0].state, trestleRailDown);
    EXPECT_STRNE(rails[0].why, "");
    EXPECT_EQ(rails[0].bytesSent + rails[0].bytesReceived, kBytes);
    ASSERT_EQ(rails[0].changes, 3);
    EXPECT_EQ(rails[0].change[1].state, trestleRailUp);
    ranks::meet(process.board, process.ranks);
  });
}

TEST(ApiRails, AFinalizedCommunicatorStillTellsThem) {
  if (!ranks::proofs()) GTEST_SKIP() << "no rails without proofs";
  ranks::on_processes({.ranks = 2, .transport = "tcp"}, [](ranks::Process& process, trestleComm_t comm) {
    send_to_all(process.rank, process.ranks, comm);
    ASSERT_TRUE(ranks::succeeded(trestleCommFinalize(comm), comm));
    const std::vector<trestleRailStats_t> rails = rails_of(comm);
    ASSERT_EQ(rails.size(), 1u);
    EXPECT_EQ(rails[0].bytesSent + rails[0].bytesReceived, kBytes);
    EXPECT_EQ(rails[0].losses, 0u);
    ranks::meet(process.board, process.ranks);
  });
}

void expect_refused(trestleComm_t comm, trestleCommRailStats_t stats, const std::vector<std::string>& facts) {
  const trestleCommRailStats_t before = stats;
  EXPECT_TRUE(ranks::refused(trestleCommGetRailStats(comm, &stats), trestleInvalidArgument, facts));
  EXPECT_EQ(stats.count, before.count);
  EXPECT_EQ(stats.nowNs, before.nowNs);
}

TEST(ApiRails, RefuseWhatIsWrong) {
  ranks::on_threads({.ranks = 1}, [](int, trestleComm_t comm) {
    trestleCommRailStats_t right = TRESTLE_RAIL_STATS_INITIALIZER;
    EXPECT_TRUE(ranks::refused(trestleCommGetRailStats(nullptr, &right), trestleInvalidArgument, {"comm is NULL"}));
    EXPECT_TRUE(ranks::refused(trestleCommGetRailStats(comm, nullptr), trestleInvalidArgument, {"stats is NULL"}));
    trestleCommRailStats_t stats = right;
    stats.size = offsetof(trestleCommRailStats_t, count);
    expect_refused(comm, stats, {"size is ", "TRESTLE_RAIL_STATS_INITIALIZER"});
    stats.size = size_t{1} << 20;
    expect_refused(comm, stats, {"size is 1048576"});
    stats = right;
    stats.magic = 1;
    expect_refused(comm, stats, {"magic is wrong", "TRESTLE_RAIL_STATS_INITIALIZER"});
    stats = right;
    stats.rowSize = 8;
    expect_refused(comm, stats, {"rowSize is 8", "TRESTLE_RAIL_STATS_INITIALIZER"});
    stats = right;
    stats.capacity = -1;
    expect_refused(comm, stats, {"capacity is -1"});
    stats.capacity = 3;
    expect_refused(comm, stats, {"rows is NULL", "capacity is 3"});
    trestleComm_t other = nullptr;
    ASSERT_TRUE(ranks::succeeded(trestleCommInitAll(&other, 1, nullptr)));
    ASSERT_TRUE(ranks::succeeded(trestleCommDestroy(other)));
    EXPECT_TRUE(ranks::refused(trestleCommGetRailStats(other, &right), trestleInvalidUsage, {"destroyed"}));
  });
}

}  // namespace
}  // namespace api
