// The list of all transports: one row each.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "transport/transport.h"

namespace trestle {

struct TransportRow {
  std::string_view name;     // as in TRESTLE_TRANSPORT
  std::string_view summary;  // one line for people
  // Success, or why it cannot be used here ("not built: libsodium was not found").
  Status (*probe)();
  Result<std::unique_ptr<Transport>> (*create)(const EndpointConfig& config);
  // Nominal figures for the cost model where the topology has none.
  uint64_t latency_ns;
  uint64_t bandwidth_mbps;
  uint64_t segment_bytes;  // preferred size of a message of a long block; must be the same on both sides
};

std::span<const TransportRow> transports();
Result<const TransportRow*> find_transport(std::string_view name);

}  // namespace trestle
