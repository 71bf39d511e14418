#include "rendezvous/try_root.h"

#include <poll.h>

#include <algorithm>

#include "base/clock.h"
#include "transport/auth/handshake_exchange.h"

namespace trestle {
namespace {

// The limit of one attempt at one address; the next one follows soon.
constexpr int64_t kAttemptNs = 2'000 * kMs;

Status connect_once(UniqueFd& socket, const SocketAddress& address, const WaitLimit& limit) {
  socket = TRY(start_connect(address));
  while (!TRY(finish_connect(socket.get()))) TRY(wait_before(socket.get(), POLLOUT, limit));
  // The request follows the acknowledgement of the handshake. The root does not answer the acknowledgement, so Nagle's
  // algorithm might hold the request for 40 ms.
  TcpOptions options;
  options.keepalive_idle_s = 0;
  set_tcp_options(socket.get(), options);
  return {};
}

}  // namespace

RootAttempt try_root(const SocketAddress& address, const BootstrapConfig& config, const Root& root, int64_t patience_ns,
                     const WaitLimit& limit) {
  const int64_t now = monotonic_clock().now_ns();
  const WaitLimit connecting{std::min(limit.deadline_ns, now + kAttemptNs), limit.aborted};
  RootAttempt result;
  Status status = connect_once(result.socket, address, connecting);
  if (status.ok()) {
    HandshakeExchange exchange(Role::kInitiator, Purpose::kRendezvous, {root.secret, root.job, config.rank});
    const int64_t give_up = monotonic_clock().now_ns() + std::min(patience_ns, config.handshake_timeout_ns);
    status = exchange.run_before(result.socket.get(), {std::min(limit.deadline_ns, give_up), limit.aborted});
    result.refused_secret = !status.ok() && exchange.handshake().secret_differs();
    result.other_version = exchange.handshake().version_differs();
    result.lost = !status.ok() && exchange.connection_lost();
    result.refused = !status.ok() && status.error().code == Code::kRemoteError && !result.lost;
    result.other_job = exchange.handshake().job_differs();
    result.silent = !status.ok() && status.error().code == Code::kTimeout;
  }
  if (!status.ok()) {
    result.socket.reset();
    result.error = status.error();
  }
  return result;
}

}  // namespace trestle
