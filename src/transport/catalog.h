// The list of all transports: one row each, with the same names and in the same order as in base/transport_kinds.h,
// which has the facts that other folders need.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "transport/loopback/loopback.h"
#include "transport/rails/rails_text.h"
#include "transport/shm/shm.h"
#include "transport/tcp/tcp.h"
#include "transport/transport.h"

namespace trestle {

// The options of all transports that have some. Each factory gets its own.
struct TransportOptions {
  LoopbackTransportOptions loopback;
  ShmTransportOptions shm;
  TcpTransportOptions tcp;
};

struct TransportRow {
  std::string_view name;     // as in TRESTLE_TRANSPORT
  std::string_view summary;  // one line for people
  // Success, or why it cannot be used here ("not built: libsodium was not found").
  Status (*probe)();
  Result<std::unique_ptr<Transport>> (*create)(const EndpointConfig& config, const TransportOptions& options);
  // The interfaces that the transport would use, with the rates that are known (0: not known). nullptr: it has none.
  Result<std::vector<NamedInterface>> (*interfaces)(const EndpointConfig& config,
                                                    const TransportOptions& options) = nullptr;
};

std::span<const TransportRow> transports();
Result<const TransportRow*> find_transport(std::string_view name);

}  // namespace trestle
