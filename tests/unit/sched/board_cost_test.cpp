// The cost of the board: close to measurements, increasing with every cost, and at most the cost of the smallest size
// that has a schedule.
#include "sched/model/board_cost.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sched/model/predict.h"
#include "sched/select/select.h"

namespace trestle {
namespace board_cost_test {
namespace {

constexpr uint64_t kMostPublished = 8192;  // TRESTLE_EXPRESS_BYTES
constexpr Collective kServed[] = {Collective::kAllReduce, Collective::kReduceScatter, Collective::kAllGather,
                                  Collective::kBroadcast, Collective::kReduce,        Collective::kAllToAll,
                                  Collective::kGather,    Collective::kScatter};

// The largest size on the board with elements of 4 bytes, in bytes that the call's count stands for.
uint64_t most_bytes(Collective collective, int32_t ranks) {
  const uint64_t per_byte = published_bytes(collective, 1, static_cast<uint64_t>(ranks), false);
  return kMostPublished / per_byte / 4 * 4;
}

double us(const BoardOperation& operation) {
  return static_cast<double>(board_time_ps(operation)) / 1e6;
}

struct Measured {
  BoardOperation operation;
  double least_us, most_us;
};

// all_reduce_perf over shm, float32, two cores of an AMD EPYC.
const Measured kMeasured[] = {
    {{Collective::kAllReduce, 8, 2, 1}, 0.22, 0.24},   {{Collective::kAllReduce, 1024, 2, 1}, 0.41, 0.41},
    {{Collective::kAllReduce, 8192, 2, 1}, 1.67, 1.9}, {{Collective::kAllReduce, 8, 4, 2}, 3.4, 4.7},
    {{Collective::kAllReduce, 8192, 4, 2}, 7.1, 7.1},
};

TEST(BoardCost, IsNearWhatWasMeasured) {
  for (const Measured& each : kMeasured) {
    const double predicted = us(each.operation);
    EXPECT_GT(predicted, each.most_us / 2.5) << each.operation.ranks << " " << each.operation.count_bytes;
    EXPECT_LT(predicted, each.least_us * 2.5) << each.operation.ranks << " " << each.operation.count_bytes;
  }
}

TEST(BoardCost, GrowsWithBytesRanksAndSharing) {
  for (const Collective collective : kServed) {
    for (int32_t ranks = 2; ranks <= 64; ++ranks) {
      for (int32_t sharing = 1; sharing <= ranks; sharing *= 2) {
        const BoardOperation one{collective, most_bytes(collective, ranks) / 2, ranks, sharing};
        BoardOperation more = one;
        more.count_bytes += 4;
        EXPECT_GT(us(more), us(one)) << to_string(collective) << " " << ranks << " " << sharing;
        more = one;
        ++more.ranks;
        EXPECT_GT(us(more), us(one)) << to_string(collective) << " " << ranks << " " << sharing;
        more = one;
        ++more.ranks_per_processor;
        EXPECT_GT(us(more), us(one)) << to_string(collective) << " " << ranks << " " << sharing;
      }
    }
  }
}

// Collectives differ in the bytes that a rank reads.
TEST(BoardCost, CountsWhatIsRead) {
  const auto at = [](Collective collective, uint64_t bytes) { return us({collective, bytes, 4, 1}); };
  EXPECT_LT(at(Collective::kBarrier, 0), at(Collective::kBroadcast, 4));
  EXPECT_LT(at(Collective::kBroadcast, 2048), at(Collective::kAllReduce, 2048));
  EXPECT_LT(at(Collective::kScatter, 2048), at(Collective::kAllToAll, 2048));
  // Blocks of all ranks are published, and each rank reads its own.
  EXPECT_LT(at(Collective::kAllReduce, 2048), at(Collective::kReduceScatter, 2048));
  EXPECT_LT(at(Collective::kReduceScatter, 2048), at(Collective::kAllReduce, 8192));
  // If ranks share processors, only the root's reading counts once.
  const auto shared = [](Collective collective) { return us({collective, 8192, 8, 4}); };
  EXPECT_LT(shared(Collective::kReduce), shared(Collective::kAllReduce));
  EXPECT_LT(shared(Collective::kGather), shared(Collective::kAllGather));
}

// The places of this many ranks on one host with this many processors.
std::vector<RankPlace> one_host(int32_t ranks, unsigned processors) {
  const RankPlace place{"host", "id", 1, "machine", {(uint64_t{1} << processors) - 1}};
  return std::vector<RankPlace>(static_cast<size_t>(ranks), place);
}

double scheduled_us(Collective collective, uint64_t count_bytes, const Topology& topology) {
  const bool whole =
      collective == Collective::kAllReduce || collective == Collective::kBroadcast || collective == Collective::kReduce;
  SelectionRequest request{.collective = collective, .element_bytes = 4};
  request.bytes = count_bytes * (whole ? 1 : static_cast<uint64_t>(topology.ranks()));
  return static_cast<double>(predict_ns(select_schedule(request, topology, {}).value(), topology)) / 1e3;
}

void expect_no_drop_beyond(const std::vector<RankPlace>& places, const std::string& dims, const char* transport) {
  Topology topology = choose_topology({dims, "", transport}, places).value();
  share_processors(places, topology);
  for (const Collective collective : kServed) {
    const uint64_t bytes = most_bytes(collective, topology.ranks());
    const double board_us = us({collective, bytes, topology.ranks(), ranks_per_processor(places)});
    EXPECT_LE(board_us, scheduled_us(collective, bytes + 4, topology)) << to_string(collective) << "\n"
                                                                       << to_text(topology);
  }
}

TEST(BoardCost, IsNoMoreThanThatOfTheNextSizeWithASchedule) {
  for (const char* transport : {"loopback", "shm"}) {
    for (const unsigned processors : {1, 2, 4, 8}) {
      for (int32_t ranks = 2; ranks <= 8; ++ranks) {
        expect_no_drop_beyond(one_host(ranks, processors), std::to_string(ranks), transport);
      }
      expect_no_drop_beyond(one_host(8, processors), "4x2", transport);
    }
  }
}

}  // namespace
}  // namespace board_cost_test
}  // namespace trestle
