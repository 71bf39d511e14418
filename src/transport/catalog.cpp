#include "transport/catalog.h"

#include "transport/loopback/loopback.h"

namespace trestle {
namespace {

const TransportRow kRows[] = {
    {"loopback", "ranks of one process: copies, or reads in place", loopback_probe,
     [](const EndpointConfig& config, const TransportOptions& all) {
       return make_loopback_transport(config, all.loopback);
     }},
    {"shm", "ranks of one host: shared memory", shm_probe,
     [](const EndpointConfig& config, const TransportOptions& all) { return make_shm_transport(config, all.shm); }},
    {"tcp", "sockets over IPv4 or IPv6, authenticated", tcp_probe,
     [](const EndpointConfig& config, const TransportOptions& all) { return make_tcp_transport(config, all.tcp); },
     [](const EndpointConfig& config, const TransportOptions& all) { return tcp_interfaces(config, all.tcp); }},
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
