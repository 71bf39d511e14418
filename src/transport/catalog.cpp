#include "transport/catalog.h"

#include "transport/loopback/loopback.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"

namespace trestle {
namespace {

constexpr uint64_t kKiB = 1024;

// Latency and bandwidth: one message between two processes of one machine, as measured on a small virtual machine; a
// topology file says better. Segments: large enough to hide the cost of a message, small enough to stay in the cache
// from the copy to the reduction.
const TransportRow kRows[] = {
    {"loopback", "ranks of one process: copies, or reads in place", loopback_probe, make_loopback_transport, 500,
     80'000, 256 * kKiB},
    {"shm", "ranks of one host: shared memory", shm_probe, make_shm_transport, 300, 80'000, 256 * kKiB},
    {"tcp", "sockets over IPv4 or IPv6, authenticated", tcp_probe, make_tcp_transport, 12'000, 60'000, 256 * kKiB},
};

}  // namespace

std::span<const TransportRow> transports() {
  return kRows;
}

Result<const TransportRow*> find_transport(std::string_view name) {
  std::string names;
  for (const TransportRow& row : kRows) {
    if (row.name == name) return &row;
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return Error{Code::kInvalidArgument, "there is no transport '" + std::string(name) + "'; there are: " + names};
}

}  // namespace trestle
