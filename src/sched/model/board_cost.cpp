#include "sched/model/board_cost.h"

namespace trestle {
namespace {

// Measured with all_reduce_perf over shm on two cores of an AMD EPYC, float32, back to back. Two ranks with a core
// each: 8 B 0.22 to 0.24 us, 1 KiB 0.41 us, 8 KiB 1.7 to 1.9 us. Four ranks: 8 B 3.4 to 4.7 us, 8 KiB 7.1 us.
//
// A cache line takes 55 ns from one core to the other. The rest of the time for 8 B is the call: checks, lock,
// publishing.
constexpr uint64_t kCall_ps = 180'000;
constexpr uint64_t kLine_ps = 55'000;
// With two ranks a byte costs 170 to 200 ps (one write, one read from the other rank, two additions). With four ranks
// it costs 190 ps for each rank of a core (one write, three reads, four additions), because ranks that share a core
// find each other's slots in the cache. The numbers below fit four ranks. They predict only two thirds of the time of
// two ranks: with larger numbers the largest operations would be predicted slower than the next size, which has a
// schedule at nominal speed (sched/model/cost.cpp). Writing is expensive because it takes the cache lines from their
// readers.
constexpr uint64_t kWrite_ps_per_byte = 64;
constexpr uint64_t kRead_ps_per_byte = 20;
constexpr uint64_t kAdd_ps_per_byte = 16;   // of every slot that is read, including the rank's own
constexpr uint64_t kCopy_ps_per_byte = 10;  // of every slot that is read, if nothing is added
// If ranks share a processor, each of them must have run once. This is the rest of the time of four ranks for 8 B.
constexpr uint64_t kTurn_ps = 1'650'000;

// Bytes that the slowest rank moves, and the number of ranks on its processor that do the same.
struct Traffic {
  uint64_t published = 0;
  uint64_t fetched = 0;  // from the slots of others
  uint64_t combined = 0;
  uint64_t publishers = 1;
  uint64_t readers = 1;
};

Traffic traffic(const BoardOperation& operation) {
  const uint64_t bytes = operation.count_bytes;
  const auto ranks = static_cast<uint64_t>(operation.ranks);
  const auto sharing = static_cast<uint64_t>(operation.ranks_per_processor);
  const uint64_t published = published_bytes(operation.collective, bytes, ranks, false);
  const CollectiveRow& row = row_of(operation.collective);
  if (!moves_data(operation.collective)) return {};
  if (row.sent.at_root_only) return {published, bytes, bytes, 1, sharing};
  const uint64_t readers = row.received.at_root_only ? 1 : sharing;
  return {published, (ranks - 1) * bytes, ranks * bytes, sharing, readers};
}

}  // namespace

uint64_t board_time_ps(const BoardOperation& operation) {
  const Traffic moved = traffic(operation);
  const auto ranks = static_cast<uint64_t>(operation.ranks);
  const auto sharing = static_cast<uint64_t>(operation.ranks_per_processor);
  const uint64_t turns = sharing > 1 ? sharing : 0;
  const uint64_t combine_ps_per_byte = reduces(operation.collective) ? kAdd_ps_per_byte : kCopy_ps_per_byte;
  return sharing * (kCall_ps + (ranks - 1) * kLine_ps) + turns * kTurn_ps +
         moved.publishers * moved.published * kWrite_ps_per_byte +
         moved.readers * (moved.fetched * kRead_ps_per_byte + moved.combined * combine_ps_per_byte);
}

}  // namespace trestle
