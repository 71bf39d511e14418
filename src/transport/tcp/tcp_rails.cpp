// Which tcp rails a rank has, and which of them lead to which peer.
#include "transport/tcp/tcp_rail.h"

namespace trestle {

Result<RailSet> make_tcp_rails(const EndpointConfig& config, const TcpTransportOptions& options) {
  return single_rail(TRY(TcpRail::create(config, options)));
}

}  // namespace trestle
