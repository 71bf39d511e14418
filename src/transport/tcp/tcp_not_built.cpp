// Replaces the tcp transport where libsodium was not found.
#include "transport/auth/handshake.h"
#include "transport/tcp/tcp.h"

namespace trestle {

Status tcp_probe() {
  return handshake_probe();
}

Result<std::vector<NamedInterface>> tcp_interfaces(const EndpointConfig&, const TcpTransportOptions&) {
  return handshake_probe().error();
}

Result<std::unique_ptr<Transport>> make_tcp_transport(const EndpointConfig&, const TcpTransportOptions&) {
  return handshake_probe().error();
}

}  // namespace trestle
