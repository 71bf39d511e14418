// The C API: a communicator's statistics, and the memory that it holds.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "api/background.h"
#include "api/versioned.h"
#include "memory/mem_alloc.h"

using namespace trestle;

static_assert(kCollectives <= TRESTLE_STATS_COLLECTIVES && kMaxDimensions == TRESTLE_MAX_DIMENSIONS);

namespace {

trestleCallStats_t call_stats(const CollectiveCounts& counts) {
  return {counts.started, counts.completed, counts.failed, counts.express, counts.bytes.given, counts.bytes.taken};
}

trestleCommStats_t stats_of(Communicator& communicator) {
  const StatisticsReading reading = communicator.engine().statistics().read();
  trestleCommStats_t stats = TRESTLE_COMM_STATS_INITIALIZER;
  stats.elapsedNs = reading.elapsed_ns;
  stats.waitNs = reading.waited_ns;
  stats.stagingBytes = reading.staging_bytes;
  stats.stagingPeakBytes = reading.staging_peak_bytes;
  stats.total = call_stats(reading.total());
  for (size_t c = 0; c < kCollectives; ++c) stats.collective[c] = call_stats(reading.collectives[c]);
  const std::vector<Dimension>& dimensions = communicator.topology().dimensions;
  for (size_t d = 0; d < dimensions.size(); ++d) {
    const DimensionCounts& counts = reading.dimensions[d];
    stats.dimension[d] = {static_cast<uint64_t>(dimensions[d].size),
                          counts.bytes_sent,
                          counts.bytes_received,
                          counts.bytes_mapped,
                          counts.messages_sent,
                          counts.messages_received,
                          counts.busy_ns};
  }
  return stats;
}

Result<uint64_t> memory_of(Communicator& communicator, int stat) {
  Engine& engine = communicator.engine();
  switch (stat) {
    case trestleMemStaging:
      return engine.statistics().staging().now();
    case trestleMemTransport:
      return engine.transport_bytes();
    case trestleMemAllocated:
      return mem_bytes();
    case trestleMemRegistered:
      return communicator.registered_bytes();
    case trestleMemTotal:
      return engine.statistics().staging().now() + engine.transport_bytes();
    default:
      return invalid_argument("CommMemStats: there is no statistic " + std::to_string(stat) + ": see trestleMemStat_t");
  }
}

}  // namespace

extern "C" {

trestleResult_t trestleCommGetStats(trestleComm_t comm, trestleCommStats_t* stats) {
  return with_comm(comm, "CommGetStats", [&](Communicator& communicator) -> Status {
    constexpr size_t kHead = offsetof(trestleCommStats_t, elapsedNs);
    if (stats == nullptr) return invalid_argument("CommGetStats: stats is NULL");
    TRY(check_head("CommGetStats: ", *stats, kHead, TRESTLE_COMM_STATS_MAGIC, "TRESTLE_COMM_STATS_INITIALIZER"));
    copy_known(*stats, stats_of(communicator), kHead);
    return {};
  });
}

trestleResult_t trestleCommMemStats(trestleComm_t comm, trestleMemStat_t stat, uint64_t* value) {
  return with_comm(comm, "CommMemStats", [&](Communicator& communicator) -> Status {
    if (value == nullptr) return invalid_argument("CommMemStats: value is NULL");
    *value = TRY(memory_of(communicator, static_cast<int>(stat)));
    return {};
  });
}

}  // extern "C"
