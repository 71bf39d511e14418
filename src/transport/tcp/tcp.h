// The tcp transport: one authenticated connection per pair of ranks and common rail, made at first use. See transport.h
// for the contract.
//
// All functions may be called from any thread. make_tcp_transport opens a listening socket and an epoll descriptor for
// each rail.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/rails/rails_text.h"
#include "transport/socket/socket.h"
#include "transport/transport.h"

namespace trestle {

struct TcpTransportOptions {
  HostAddress local_ip;       // at which the other ranks have reached this one: used where no interface is named
  std::string socket_ifname;  // TRESTLE_SOCKET_IFNAME: interfaces to choose from where the endpoint has none
  std::string socket_family;  // TRESTLE_SOCKET_FAMILY
  std::string port_range;     // TRESTLE_PORT_RANGE
  std::string port_needs;     // what it must have room for: ends the sentence about one without a free port
  std::string congestion;     // TRESTLE_CONGESTION
  std::string rails;          // what TRESTLE_RAILS says of one dimension: counts where the endpoint has no interface
  int64_t rail_timeout_ns = 3'000'000'000;  // TRESTLE_RAIL_TIMEOUT
  uint64_t unsent_bytes = 0;  // that the kernel may hold and not have sent, per connection; 0: the system's choice
};

// The interfaces that make_tcp_transport would use now, with their rates: as stated, else as the kernel knows them; 0:
// not known. Opens nothing. Errors: as make_tcp_transport's about names.
Result<std::vector<NamedInterface>> tcp_interfaces(const EndpointConfig& config, const TcpTransportOptions& options);
// Success, or why tcp cannot be used here: libsodium was not found.
Status tcp_probe();
// kInvalidArgument: no such interface, family or port range; kSystemError: no free port, no descriptors.
Result<std::unique_ptr<Transport>> make_tcp_transport(const EndpointConfig& config, const TcpTransportOptions& options);

}  // namespace trestle
